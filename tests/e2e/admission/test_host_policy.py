"""The host of a Tenant: permission to set it, its form, and its uniqueness."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.support.clusters.cluster import ROOT, ROOT_HOST, E2eCluster, tenants_path
from tests.e2e.support.http.https_client import Client
from tests.e2e.support.tenants import Tenants, manifest

HOST_DENIAL = "tenant.spec.host can only be set or changed by"
MERGE = "application/merge-patch+json"


@pytest.fixture
def tenant_admin(cluster: E2eCluster, unique: str) -> Client:
    """A client that may write Tenants of the root namespace but does not administrate the platform."""
    cluster.grant(unique, "cozy:tenant:admin", ROOT)
    return cluster.client(unique)


def is_host_denial(body: dict[str, Any]) -> bool:
    return body["reason"] == "Forbidden" and HOST_DENIAL in body["message"]


def test_a_tenant_admin_may_not_set_the_host(tenant_admin: Client, tenants: Tenants) -> None:
    """Permission to create Tenants does not include the host (R-242)."""
    body = manifest(tenants.new_name(), spec={"host": "mine.example.com"})
    assert is_host_denial(tenant_admin.request("POST", tenants_path(ROOT), body).expect(403))


def test_a_tenant_admin_may_not_set_the_host_in_a_dry_run(tenant_admin: Client, tenants: Tenants) -> None:
    body = manifest(tenants.new_name(), spec={"host": "mine.example.com"})
    assert is_host_denial(tenant_admin.request("POST", tenants_path(ROOT), body, query={"dryRun": "All"}).expect(403))


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        pytest.param(MERGE, {"spec": {"host": "other.example.com"}}, id="merge patch"),
        pytest.param(MERGE, {"spec": {"host": ""}}, id="clearing it"),
        pytest.param(MERGE, {"spec": {"host": None}}, id="removing it"),
        pytest.param(
            "application/json-patch+json",
            [{"op": "replace", "path": "/spec/host", "value": "other.example.com"}],
            id="JSON patch",
        ),
    ],
)
def test_a_tenant_admin_may_not_change_the_host(
    tenant_admin: Client, tenants: Tenants, unique: str, kind: str, body: Any
) -> None:
    """Not with a merge or JSON patch, and not by removing the host (R-243)."""
    name = tenants.create(spec={"host": f"{unique}.example.com"})["metadata"]["name"]
    answer = tenant_admin.request("PATCH", tenants_path(ROOT, name), body, content_type=kind)
    assert is_host_denial(answer.expect(403))
    assert tenants.get(name)["spec"]["host"] == f"{unique}.example.com"


def test_a_tenant_admin_may_not_change_the_host_by_apply(tenant_admin: Client, tenants: Tenants, unique: str) -> None:
    """Not even with `force` (R-243)."""
    name = tenants.create(spec={"host": f"{unique}.example.com"})["metadata"]["name"]
    body = {
        "apiVersion": "apps.cozystack.io/v1alpha1",
        "kind": "Tenant",
        "metadata": {"name": name},
        "spec": {"host": f"other{unique}.example.com"},
    }
    answer = tenant_admin.request(
        "PATCH",
        tenants_path(ROOT, name),
        body,
        query={"fieldManager": "e2e", "force": "true"},
        content_type="application/apply-patch+yaml",
    )
    assert is_host_denial(answer.expect(403))


def test_a_tenant_admin_may_update_a_tenant_with_an_unchanged_host(
    tenant_admin: Client, tenants: Tenants, unique: str
) -> None:
    """Only a changed host needs the permission (R-250)."""
    name = tenants.create(spec={"host": f"{unique}.example.com"})["metadata"]["name"]
    answer = tenant_admin.request("PATCH", tenants_path(ROOT, name), {"spec": {"etcd": True}}, content_type=MERGE)
    assert answer.expect(200)["spec"].items() >= {"etcd": True, "host": f"{unique}.example.com"}.items()


@pytest.mark.parametrize(
    "group",
    [
        pytest.param("system:masters", id="R-244"),
        pytest.param("system:serviceaccounts:cozy-system", id="R-245"),
        pytest.param("system:serviceaccounts:cozy-cert-manager", id="R-246"),
        pytest.param("system:serviceaccounts:cozy-fluxcd", id="R-247"),
        pytest.param("system:serviceaccounts:kube-system", id="R-248"),
    ],
)
def test_accounts_of_the_platform_may_set_the_host(
    cluster: E2eCluster, tenants: Tenants, unique: str, group: str
) -> None:
    cluster.grant(unique, "cozy:tenant:admin", ROOT)
    body = manifest(tenants.new_name(), spec={"host": f"{unique}.example.com"})
    cluster.client(unique, [group]).request("POST", tenants_path(ROOT), body).expect(201)


@pytest.mark.parametrize(
    "spelling",
    [
        pytest.param("Shop.Example.Com", id="upper case"),
        pytest.param("shop.example.com.", id="trailing dot"),
        pytest.param("*.example.com", id="wildcard"),
        pytest.param("192.0.2.1", id="IPv4 address"),
        pytest.param("-shop.example.com", id="label that begins with a dash"),
        pytest.param("shop_1.example.com", id="underscore"),
    ],
)
def test_only_the_canonical_form_of_a_host_is_accepted(cluster: E2eCluster, tenants: Tenants, spelling: str) -> None:
    body = manifest(tenants.new_name(), spec={"host": spelling})
    status = cluster.client().request("POST", tenants_path(ROOT), body).expect(422)
    assert status["details"]["causes"][0]["field"] == "spec.host"


def test_a_host_must_fit_a_label(cluster: E2eCluster, tenants: Tenants) -> None:
    body = manifest(tenants.new_name(), spec={"host": f"{'a' * 55}.example.com"})
    answer = cluster.client().request("POST", tenants_path(ROOT), body)
    assert answer.status in (403, 422)
    assert "63" in answer.json()["message"]


def test_two_tenants_cannot_have_the_same_host(cluster: E2eCluster, tenants: Tenants, unique: str) -> None:
    """The error names the host (VAP-7)."""
    tenants.create(spec={"host": f"{unique}.example.com"})
    body = manifest(tenants.new_name(), spec={"host": f"{unique}.example.com"})
    answer = cluster.client().request("POST", tenants_path(ROOT), body)
    assert answer.status in (403, 409, 422)
    assert f"{unique}.example.com" in answer.json()["message"]


def test_an_inherited_host_cannot_be_set_on_another_tenant(cluster: E2eCluster, tenants: Tenants) -> None:
    first = tenants.create()["metadata"]["name"]
    body = manifest(tenants.new_name(), spec={"host": f"{first}.{ROOT_HOST}"})
    assert cluster.client().request("POST", tenants_path(ROOT), body).status in (403, 409, 422)
