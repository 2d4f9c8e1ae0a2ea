"""Routes that the plugin lists: of the version that the cluster serves, which is not the same on all of them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tenant_apiserver.kubectl_tenant.lists import list_routes
from tenant_apiserver.kubectl_tenant.requests import Kubectl
from tests.tenant_apiserver.kubectl_tenant.fake_kubectl import fake_kubectl

_GROUP = "/apis/gateway.networking.k8s.io"
_HTTP_ONLY = ["gateways", "httproutes", "grpcroutes"]


def _kubectl(directory: Path, served: Mapping[str, Sequence[str]], *, discovery: bool = True) -> Kubectl:
    """A cluster with these kinds by version, of which the user may list those of tenant-alice: like kube-apiserver, it
    refuses a list before it says that the kind is missing."""
    answers: dict[str, object] = {}
    if discovery and served:
        answers[_GROUP] = {"versions": [{"version": each} for each in served]}
    for version, plurals in served.items():
        if discovery:
            answers[f"{_GROUP}/{version}"] = {"resources": [{"name": each} for each in plurals]}
        for each in plurals:
            item = {"metadata": {"name": f"{each}-{version}", "namespace": "tenant-alice"}}
            answers[f"{_GROUP}/{version}/namespaces/tenant-alice/{each}"] = {"items": [item]}
    cases = []
    for number, (path, answer) in enumerate(answers.items()):
        (directory / str(number)).write_text(json.dumps(answer))
        cases.append(f"{path}) cat {directory}/{number};;")
    everywhere = "|".join(f"{_GROUP}/*/{each}" for each in ("httproutes", "grpcroutes", "tlsroutes"))
    denied = f"{everywhere}) echo 'Error from server (Forbidden): no' >&2; exit 1;;"
    if not discovery:
        denied += f" {_GROUP}*) echo 'Error from server (Forbidden): no' >&2; exit 1;;"
    missing = "*) echo 'Error from server (NotFound): the server could not find the requested resource' >&2; exit 1;;"
    script = f'case "$3" in\n{chr(10).join([*cases, denied, missing])}\nesac'
    return Kubectl(command=str(fake_kubectl(directory, script)))


@pytest.mark.parametrize(
    ("served", "expected"),
    [
        ({"v1": [*_HTTP_ONLY, "tlsroutes"]}, ["httproutes-v1", "grpcroutes-v1", "tlsroutes-v1"]),
        (
            {"v1": _HTTP_ONLY, "v1alpha3": ["tlsroutes"], "v1alpha2": ["tlsroutes"]},
            ["httproutes-v1", "grpcroutes-v1", "tlsroutes-v1alpha3"],
        ),
        ({"v1": _HTTP_ONLY, "v1alpha2": ["tlsroutes"]}, ["httproutes-v1", "grpcroutes-v1", "tlsroutes-v1alpha2"]),
        ({"v1": _HTTP_ONLY}, ["httproutes-v1", "grpcroutes-v1"]),
        ({}, []),
    ],
    ids=["v1", "v1alpha3", "v1alpha2", "none", "no Gateway API"],
)
def test_routes_are_listed_in_the_version_that_is_served(
    tmp_path: Path, served: Mapping[str, Sequence[str]], expected: Sequence[str]
) -> None:
    found = list_routes(_kubectl(tmp_path, served), ["tenant-alice"])
    assert [each["metadata"]["name"] for each in found] == expected


def test_the_current_version_is_listed_where_the_user_may_not_discover(tmp_path: Path) -> None:
    found = list_routes(_kubectl(tmp_path, {"v1": _HTTP_ONLY}, discovery=False), ["tenant-alice"])
    assert [each["metadata"]["name"] for each in found] == ["httproutes-v1", "grpcroutes-v1"]
