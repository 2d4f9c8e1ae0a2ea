"""Errors of kubectl, as the plugin tells them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tenant_apiserver.kubectl_tenant.requests import Kubectl, RequestFailed
from tests.tenant_apiserver.kubectl_tenant.fake_kubectl import fake_kubectl

_WARNING = (
    "Warning: resource tenants/alice is missing the kubectl.kubernetes.io/last-applied-configuration annotation which "
    "is required by kubectl apply. The missing annotation will be patched automatically.\n"
)
_DENIED = 'tenants.apps.cozystack.io "alice" is forbidden: User "bob" cannot patch resource "tenants"'
_PATCHING = f"""\
{_WARNING}Error from server (Forbidden): error when applying patch:
{{"metadata":{{"annotations":{{"a":"b"}}}}}}
to:
Resource: "apps.cozystack.io/v1alpha1, Resource=tenants", GroupVersionKind: "apps.cozystack.io/v1alpha1, Kind=Tenant"
Name: "alice", Namespace: "tenant-root"
for: "my file.yaml": error when patching "my file.yaml": {_DENIED}
"""
_RETRIEVING = f"""\
Error from server (Forbidden): error when retrieving current configuration of:
Resource: "apps.cozystack.io/v1alpha1, Resource=tenants", GroupVersionKind: "apps.cozystack.io/v1alpha1, Kind=Tenant"
Name: "alice", Namespace: "tenant-root"
from server for: "alice.yaml": {_DENIED}
"""
_HINT = "; diff -f writes nothing, and needs the right to"


@pytest.mark.parametrize(
    ("printed", "told"),
    [
        (_PATCHING, f"Error from server (Forbidden): {_DENIED}{_HINT}"),
        (_RETRIEVING, f"Error from server (Forbidden): {_DENIED}{_HINT}"),
        (f"{_WARNING}The Tenant is invalid: spec.host: taken\n", "The Tenant is invalid: spec.host: taken"),
        ('error: the path "x" does not exist\n', 'error: the path "x" does not exist'),
    ],
)
def test_an_apply_that_fails_is_told_in_one_line(tmp_path: Path, printed: str, told: str) -> None:
    """kubectl prints the patch that it would have sent, and warns of a write; the plugin never writes."""
    (tmp_path / "printed").write_text(printed)
    program = fake_kubectl(tmp_path, f"cat {tmp_path}/printed >&2; exit 1")
    with pytest.raises(RequestFailed) as failure:
        Kubectl(command=str(program)).applied("alice.yaml", "tenant-root")
    assert str(failure.value) == told


def test_an_answer_that_is_no_json_is_an_error(tmp_path: Path) -> None:
    program = fake_kubectl(tmp_path, "echo '<html>'")
    with pytest.raises(RequestFailed, match="error: get --raw /version: the answer is no JSON"):
        Kubectl(command=str(program)).get("/version")


@pytest.mark.parametrize(
    ("script", "allowed"),
    [
        ('grep -q \'"verb": "create"\' && echo \'{"status":{"allowed":true}}\'', True),
        ('echo \'{"status":{"allowed":false}}\'', False),
        ("exit 1", False),
    ],
)
def test_a_right_that_the_cluster_does_not_confirm_counts_as_none(tmp_path: Path, script: str, allowed: bool) -> None:
    kubectl = Kubectl(command=str(fake_kubectl(tmp_path, script)))
    assert kubectl.may("create", "apps.cozystack.io", "tenants", "tenant-root") is allowed
