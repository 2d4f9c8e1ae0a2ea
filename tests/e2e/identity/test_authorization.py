"""Authorization at our own server, and the messages of forbidden requests (WIRE-B2, WIRE-B5, WIRE-B8, WIRE-B12 to
WIRE-B16)."""

from __future__ import annotations

import ssl

import pytest

from tests.e2e.support.clusters.cluster import RBAC, ROOT, E2eCluster, tenants_path
from tests.e2e.support.clusters.processes import wait_until
from tests.e2e.support.http.https_client import Client
from tests.e2e.support.tenants import Tenants, manifest

LIST = tenants_path(ROOT)


def grant_rule(cluster: E2eCluster, user: str, rule: dict[str, list[str]]) -> None:
    """Grants a user one rule in the root namespace."""
    path = f"/apis/{RBAC}/v1/namespaces/{ROOT}"
    metadata = {"name": user, "namespace": ROOT}
    role = {"apiVersion": f"{RBAC}/v1", "kind": "Role", "metadata": metadata, "rules": [rule]}
    binding = {
        "apiVersion": f"{RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": metadata,
        "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": user},
        "subjects": [{"apiGroup": RBAC, "kind": "User", "name": user}],
    }
    cluster.client().request("POST", f"{path}/roles", role).expect(201)
    cluster.client().request("POST", f"{path}/rolebindings", binding).expect(201)


def test_a_field_selector_for_one_name_is_authorized_as_that_name(
    cluster: E2eCluster, tenants: Tenants, unique: str
) -> None:
    """Tested with deletecollection, because lists and watches are allowed for every user and filtered instead."""
    name = tenants.create()["metadata"]["name"]
    rule = {
        "apiGroups": ["apps.cozystack.io"],
        "resources": ["tenants"],
        "verbs": ["deletecollection"],
        "resourceNames": [name],
    }
    grant_rule(cluster, unique, rule)
    client, query = cluster.direct_client(unique), {"fieldSelector": f"metadata.name={name}", "dryRun": "All"}
    wait_until("the Role is in effect", lambda: client.request("DELETE", LIST, query=query).status == 200)
    for other in ({}, {"fieldSelector": "metadata.name=another"}, {"fieldSelector": f"metadata.name!={name}"}):
        client.request("DELETE", LIST, query={**other, "dryRun": "All"}).expect(403)
    # deleting the object itself is another verb, which the user does not have
    assert client.request("DELETE", f"{LIST}/{name}", query={"dryRun": "All"}).status == 403


def test_forbidden_names_every_attribute_of_the_request(cluster: E2eCluster, unique: str) -> None:
    client = cluster.direct_client(unique)
    answer = client.get(f"{LIST}/x")
    assert answer.expect(403) == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": answer.json()["message"],
        "reason": "Forbidden",
        "details": {"name": "x", "group": "apps.cozystack.io", "kind": "tenants"},
        "code": 403,
    }
    message = (
        f'tenants.apps.cozystack.io "x" is forbidden: User "{unique}" cannot get resource "tenants" '
        f'in API group "apps.cozystack.io" in the namespace "{ROOT}"'
    )
    assert answer.json()["message"].startswith(message)
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    everywhere = client.request("POST", "/apis/apps.cozystack.io/v1alpha1/tenants", {}).expect(403)
    assert everywhere["details"] == {"group": "apps.cozystack.io", "kind": "tenants"}
    assert everywhere["message"].startswith(
        f'tenants.apps.cozystack.io is forbidden: User "{unique}" cannot create resource "tenants" '
        'in API group "apps.cozystack.io" at the cluster scope'
    )
    status = client.request("PUT", f"{LIST}/x/status", manifest("x")).expect(403)
    assert f'User "{unique}" cannot update resource "tenants/status"' in status["message"]


def test_forbidden_names_a_non_resource_path(cluster: E2eCluster, unique: str) -> None:
    status = cluster.direct_client(unique).get("/metrics").expect(403)
    assert status["message"].startswith(f'forbidden: User "{unique}" cannot get path "/metrics"')
    assert (status["details"], status["reason"]) == ({}, "Forbidden")
    status = cluster.direct_client(unique).request("POST", "/metrics", {}).expect(403)
    assert f'User "{unique}" cannot post path "/metrics"' in status["message"]


@pytest.mark.parametrize(
    "path", ["/healthz/", "/livez/ping", "/readyz/ping", "/version", "/openapi/v2", "/openapi/v3", "/apis", "/metrics"]
)
def test_anonymous_users_may_only_get_the_three_probes(cluster: E2eCluster, path: str) -> None:
    anonymous = Client(cluster.direct_url, ssl._create_unverified_context(), {})
    status = anonymous.get(path).expect(403)
    assert status["message"].startswith(f'forbidden: User "system:anonymous" cannot get path "{path}"')


def test_a_missing_resource_is_forbidden_before_it_is_not_found(cluster: E2eCluster, unique: str) -> None:
    client = cluster.direct_client(unique)
    unknown = client.get("/apis/apps.cozystack.io/v1alpha1/namespaces/x/nothings/y").expect(403)
    assert f'User "{unique}" cannot get resource "nothings"' in unknown["message"]
    assert client.request("PUT", LIST, {}).status == 403
    assert client.request("POST", f"{LIST}/x", {}).status == 403
