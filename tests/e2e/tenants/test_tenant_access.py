"""Access to a Tenant and its namespace: RoleBindings, access levels and ServiceAccounts."""

from __future__ import annotations

from functools import partial

import pytest

from tests.e2e.support.clusters.cluster import RBAC, ROOT, E2eCluster, tenants_path
from tests.e2e.support.namespace_content import NamespaceContent
from tests.e2e.support.tenants import Tenants, manifest

LEVELS = ("view", "use", "admin", "super-admin")


def _has_all_bindings(content: NamespaceContent, namespace: str) -> bool:
    path = f"/apis/{RBAC}/v1/namespaces/{namespace}/rolebindings"
    return len(content.client.get(path).expect(200)["items"]) == 5


def test_the_role_bindings_of_a_tenant_namespace(
    cluster: E2eCluster, tenants: Tenants, content: NamespaceContent
) -> None:
    """The namespace of the tenant has bindings to the ClusterRoles cozy:tenant* (R-024)."""
    foo = tenants.create_with_namespace()
    bar = tenants.create_with_namespace(foo)
    path = f"/apis/{RBAC}/v1/namespaces/{bar}/rolebindings"
    content.wait_until("all RoleBindings exist", partial(_has_all_bindings, content, bar))
    found = {each["metadata"]["name"]: each for each in content.client.get(path).expect(200)["items"]}
    assert set(found) == {"cozy:tenant", *(f"cozy:tenant:{level}" for level in LEVELS)}
    assert all(each["roleRef"]["name"] == name for name, each in found.items())
    groups = [each["name"] for each in found["cozy:tenant:admin"]["subjects"] if each["kind"] == "Group"]
    assert groups == [f"{each}-{level}" for each in (bar, foo, ROOT) for level in ("admin", "super-admin")]


def may(
    cluster: E2eCluster, user: str, groups: list[str], verb: str, group: str, resource: str, namespace: str
) -> bool:
    attributes = {"verb": verb, "group": group, "resource": resource, "namespace": namespace}
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": user, "groups": groups, "resourceAttributes": attributes},
    }
    answer = cluster.client().request("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", body).expect(201)
    return bool(answer["status"]["allowed"])


_GATEWAY_API = "gateway.networking.k8s.io"


@pytest.mark.parametrize(
    ("verb", "group", "resource"),
    [
        pytest.param("create", _GATEWAY_API, "httproutes", id="R-020 routes"),
        pytest.param("create", _GATEWAY_API, "gateways", id="R-020 gateways"),
        pytest.param("patch", "", "namespaces", id="R-021 namespaces"),
        pytest.param("update", "cozystack.io", "packages", id="R-022 packages"),
        pytest.param("create", "gateway.cozystack.io", "tenantgateways", id="R-023 tenantgateways"),
        pytest.param("patch", "", "secrets", id="the secret of chart values"),
        pytest.param("create", RBAC, "rolebindings", id="role bindings"),
        pytest.param("delete", "", "resourcequotas", id="quotas"),
    ],
)
@pytest.mark.parametrize("level", ["admin", "super-admin"])
def test_no_access_level_grants_permissions_on_the_platform(
    cluster: E2eCluster, tenants: Tenants, content: NamespaceContent, level: str, verb: str, group: str, resource: str
) -> None:
    foo = tenants.create_with_namespace()
    groups = [f"{foo}-{level}", "system:authenticated"]
    content.wait_until(
        "the RoleBindings of the tenant are in effect",
        lambda: may(cluster, "someone", groups, "create", "apps.cozystack.io", "tenants", foo),
    )
    assert not may(cluster, "someone", groups, verb, group, resource, foo)


def test_access_levels_are_cumulative_and_limited_to_their_tenant(
    cluster: E2eCluster, tenants: Tenants, content: NamespaceContent
) -> None:
    """An administrator may create child tenants, a viewer may only read (R-025, PEER-25)."""
    foo, other = tenants.create_with_namespace(), tenants.create_with_namespace()
    for namespace in (foo, other):
        content.wait_until("all RoleBindings exist", partial(_has_all_bindings, content, namespace))
    expected = {"view": (True, False), "use": (True, False), "admin": (True, True), "super-admin": (True, True)}

    def permissions() -> dict[str, tuple[bool, ...]]:
        return {
            level: tuple(
                may(cluster, "someone", [f"{foo}-{level}"], verb, "apps.cozystack.io", "tenants", foo)
                for verb in ("list", "create")
            )
            for level in LEVELS
        }

    content.wait_until("the RoleBindings are in effect", lambda: permissions() == expected)
    assert not may(cluster, "someone", [f"{foo}-super-admin"], "list", "apps.cozystack.io", "tenants", other)
    admin = cluster.client(f"admin{foo}", [f"{foo}-admin"])
    admin.request("POST", tenants_path(foo), manifest(tenants.new_name(foo), foo)).expect(201)


def test_the_account_of_a_parent_reads_child_tenants_and_not_vice_versa(
    cluster: E2eCluster, tenants: Tenants, content: NamespaceContent
) -> None:
    """The ServiceAccount of a tenant may read its descendants (R-026)."""
    foo = tenants.create_with_namespace()
    bar = tenants.create_with_namespace(foo)

    def may_read(account: str, namespace: str) -> bool:
        user = f"system:serviceaccount:{account}:{account}"
        return may(cluster, user, [], "get", "apps.cozystack.io", "tenants", namespace)

    content.wait_until(
        "the ServiceAccounts are bound", lambda: may_read(foo, bar) and may_read(bar, bar) and may_read(foo, foo)
    )
    assert may_read(ROOT, bar)
    assert not may_read(bar, foo)
    content.client.get(f"/api/v1/namespaces/{bar}/serviceaccounts/{bar}").expect(200)
