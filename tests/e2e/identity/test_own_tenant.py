"""The people of a tenant see their own Tenant, which lies in the parent's namespace, and none of its siblings.

eve, in a group of tenant-alice, has no other rights in tenant-root.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial

import pytest

from tests.e2e.support.clusters.cluster import KUBECTL_PATIENCE, RBAC, ROOT, E2eCluster, tenants_path
from tests.e2e.support.gateways import MERGE
from tests.e2e.support.http.https_client import Client
from tests.e2e.support.http.pace import Pace
from tests.e2e.support.tenants import Tenants
from tests.e2e.support.visibility import (
    GET_TENANTS,
    NAMESPACES,
    ROLEBINDINGS,
    ROLES,
    TABLE,
    RbacObjects,
    WatchReader,
    group_subject,
    list_names,
    open_watch,
    rbac_path,
    user_subject,
    wait_until_listed,
)


@dataclass(frozen=True, slots=True)
class Eve:
    """A person of the tenant `tenant` at one level; `sibling` is a Tenant beside it."""

    user: str
    groups: list[str]
    tenant: str
    sibling: str
    client: Client

    @property
    def namespace(self) -> str:
        return f"tenant-{self.tenant}"

    @property
    def self_role(self) -> str:
        return f"cozy:tenant-self:{self.tenant}"


@pytest.fixture
def eve(cluster: E2eCluster, tenants: Tenants, unique: str) -> Eve:
    tenant, sibling = (tenants.create()["metadata"]["name"] for _ in range(2))
    for each in (tenant, sibling):
        tenants.wait_until_settled(each)
    groups = [f"tenant-{tenant}-view"]
    client = cluster.client(unique, groups)
    found = Eve(unique, groups, tenant, sibling, client)
    wait_until_listed(client, tenants_path(), [tenant])
    cluster.wait_until(
        "the cluster's authorizer has the binding", lambda: client.get(tenants_path(ROOT, tenant)).status == 200
    )
    return found


def test_every_level_and_the_account_get_their_own_tenant_and_no_sibling(
    cluster: E2eCluster, tenants: Tenants, eve: Eve
) -> None:
    account = f"system:serviceaccount:{eve.namespace}:{eve.namespace}"
    people = [(eve.user, [f"{eve.namespace}-{level}"]) for level in ("view", "use", "admin", "super-admin")]
    clients = [cluster.client(user, groups) for user, groups in people]
    for client in (*clients, cluster.client(account)):
        wait_until_listed(client, tenants_path(), [eve.tenant])
        assert client.get(tenants_path(ROOT, eve.tenant)).expect(200)["metadata"]["name"] == eve.tenant
        assert client.get(tenants_path(ROOT, eve.sibling)).status == 403
        assert client.get(tenants_path(ROOT, "root")).status == 403
    for client in clients:
        path = tenants_path(ROOT, eve.tenant)
        assert client.request("PATCH", path, {"spec": {"etcd": True}}, content_type=MERGE).status == 403
        assert client.request("DELETE", path).status == 403


def test_lists_have_the_own_tenant_whatever_selects_it(eve: Eve) -> None:
    """Counts, pages and tables reveal no sibling (R-327)."""
    for path in (tenants_path(), tenants_path(ROOT)):
        for query, expected in (
            ({}, [eve.tenant]),
            ({"limit": 1}, [eve.tenant]),
            ({"resourceVersion": "0"}, [eve.tenant]),
            ({"fieldSelector": f"metadata.name={eve.tenant}"}, [eve.tenant]),
            ({"fieldSelector": f"metadata.name={eve.sibling}"}, []),
            ({"fieldSelector": f"metadata.name!={eve.tenant}"}, []),
            ({"fieldSelector": f"metadata.namespace={ROOT}"}, [eve.tenant]),
        ):
            answer = eve.client.get(path, query=query).expect(200)
            assert [each["metadata"]["name"] for each in answer["items"]] == expected, (path, query)
            assert {"continue", "remainingItemCount"}.isdisjoint(answer["metadata"])
    table = eve.client.get(tenants_path(), headers={"Accept": TABLE}).expect(200)
    assert [row["cells"][0] for row in table["rows"]] == [eve.tenant]
    assert list_names(eve.client, NAMESPACES) == [eve.namespace]


def test_kubectl_gets_watches_waits_for_and_describes_the_own_tenant(
    cluster: E2eCluster, tenants: Tenants, eve: Eve
) -> None:
    def kubectl(*arguments: str) -> str:
        return cluster.kubectl(*arguments, as_user=eve.user, groups=eve.groups).stdout

    lines = kubectl("get", "tenants", "-A", "--no-headers").splitlines()
    assert [line.split()[:2] for line in lines] == [[ROOT, eve.tenant]]
    assert kubectl("get", "tenant", eve.tenant, "-n", ROOT, "--no-headers").split()[0] == eve.tenant
    assert f"Name:         {eve.tenant}" in kubectl("describe", "tenant", eve.tenant, "-n", ROOT)
    kubectl("wait", f"tenant/{eve.tenant}", "-n", ROOT, "--for=condition=Ready", KUBECTL_PATIENCE)
    arguments = ("get", "tenants", "-A", "-w", "-o", 'jsonpath={.metadata.name} {.metadata.labels.e2e}{"\\n"}')
    watching = cluster.start_kubectl(*arguments, as_user=eve.user, groups=eve.groups)
    try:
        cluster.wait_until("kubectl shows the tenant", lambda: eve.tenant in watching.log())
        for name in (eve.sibling, eve.tenant):
            tenants.patch(name, {"metadata": {"labels": {"e2e": "changed"}}})
        cluster.wait_until("kubectl shows the change", lambda: f"{eve.tenant} changed" in watching.log())
    finally:
        watching.stop()
    assert {line.split()[0] for line in watching.log().splitlines()} == {eve.tenant}
    rejected = cluster.kubectl("get", "tenant", eve.sibling, "-n", ROOT, as_user=eve.user, groups=eve.groups, status=1)
    assert "Forbidden" in rejected.stderr
    assert "not found" not in rejected.stderr


@pytest.mark.parametrize("scope", ["everywhere", "namespace", "name"])
def test_a_watch_follows_the_binding_to_the_own_tenant(
    cluster: E2eCluster, tenants: Tenants, eve: Eve, scope: str
) -> None:
    """Within a second, the watch reports that the binding is gone; the controller restores it (ATTACK-05)."""
    path = tenants_path() if scope == "everywhere" else tenants_path(ROOT)
    selector = {"fieldSelector": f"metadata.name={eve.tenant}"} if scope == "name" else {}
    version = eve.client.get(path).expect(200)["metadata"]["resourceVersion"]
    query = {"watch": "true", "allowWatchBookmarks": "true", "resourceVersion": version, **selector}
    pace = Pace(cluster.direct_client())
    with eve.client.stream(path, query=query) as frames:
        seen = WatchReader(frames)
        started = time.monotonic()
        binding = rbac_path(ROLEBINDINGS, ROOT, eve.self_role)
        assert tenants.client.request("DELETE", binding).status == 200
        deleted = seen.wait_for_event("DELETED", eve.tenant)
        assert time.monotonic() - started < pace.limit(1)
        assert set(deleted) == {"apiVersion", "kind", "metadata"}
        seen.wait_for_event("ADDED", eve.tenant)
        tenants.patch(eve.sibling, {"metadata": {"labels": {"e2e": "changed"}}})
        tenants.patch(eve.tenant, {"metadata": {"labels": {"e2e": "changed"}}})
        # the sibling's change came first, and was not sent
        assert next(each for each in frames if each["type"] != "BOOKMARK")["object"]["metadata"]["name"] == eve.tenant


def test_edited_roles_and_bindings_of_the_own_tenant_are_restored(
    cluster: E2eCluster, tenants: Tenants, eve: Eve
) -> None:
    client, role, binding = tenants.client, *(rbac_path(kind, ROOT, eve.self_role) for kind in (ROLES, ROLEBINDINGS))
    rule = {
        "apiGroups": ["apps.cozystack.io"],
        "resources": ["tenants", "tenants/diff", "tenants/explain"],
        "resourceNames": [eve.tenant],
        "verbs": ["get", "list", "watch"],
    }
    subjects = client.get(binding).expect(200)["subjects"]
    assert client.get(role).expect(200)["rules"] == [rule]
    assert [each["name"] for each in subjects] == [
        *(f"{eve.namespace}-{level}" for level in ("view", "use", "admin", "super-admin")),
        eve.namespace,
    ]
    client.request("PATCH", role, {"rules": [{**rule, "verbs": ["*"]}]}, content_type=MERGE).expect(200)
    client.request("PATCH", binding, {"subjects": subjects[:1]}, content_type=MERGE).expect(200)
    cluster.wait_until("the Role is restored", lambda: client.get(role).expect(200)["rules"] == [rule])
    cluster.wait_until("subjects are restored", lambda: client.get(binding).expect(200)["subjects"] == subjects)
    assert client.request("DELETE", role).status == 200
    cluster.wait_until("the Role is back", lambda: client.get(role).status == 200)


def _exists(client: Client, path: str) -> bool:
    return client.get(path).status == 200


def test_nothing_of_a_deleted_tenant_remains_in_its_parents_namespace(
    cluster: E2eCluster, tenants: Tenants, eve: Eve
) -> None:
    """The people see their Tenant until it is gone. Its successor of the same name gets objects of its own."""
    client, path = tenants.client, tenants_path(ROOT, eve.tenant)
    objects = [rbac_path(kind, ROOT, eve.self_role) for kind in (ROLES, ROLEBINDINGS)]
    with open_watch(eve.client, tenants_path()) as frames:
        assert client.request("DELETE", path).status == 200
        WatchReader(frames).wait_for_event("DELETED", eve.tenant)
    tenants.wait_until_gone(path)
    assert [client.get(each).status for each in objects] == [404, 404]
    body = {"apiVersion": "apps.cozystack.io/v1alpha1", "kind": "Tenant", "metadata": {"name": eve.tenant}}
    uid = client.request("POST", tenants_path(ROOT), body).expect(201)["metadata"]["uid"]
    for each in objects:
        tenants.wait(f"{each} is created again", partial(_exists, client, each))
        assert [owner["uid"] for owner in client.get(each).expect(200)["metadata"]["ownerReferences"]] == [uid]


def test_a_role_with_names_shows_tenants_of_these_names_only(
    cluster: E2eCluster, tenants: Tenants, access: RbacObjects, unique: str
) -> None:
    """In a namespace by a Role, and in every namespace by a ClusterRoleBinding; never their siblings."""
    first, second = tenants.create_with_namespace(), tenants.create_with_namespace()
    name = tenants.create(first)["metadata"]["name"]
    other = tenants.create(first)["metadata"]["name"]
    rule = {**GET_TENANTS, "resourceNames": [name]}
    access.create_role(f"{unique}-one", first, rule)
    client = cluster.client(unique)
    with open_watch(client, tenants_path()) as frames:
        seen = WatchReader(frames)
        access.bind(f"{unique}-one", first, user_subject(unique), f"{unique}-one")
        seen.wait_for_event("ADDED", name)
        wait_until_listed(client, tenants_path(), [name])
        assert list_names(client, tenants_path(), fieldSelector=f"metadata.name={other}") == []
        assert list_names(client, NAMESPACES) == []
        access.replace_rules(f"{unique}-one", first, {**GET_TENANTS, "resourceNames": [other]})
        events = {seen.wait_for_event("DELETED", name)["metadata"]["name"]}
        assert events == {name}
        wait_until_listed(client, tenants_path(), [other])
    twins = group_subject(f"{unique}-twins")
    access.create("clusterroles", {"metadata": {"name": f"{unique}:named"}, "rules": [rule]})
    access.bind(f"{unique}-named", "", twins, f"{unique}:named")
    twin = f"/apis/apps.cozystack.io/v1alpha1/namespaces/{second}/tenants"
    body = {"apiVersion": "apps.cozystack.io/v1alpha1", "kind": "Tenant", "metadata": {"name": name}}
    tenants.client.request("POST", twin, body).expect(201)
    reader = cluster.client(f"{unique}b", [f"{unique}-twins"])
    wait_until_listed(reader, tenants_path(), [name, name])
    tenants.client.request("DELETE", f"{twin}/{name}")


@pytest.mark.every_tenant
def test_a_missing_role_is_reported(cluster: E2eCluster, tenants: Tenants) -> None:
    """A binding to a ClusterRole that does not exist grants nothing: Ready is False, with the remedy."""
    name = tenants.create()["metadata"]["name"]
    tenants.wait_until_settled(name)
    client, path = tenants.client, f"/apis/{RBAC}/v1/clusterroles"
    role = client.get(f"{path}/cozy:tenant:use").expect(200)

    def condition(type_: str) -> tuple[str, str]:
        conditions = tenants.get(name)["status"]["conditions"]
        return next(((each["status"], each["reason"]) for each in conditions if each["type"] == type_), ("", ""))

    def events() -> str:
        return cluster.kubectl("describe", "tenant", name, "-n", ROOT).stdout.partition("Events:")[2]

    assert client.request("DELETE", f"{path}/cozy:tenant:use").status == 200
    try:
        expected = ("False", "ClusterRoleMissing")
        cluster.wait_until("Ready is False", lambda: condition("Ready") == expected)
        assert condition("AccessReady") == expected
        cluster.wait_until("an Event says so", lambda: "ClusterRoleMissing" in events())
        logged = [line for line in cluster.server.log().splitlines() if "cozy:tenant:use" in line and "missing" in line]
        assert len(logged) == 1
    finally:
        body = {"metadata": {"name": "cozy:tenant:use"}, "rules": role["rules"]}
        client.request("POST", path, body).expect(201)
    cluster.wait_until("the Tenant is Ready", lambda: condition("Ready")[0] == "True")
    assert condition("AccessReady") == ("True", "Reconciled")


def test_the_wide_table_of_namespaces_shows_tenant_host_and_parent(
    cluster: E2eCluster, tenants: Tenants, unique: str
) -> None:
    foo = tenants.create_with_namespace()
    bar = tenants.create_with_namespace(foo)
    groups = [f"{bar}-view"]
    wait_until_listed(cluster.client(unique, groups), NAMESPACES, [bar])
    table = cluster.kubectl("get", "tenantnamespaces", "-o", "wide", as_user=unique, groups=groups).stdout
    header, row = (line.split() for line in table.splitlines())
    name, parent = bar.removeprefix(f"{foo}-"), foo
    assert header == ["NAME", "STATUS", "AGE", "TENANT", "HOST", "PARENT"]
    assert [*row[:2], *row[3:]] == [bar, "Active", name, f"{name}.{foo.removeprefix('tenant-')}.example.org", parent]
    root = cluster.kubectl("get", "tenantnamespaces", ROOT, "-o", "wide", "--no-headers").stdout.split()
    assert [*root[:2], *root[3:]] == [ROOT, "Active", "root", "example.org"]
