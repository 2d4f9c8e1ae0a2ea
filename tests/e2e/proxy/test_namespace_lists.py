"""Lists and watches of Namespaces through the proxy: those of tenants that the caller may see, by the rule of
TenantNamespaces."""

from __future__ import annotations

import pytest

from tests.e2e.support.clusters.cluster import E2eCluster
from tests.e2e.support.clusters.tenant_proxy import TenantProxy
from tests.e2e.support.http.https_client import Response
from tests.e2e.support.tenants import Tenants
from tests.e2e.support.visibility import NAMESPACES as TENANT_NAMESPACES
from tests.e2e.support.visibility import (
    PARTIAL,
    ROLEBINDINGS,
    TABLE,
    RbacObjects,
    WatchReader,
    list_names,
    open_watch,
    user_subject,
    wait_until_listed,
)

NAMESPACES = "/api/v1/namespaces"


def test_a_user_lists_the_namespaces_that_they_may_see_in_every_form(
    cluster: E2eCluster, proxy: TenantProxy, tenants: Tenants, access: RbacObjects, unique: str
) -> None:
    """A kube-apiserver refuses the list, and the one through the proxy is that of TenantNamespaces (R-327)."""
    shown, hidden = tenants.create_with_namespace(), tenants.create_with_namespace()
    access.bind(unique, shown, user_subject(unique))
    client = proxy.client(unique)
    cluster.client(unique).get(NAMESPACES).expect(403)
    cluster.wait_until("the list is answered", lambda: client.get(NAMESPACES).status == 200)
    wait_until_listed(client, NAMESPACES, [shown])
    assert list_names(client, TENANT_NAMESPACES) == [shown]
    listed = client.get(NAMESPACES).expect(200)
    [item] = listed["items"]
    stored = tenants.client.get(f"{NAMESPACES}/{shown}").expect(200)
    assert (listed["kind"], listed["apiVersion"]) == ("NamespaceList", "v1")
    assert "annotations" not in item["metadata"]
    assert item["metadata"]["labels"] == stored["metadata"]["labels"]
    assert item["status"] == {"phase": "Active"}
    table = client.get(NAMESPACES, headers={"Accept": TABLE}).expect(200)
    assert [each["cells"][:2] for each in table["rows"]] == [[shown, "Active"]]
    partial = client.get(NAMESPACES, headers={"Accept": PARTIAL}).expect(200)
    assert [each["metadata"]["name"] for each in partial["items"]] == [shown]
    for selector in ("", f"kubernetes.io/metadata.name={hidden}", "a!=b", f"kubernetes.io/metadata.name in ({hidden})"):
        assert set(list_names(client, NAMESPACES, labelSelector=selector)) <= {shown}
    assert list_names(client, NAMESPACES, fieldSelector=f"metadata.name={hidden}") == []
    assert list_names(client, NAMESPACES, fieldSelector=f"metadata.name={shown}") == [shown]


def test_a_watch_follows_grants_and_revocations(
    cluster: E2eCluster, proxy: TenantProxy, tenants: Tenants, access: RbacObjects, unique: str
) -> None:
    first, second = tenants.create_with_namespace(), tenants.create_with_namespace()
    access.bind(unique, first, user_subject(unique))
    client = proxy.client(unique)
    cluster.wait_until("the list is answered", lambda: client.get(NAMESPACES).status == 200)
    with open_watch(client, NAMESPACES) as frames:
        reader = WatchReader(frames)
        access.bind(unique, second, user_subject(unique))
        assert reader.wait_for_event("ADDED", second)["kind"] == "Namespace"
        access.delete(ROLEBINDINGS, unique, second)
        assert "labels" not in reader.wait_for_event("DELETED", second)["metadata"]


def test_pages_continue_within_what_the_user_sees(
    cluster: E2eCluster, proxy: TenantProxy, tenants: Tenants, access: RbacObjects, unique: str
) -> None:
    granted = sorted(tenants.create_with_namespace() for _ in range(3))
    for namespace in granted:
        access.bind(unique, namespace, user_subject(unique))
    client = proxy.client(unique)
    cluster.wait_until("all are listed", lambda: _names_or_none(client.get(NAMESPACES)) == granted)
    first = client.get(NAMESPACES, query={"limit": 2}).expect(200)
    token = first["metadata"]["continue"]
    rest = client.get(NAMESPACES, query={"limit": 2, "continue": token}).expect(200)
    assert [each["metadata"]["name"] for page in (first, rest) for each in page["items"]] == granted
    other = f"{unique}-other"
    access.bind(other, granted[0], user_subject(other))
    wait_until = cluster.wait_until
    wait_until("the other sees one", lambda: _names_or_none(proxy.client(other).get(NAMESPACES)) == granted[:1])
    stolen = proxy.client(other).get(NAMESPACES, query={"limit": 2, "continue": token})
    assert stolen.status == 410 or set(_names_or_none(stolen) or ()) <= {granted[0]}


