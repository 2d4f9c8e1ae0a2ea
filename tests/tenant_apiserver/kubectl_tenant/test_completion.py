"""The words that kubectl completes behind `kubectl tenant`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from apiserver.meta.resource import Object
from tenant_apiserver.kubectl_tenant.completion import completion
from tenant_apiserver.kubectl_tenant.requests import Kubectl, RequestFailed

_TENANTS = [
    {
        "metadata": {"name": name, "namespace": namespace},
        "status": {"namespace": workload, "host": {"value": f"{name}.example.org"}},
    }
    for name, namespace, workload in (
        ("root", "tenant-root", "tenant-root"),
        ("alice", "tenant-root", "tenant-alice"),
        ("dev", "tenant-alice", "tenant-alice-dev"),
        ("new", "tenant-alice", ""),
    )
]
_KUBECONFIG = {
    "get-contexts": ["admin", "my context"],
    "get-clusters": ["NAME", "one", "two"],
    "get-users": ["NAME", "eve"],
}


class _Kubectl(Kubectl):
    def readable_items(self, path: str, query: Mapping[str, str] | None = None) -> Sequence[Object] | None:
        if "--context=down" in self.command:
            raise RequestFailed("error: no server", 1)
        assert path.endswith("/tenants")
        return [] if "bob" in self.command else _TENANTS

    def lines(self, *arguments: str) -> Sequence[str]:
        return _KUBECONFIG[arguments[1]]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["t"], ["tree\tthe hierarchy, with host, gateway, quota and readiness"]),
        (["-n", "tenant-alice", "wh"], ["who-can-see\tthe bindings whose subjects may get a tenant"]),
        (["tree", "--con"], ["--context\tthe context of the kubeconfig"]),
        (["tree", "--al"], ["--all-namespaces\tall tenants that you may see, which is the default"]),
        (["explain", "--al"], []),
        (["ui", "--o"], ["--open\topen the page in the default browser"]),
        (["--o"], []),
        (["preflight", "--for"], ["--for\tstep to judge"]),
        (["tree", "-o", ""], ["wide", "json", "yaml"]),
        (["tree", "--output=j"], ["json"]),
        (["tree", "-n", ""], ["tenant-alice", "tenant-alice-dev", "tenant-root"]),
        (["tree", "--namespace=tenant-r"], ["tenant-root"]),
        (["tree", "--context", ""], ["admin", "my context"]),
        (["tree", "--cluster", ""], ["one", "two"]),
        (["tree", "--user", ""], ["eve"]),
        (["ui", "--address", ""], ["127.0.0.1", "::1"]),
        (["tree", "--token", ""], []),
        (["tree", ""], ["alice", "dev", "new", "root"]),
        (["tree", "-n", "tenant-alice", ""], ["dev", "new"]),
        (["tree", "-ntenant-alice", "d"], ["dev"]),
        (["quota", "tenant-root/"], ["tenant-root/alice", "tenant-root/root"]),
        (["tree", "--as", "bob", ""], []),
        (["tree", "alice", ""], []),
        (["hosts", ""], []),
        (["explain", ""], ["tenant", "host", "route", "namespace", "user"]),
        (["explain", "tenant", "a"], ["alice"]),
        (["explain", "namespace", "tenant-al"], ["tenant-alice", "tenant-alice-dev"]),
        (["explain", "host", "d"], ["dev.example.org"]),
        (["explain", "user", ""], []),
        (["explain", "user", "eve", "--tenant", "d"], ["dev"]),
        (["tree", "--context=down", ""], []),
    ],
)
def test_flags_values_and_names_are_completed(words: list[str], expected: list[str]) -> None:
    found = completion(words, _Kubectl)
    assert (list(found.words), found.directive) == (expected, 4)


class _Hostile(_Kubectl):
    """A HelmRelease that nobody admitted may give a tenant any domain."""

    def readable_items(self, path: str, query: Mapping[str, str] | None = None) -> Sequence[Object] | None:
        hostile = {"metadata": _TENANTS[1]["metadata"], "status": {"host": {"value": "a\x1b[2J\n$(id)\n:0"}}}
        return [*_TENANTS[:1], hostile]


def test_a_word_that_could_control_the_terminal_is_not_completed() -> None:
    assert completion(["explain", "host", ""], _Hostile).words == ["root.example.org"]


@pytest.mark.parametrize("words", [["diff", "alice", "-f", ""], ["tree", "--kubeconfig", "x"]])
def test_a_file_is_completed_by_the_shell(words: list[str]) -> None:
    assert completion(words, _Kubectl) == ((), 0)
