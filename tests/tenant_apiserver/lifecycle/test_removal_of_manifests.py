"""`uninstall` and the commands of docs/install.md delete everything that a folder of the manifests can install, or
`uninstall` names it among what stays."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tenant_apiserver.lifecycle.installed import SHADOW, proxy_objects
from tenant_apiserver.lifecycle.kinds import INSTALLED_KINDS, PART_OF, PART_OF_LABEL, PROXY, TargetObject
from tenant_apiserver.lifecycle.remainder import NAMED
from tenant_apiserver.lifecycle.removable import DELETED_KINDS, reason_to_keep
from tests.tenant_apiserver.test_generate_manifests import (
    COMPONENTS,
    INSTALL_PAGE,
    KUSTOMIZATIONS,
    OVERLAYS,
    PATCHES,
    ROOT,
    built,
)

PARTS = ("base/limits", "base/tenants-visible")
"""Folders that are part of others, which add the label."""
FOLDERS = sorted({*KUSTOMIZATIONS, *OVERLAYS, *COMPONENTS} - set(PARTS))
_KINDS = {**INSTALLED_KINDS, **{each.kind: each for each in DELETED_KINDS}}
_COMMAND = re.compile(rf"^\$ kubectl delete (\S+)(?: -n (\S+))? -l {re.escape(f'{PART_OF_LABEL}={PART_OF}')}$", re.M)


@pytest.fixture(params=FOLDERS)
def objects(request: pytest.FixtureRequest, tmp_path: Path) -> list[dict[str, Any]]:
    """The objects of a folder; those of a component with patches include those of the base that it patches."""
    folder: str = request.param
    if folder != PATCHES:
        return built(folder)
    base, added = (os.path.relpath(ROOT / each, tmp_path.resolve()) for each in ("base", folder))
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump({"resources": [base], "components": [added]}))
    return built(str(tmp_path))


def _label(obj: dict[str, Any]) -> str:
    label: str = obj["metadata"].get("labels", {}).get(PART_OF_LABEL, "")
    return label


def _where(obj: dict[str, Any]) -> TargetObject:
    metadata = obj["metadata"]
    return TargetObject(_KINDS[obj["kind"]], metadata.get("namespace", ""), metadata["name"])


def test_uninstall_deletes_everything_with_our_label(objects: list[dict[str, Any]]) -> None:
    """But for APIServices, which `back` moves."""
    for each in objects:
        if _label(each) == PART_OF and each["kind"] != "APIService":
            assert reason_to_keep(_where(each), each) == ""
            assert _where(each).resource in DELETED_KINDS


def test_uninstall_names_everything_without_a_label(objects: list[dict[str, Any]]) -> None:
    """Objects with the label of the shadow or the proxy are deleted by their folder, as the pages say."""
    assert [each for each in map(_where, (each for each in objects if not _label(each))) if each not in NAMED] == []
    assert {_label(each) for each in objects} <= {"", PART_OF, PROXY, SHADOW}
    settings = f"{PROXY}-"
    for each in objects:
        if _label(each) == PROXY and not (
            each["kind"] == "ConfigMap" and each["metadata"]["name"].startswith(settings)
        ):
            assert _where(each) in proxy_objects()


def test_the_commands_of_the_page_delete_everything_with_our_label(objects: list[dict[str, Any]]) -> None:
    deleted = {
        (plural, namespace)
        for plurals, namespace in _COMMAND.findall(INSTALL_PAGE.read_text())
        for plural in plurals.split(",")
    }
    labelled = [_where(each) for each in objects if _label(each) == PART_OF]
    assert {(each.resource.plural, each.namespace) for each in labelled} <= deleted


def test_a_kind_that_not_every_cluster_has_is_deleted_by_a_command_of_its_own() -> None:
    """kubectl deletes nothing of a list of kinds of which one is unknown."""
    for plurals, _ in _COMMAND.findall(INSTALL_PAGE.read_text()):
        named = [each for each in DELETED_KINDS if each.plural in plurals.split(",")]
        groups = {each.group for each in named if "." in each.group and not each.group.endswith("k8s.io")}
        assert len(groups) == 0 or (len(groups) == 1 and {each.group for each in named} == groups)