def test_a_user_who_sees_nothing_gets_the_403_of_the_cluster(
    cluster: E2eCluster, proxy: TenantProxy, unique: str
) -> None:
    """Also for a watch, and without credentials. A hidden namespace and a missing one are the same."""
    client, direct = proxy.client(unique), cluster.client(unique)
    for query in ({}, {"watch": "true"}, {"fieldSelector": "metadata.name=tenant-root"}, {"labelSelector": "a=b"}):
        assert client.get(NAMESPACES, query=query).expect(403) == direct.get(NAMESPACES, query=query).expect(403)
    assert proxy.client().get(NAMESPACES).status in (401, 403)
    hidden, missing = (client.get(f"{NAMESPACES}/{name}").expect(403) for name in ("tenant-root", "tenant-xxxx"))
    assert hidden["message"].replace("tenant-root", "tenant-xxxx") == missing["message"]


def test_who_may_list_all_gets_the_bytes_of_the_cluster(
    cluster: E2eCluster, proxy: TenantProxy, access: RbacObjects, unique: str
) -> None:
    rule = {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get", "list", "watch"]}
    access.create("clusterroles", {"metadata": {"name": f"test:{unique}"}, "rules": [rule]})
    access.bind(unique, "", user_subject(unique), f"test:{unique}")
    cluster.wait_until_allowed(unique, "", verb="list", group="", resource="namespaces")
    query = {"labelSelector": "kubernetes.io/metadata.name in (kube-system, default)"}
    through, direct = (each.client(unique).get(NAMESPACES, query=query) for each in (proxy, cluster))
    assert through.expect(200)["items"] == direct.expect(200)["items"]
    assert len(through.json()["items"]) == 2


def test_a_watch_that_goes_on_after_all_namespaces_were_granted_gets_410(
    cluster: E2eCluster, proxy: TenantProxy, tenants: Tenants, access: RbacObjects, unique: str
) -> None:
    """The cluster would answer it, without the namespaces that were hidden."""
    access.bind(unique, tenants.create_with_namespace(), user_subject(unique))
    client = proxy.client(unique)
    cluster.wait_until("the list is answered", lambda: client.get(NAMESPACES).status == 200)
    version = client.get(NAMESPACES).expect(200)["metadata"]["resourceVersion"]
    rule = {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get", "list", "watch"]}
    access.create("clusterroles", {"metadata": {"name": f"test:{unique}"}, "rules": [rule]})
    access.bind(f"{unique}-all", "", user_subject(unique), f"test:{unique}")
    cluster.wait_until("all are listed", lambda: "default" in (_names_or_none(client.get(NAMESPACES)) or ()))
    with client.stream(NAMESPACES, query={"watch": "true", "resourceVersion": version}) as frames:
        [frame] = frames
    assert (frame["type"], frame["object"]["code"]) == ("ERROR", 410)


@pytest.mark.parametrize("method", ["DELETE", "POST", "PATCH"])
def test_no_write_is_answered_by_the_proxy(
    cluster: E2eCluster, proxy: TenantProxy, tenants: Tenants, access: RbacObjects, unique: str, method: str
) -> None:
    """Neither deletecollection nor anything else is widened."""
    granted = tenants.create_with_namespace()
    access.bind(unique, granted, user_subject(unique))
    client = proxy.client(unique)
    cluster.wait_until("the list is answered", lambda: client.get(NAMESPACES).status == 200)
    path = f"{NAMESPACES}/{granted}" if method == "PATCH" else NAMESPACES
    content_type = "application/merge-patch+json" if method == "PATCH" else "application/json"
    answer = client.request(method, path, {"metadata": {"name": f"{unique}-x"}}, content_type=content_type)
    assert answer.status in (403, 405), answer.body


def _names_or_none(response: Response) -> list[str] | None:
    return [each["metadata"]["name"] for each in response.json()["items"]] if response.status == 200 else None
