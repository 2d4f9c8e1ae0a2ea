"""Lists of all namespaces through the proxy, for a user who may list a kind in some of them."""

from __future__ import annotations

from tests.e2e.support.clusters.cluster import E2eCluster
from tests.e2e.support.clusters.tenant_proxy import TenantProxy
from tests.e2e.support.http.https_client import Client
from tests.e2e.support.tenants import Tenants
from tests.e2e.support.visibility import PARTIAL, ROLEBINDINGS, TABLE, Object, RbacObjects, user_subject

CONFIGMAPS = "/api/v1/configmaps"
READ = {"apiGroups": [""], "resources": ["configmaps", "events"], "verbs": ["get", "list", "watch"]}


def grant(access: RbacObjects, user: str, namespace: str, *rules: Object) -> None:
    """Lets the user read the ConfigMaps of a namespace."""
    access.create_role(user, namespace, *(rules or (READ,)))
    access.bind(user, namespace, user_subject(user), user)


def create(tenants: Tenants, namespace: str, *names: str) -> None:
    for name in names:
        body = {"metadata": {"name": name, "labels": {"for": "test"}}, "data": {"key": "value"}}
        tenants.client.request("POST", f"/api/v1/namespaces/{namespace}/configmaps", body).expect(201)


def keys(client: Client, **query: object) -> list[tuple[str, str]] | None:
    """Namespaces and names in the order of the list, None if it is refused."""
    response = client.get(CONFIGMAPS, query={"labelSelector": "for=test", **query})
    if response.status != 200:
        return None
    return [(each["metadata"]["namespace"], each["metadata"]["name"]) for each in response.json()["items"]]


def test_a_list_has_the_objects_of_the_namespaces_where_the_user_may_list(
    cluster: E2eCluster, proxy: TenantProxy, tenants: Tenants, access: RbacObjects, unique: str
) -> None:
    """In every form, with selectors, and in pages; the objects are those of the cluster."""
    one, two, hidden = sorted(tenants.create_with_namespace() for _ in range(3))
    for namespace in (one, two, hidden):
        create(tenants, namespace, "a", "b", "c")
    grant(access, unique, one)
    grant(access, unique, two)
    client = proxy.client(unique)
    expected = [(namespace, name) for namespace in (one, two) for name in "abc"]
    cluster.wait_until("both are listed", lambda: keys(client) == expected)
    cluster.client(unique).get(CONFIGMAPS).expect(403)
    listed = client.get(CONFIGMAPS, query={"labelSelector": "for=test"}).expect(200)
    assert (listed["kind"], listed["apiVersion"]) == ("ConfigMapList", "v1")
    direct = tenants.client.get(f"/api/v1/namespaces/{two}/configmaps", query={"labelSelector": "for=test"}).expect(200)
    assert listed["items"][3:] == direct["items"]
    assert keys(client, fieldSelector="metadata.name=b") == [(one, "b"), (two, "b")]
    assert keys(client, fieldSelector=f"metadata.namespace={hidden}") == []
    assert keys(client, labelSelector="for!=test,for") == []
    table = client.get(CONFIGMAPS, query={"labelSelector": "for=test"}, headers={"Accept": TABLE}).expect(200)
    assert [row["cells"][0] for row in table["rows"]] == [*"abcabc"]
    partial = client.get(CONFIGMAPS, query={"labelSelector": "for=test"}, headers={"Accept": PARTIAL}).expect(200)
    assert partial["kind"] == "PartialObjectMetadataList"
    assert len(partial["items"]) == 6
    assert client.get(CONFIGMAPS, headers={"Accept": "application/vnd.kubernetes.protobuf"}).status == 406
    assert keys(client, resourceVersion="0") == expected
    assert keys(client, resourceVersion=listed["metadata"]["resourceVersion"], resourceVersionMatch="Exact") == expected


def test_pages_are_those_of_one_state(
    cluster: E2eCluster, proxy: TenantProxy, tenants: Tenants, access: RbacObjects, unique: str
) -> None:
    one, two = sorted(tenants.create_with_namespace() for _ in range(2))
    create(tenants, one, "a", "b", "c")
    create(tenants, two, "a", "b")
    grant(access, unique, one)
    grant(access, unique, two)
    client = proxy.client(unique)
    cluster.wait_until("all are listed", lambda: len(keys(client) or ()) == 5)
    found, token, versions = [], "", set()
    while True:
        page = client.get(CONFIGMAPS, query={"limit": 2, "labelSelector": "for=test", "continue": token}).expect(200)
        found += [(each["metadata"]["namespace"], each["metadata"]["name"]) for each in page["items"]]
        versions.add(page["metadata"]["resourceVersion"])
        if not token:
            create(tenants, two, "new")
        if not (token := page["metadata"].get("continue", "")):
            break
    assert found == [(one, "a"), (one, "b"), (one, "c"), (two, "a"), (two, "b")]
    assert len(versions) == 1
    for wrong in ("x", "e30", token := "bm90IGpzb24"):
        assert client.get(CONFIGMAPS, query={"continue": wrong}).status == 400


