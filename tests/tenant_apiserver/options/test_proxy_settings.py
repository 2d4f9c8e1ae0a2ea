"""The file of `tenant-apiserver proxy --config`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from apiserver.meta.resource import GroupResource
from tenant_apiserver.options.proxy_settings import ProxySettings, load_proxy_settings


def test_kinds_are_named_as_kubectl_names_them(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("namespacedKinds: [pods, deployments.apps, ingresses.networking.k8s.io, pods]\n")
    kinds = load_proxy_settings(file).namespaced_kinds
    assert [str(each) for each in kinds] == ["pods", "deployments.apps", "ingresses.networking.k8s.io"]
    assert kinds[1] == GroupResource("apps", "deployments")


def test_without_a_file_or_with_an_empty_one_no_kind_is_merged(tmp_path: Path) -> None:
    (tmp_path / "empty.yaml").write_text("")
    assert load_proxy_settings(None) == load_proxy_settings(tmp_path / "empty.yaml") == ProxySettings()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "the file must be a mapping"),
        (
            "namespaced: []",
            (
                "the file has unknown keys: namespaced; "
                "known are clusterKinds, namespacedKinds, persistentVolumesByClaim, selectedKinds"
            ),
        ),
        ("namespacedKinds: pods", "namespacedKinds must be a list"),
        ("namespacedKinds: [pods, 1]", "namespacedKinds[1] must be a plural name and its group"),
        ("namespacedKinds: [apps/deployments]", "namespacedKinds[0] must be a plural name and its group"),
        ("namespacedKinds: []\nnamespacedKinds: []", "already set in map"),
        ("persistentVolumesByClaim: 'yes'", "persistentVolumesByClaim must be true or false"),
        ("selectedKinds: [{kind: nodes, labelSelector: '', subjects: []}]", "selectedKinds[0].labelSelector must be"),
        ("selectedKinds: [{kind: nodes, labelSelector: 'a in (', subjects: []}]", "selectedKinds[0].labelSelector"),
        ("selectedKinds: [{kind: nodes, labelSelector: a, subjects: []}]", "selectedKinds[0].subjects must be a list"),
        (
            "selectedKinds: [{kind: nodes, labelSelector: a, subjects: [{kind: ServiceAccount, name: x}]}]",
            "selectedKinds[0].subjects[0] must have the kind User or Group",
        ),
    ],
)
def test_a_wrong_file_is_refused_with_its_key(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(text)
    with pytest.raises(ValueError, match="^(?!.*config.yaml).*" + re.escape(message)):
        load_proxy_settings(file)