def test_a_token_of_another_user_shows_nothing_more(
    cluster: E2eCluster, proxy: TenantProxy, tenants: Tenants, access: RbacObjects, unique: str
) -> None:
    one, two = sorted(tenants.create_with_namespace() for _ in range(2))
    create(tenants, one, "a", "b")
    create(tenants, two, "a", "b")
    grant(access, unique, one)
    grant(access, unique, two)
    grant(access, f"{unique}-x", two)
    client, other = proxy.client(unique), proxy.client(f"{unique}-x")
    cluster.wait_until("all are listed", lambda: len(keys(client) or ()) == 4 and len(keys(other) or ()) == 2)
    query = {"limit": 1, "labelSelector": "for=test"}
    token = client.get(CONFIGMAPS, query=query).expect(200)["metadata"]["continue"]
    assert keys(other, **{"continue": token}) == [(two, "a"), (two, "b")]


def test_refusals_stand(
    cluster: E2eCluster, proxy: TenantProxy, tenants: Tenants, access: RbacObjects, unique: str
) -> None:
    """For kinds that no setting names, for users without a namespace, for writes, and after a revocation."""
    namespace = tenants.create_with_namespace()
    create(tenants, namespace, "a")
    client, direct = proxy.client(unique), cluster.client(unique)
    assert client.get(CONFIGMAPS).expect(403) == direct.get(CONFIGMAPS).expect(403)
    grant(access, unique, namespace, READ, {**READ, "resources": ["services"]})
    cluster.wait_until("the list is answered", lambda: keys(client) == [(namespace, "a")])
    assert client.get("/api/v1/services").expect(403) == direct.get("/api/v1/services").expect(403)
    assert client.request("DELETE", CONFIGMAPS).status in (403, 405)
    access.delete(ROLEBINDINGS, unique, namespace)
    cluster.wait_until("the list is refused", lambda: keys(client) is None)


def test_a_kind_is_listed_where_it_may_be_listed_only(
    cluster: E2eCluster, proxy: TenantProxy, tenants: Tenants, access: RbacObjects, unique: str
) -> None:
    """capsule-proxy asks in one namespace of a tenant for all of them. A right to get, or to list one name, is none."""
    listed, gotten, named = (tenants.create_with_namespace() for _ in range(3))
    for namespace in (listed, gotten, named):
        create(tenants, namespace, "a")
    grant(access, unique, listed)
    grant(access, unique, gotten, {**READ, "verbs": ["get"]})
    grant(access, unique, named, {**READ, "resourceNames": ["a"]})
    client = proxy.client(unique)
    cluster.wait_until("the list is answered", lambda: keys(client) == [(listed, "a")])


def test_lists_that_take_too_much_memory_are_refused_and_can_be_read_in_pages(
    cluster: E2eCluster, proxy: TenantProxy, tenants: Tenants, access: RbacObjects, unique: str
) -> None:
    """A direct list passes through the proxy as it comes; a merged one is in its memory."""
    namespace = tenants.create_with_namespace()
    for number in range(20):
        metadata = {"name": f"large-{number:02}", "labels": {"for": "test"}}
        body = {"metadata": metadata, "data": {"key": "x" * 900_000}}
        tenants.client.request("POST", f"/api/v1/namespaces/{namespace}/configmaps", body).expect(201)
    grant(access, unique, namespace)
    client = proxy.client(unique)
    cluster.wait_until("the list is allowed", lambda: len(keys(client, limit=1) or ()) == 1)
    refused = client.get(CONFIGMAPS)
    assert (refused.status, refused.json()["reason"]) == (429, "TooManyRequests")
    assert "read them in pages, with a limit" in refused.json()["message"]
    found, token = [], ""
    while True:
        # as kubectl asks: pages have fewer objects where they are large
        page = client.get(CONFIGMAPS, query={"limit": 500, "labelSelector": "for=test", "continue": token}).expect(200)
        found += [each["metadata"]["name"] for each in page["items"]]
        token = page["metadata"].get("continue", "")
        if not token:
            break
    assert found == [f"large-{number:02}" for number in range(20)]
    # a list that its client does not read stays in memory
    unread = client.connect()
    unread.request("GET", f"{CONFIGMAPS}?limit=12&labelSelector=for%3Dtest", headers=client.headers)
    assert unread.getresponse().status == 200
    assert 0 < len(keys(client, limit=12) or ()) < 12
    assert client.get(CONFIGMAPS).status == 429
    unread.close()
    cluster.wait_until("the memory is free again", lambda: len(keys(client, limit=12) or ()) == 12)
    # the memory of a refused list is free again
    assert all(len(keys(client, limit=5) or ()) == 5 for _ in range(10))
    direct = client.get(f"/api/v1/namespaces/{namespace}/configmaps").expect(200)
    assert len(direct["items"]) >= 20
