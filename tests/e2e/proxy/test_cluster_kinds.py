"""Lists and watches of cluster-scoped kinds through the proxy: by the names that RBAC allows, or by a selector of the
settings."""

from __future__ import annotations

import json

import pytest

from tests.e2e.support.clusters.cluster import RBAC, E2eCluster
from tests.e2e.support.clusters.kube import KubeCluster
from tests.e2e.support.clusters.tenant_proxy import TenantProxy
from tests.e2e.support.http.https_client import Client
from tests.e2e.support.visibility import PARTIAL, TABLE, RbacObjects, WatchReader, list_names, open_watch, user_subject

CLUSTERROLES = f"/apis/{RBAC}/v1/clusterroles"
SHOWN = {"shown-to": "tenants"}


def allow_names(
    access: RbacObjects, user: str, *names: str, verbs: tuple[str, ...] = ("get",), group: str = RBAC, plural: str = ""
) -> None:
    rule = {"apiGroups": [group], "resources": [plural or "clusterroles"], "resourceNames": [*names]}
    access.create("clusterroles", {"metadata": {"name": f"{user}:names"}, "rules": [{**rule, "verbs": [*verbs]}]})
    access.bind(f"{user}:names", "", user_subject(user), f"{user}:names")


def create_roles(access: RbacObjects, *names: str, labels: dict[str, str] | None = None) -> None:
    for name in names:
        access.create("clusterroles", {"metadata": {"name": name, "labels": labels or {}}, "rules": []})


def names_or_none(client: Client, **query: object) -> list[str] | None:
    response = client.get(CLUSTERROLES, query=query)
    return [each["metadata"]["name"] for each in response.json()["items"]] if response.status == 200 else None


def test_a_user_lists_the_objects_that_they_may_get_by_name(
    cluster: E2eCluster, proxy: TenantProxy, access: RbacObjects, unique: str
) -> None:
    """In every form. An object that does not exist is left out, and a selector narrows the list."""
    create_roles(access, f"{unique}:a", f"{unique}:hidden")
    create_roles(access, f"{unique}:b", labels=SHOWN)
    allow_names(access, unique, f"{unique}:a", f"{unique}:b", f"{unique}:missing")
    client = proxy.client(unique)
    shown = [f"{unique}:a", f"{unique}:b"]
    cluster.wait_until("the list is answered", lambda: names_or_none(client) == shown)
    cluster.client(unique).get(CLUSTERROLES).expect(403)
    listed = client.get(CLUSTERROLES).expect(200)
    assert (listed["kind"], listed["apiVersion"]) == ("ClusterRoleList", f"{RBAC}/v1")
    assert "kind" not in listed["items"][0]
    table = client.get(CLUSTERROLES, headers={"Accept": TABLE}).expect(200)
    assert [row["cells"][0] for row in table["rows"]] == shown
    partial = client.get(CLUSTERROLES, headers={"Accept": PARTIAL}).expect(200)
    assert partial["kind"] == "PartialObjectMetadataList"
    assert names_or_none(client, labelSelector="shown-to=tenants") == shown[1:]
    assert names_or_none(client, fieldSelector=f"metadata.name={unique}:hidden") == []
    assert names_or_none(client, fieldSelector=f"metadata.name={unique}:a") == shown[:1]
    assert client.get(CLUSTERROLES, query={"watch": "true"}).status == 403


def test_a_watch_of_names_begins_at_the_list(
    cluster: E2eCluster, proxy: TenantProxy, access: RbacObjects, unique: str
) -> None:
    name = f"{unique}:a"
    create_roles(access, name, f"{unique}:hidden")
    allow_names(access, unique, name, verbs=("get", "list", "watch"))
    client = proxy.client(unique)
    cluster.wait_until("the list is answered", lambda: names_or_none(client) == [name])
    with open_watch(client, CLUSTERROLES) as frames:
        for each in (f"{unique}:hidden", name):
            path = f"{CLUSTERROLES}/{each}"
            body = {"metadata": {"labels": {"changed": "yes"}}}
            cluster.client().request("PATCH", path, body, content_type="application/merge-patch+json").expect(200)
        for frame in frames:
            assert frame["object"]["metadata"].get("name") in (None, name)
            if frame["object"]["metadata"].get("labels", {}).get("changed"):
                break
        access.delete("clusterrolebindings", f"{unique}:names")
        WatchReader(frames).wait_for_event("DELETED", name)


def test_a_class_of_users_lists_by_the_selector_of_the_settings(
    cluster: E2eCluster, proxy: TenantProxy, access: RbacObjects, unique: str
) -> None:
    """No selector of the user widens it, and no one else has it."""
    shown, hidden = f"{unique}:shown", f"{unique}:hidden"
    create_roles(access, shown, labels=SHOWN)
    create_roles(access, hidden)
    client = proxy.client(unique, groups=["class-a"])
    assert names_or_none(client) == [shown]
    table = client.get(CLUSTERROLES, headers={"Accept": TABLE}).expect(200)
    assert [row["cells"][0] for row in table["rows"]] == [shown]
    for selector in ("shown-to!=tenants,shown-to", "!shown-to", "a=b", "shown-to notin (tenants)"):
        assert names_or_none(client, labelSelector=selector) == []
    for selector in ("shown-to in (", "a=b,,", "), b in (c"):
        assert client.get(CLUSTERROLES, query={"labelSelector": selector}).status == 400
    path = f"{CLUSTERROLES}?labelSelector=a%3Db&labelSelector="
    assert client.get(path).expect(200)["items"] == []
    assert names_or_none(proxy.client(f"{unique}-other")) is None
    assert client.get(f"{CLUSTERROLES}/{shown}").status == 403
    assert client.request("DELETE", CLUSTERROLES).status == 403
    with open_watch(client, CLUSTERROLES) as frames:
        create_roles(access, f"{unique}:late", labels=SHOWN)
        for frame in frames:
            assert frame["object"]["metadata"]["name"] != hidden
            if frame["object"]["metadata"]["name"] == f"{unique}:late":
                break


@pytest.mark.parametrize("path", ["/apis/rbac.authorization.k8s.io/..", "/apis/rbac.authorization.k8s.io/v1%3Fx"])
def test_no_version_leads_the_own_requests_of_the_proxy_elsewhere(proxy: TenantProxy, unique: str, path: str) -> None:
    assert proxy.client(unique, groups=["class-a"]).get(f"{path}/clusterroles").status in (400, 403, 404)


def test_kubectl_lists_storage_classes_by_name_and_selected_nodes_need_the_overlay(
    kube: KubeCluster, proxy: TenantProxy, access: RbacObjects, unique: str
) -> None:
    """The columns are those of the cluster."""
    group, client = "storage.k8s.io", kube.client()
    path = f"/apis/{group}/v1/storageclasses"
    for name in (f"{unique}-fast", f"{unique}-hidden"):
        client.request("POST", path, {"metadata": {"name": name}, "provisioner": "example.org/x"}).expect(201)
    allow_names(access, unique, f"{unique}-fast", group=group, plural="storageclasses")
    user = proxy.client(unique)
    kube.wait_until("the list is answered", lambda: user.get(path).status == 200)
    assert list_names(user, path) == [f"{unique}-fast"]
    lines = proxy.kubectl("get", "storageclass", user=unique).stdout.splitlines()
    assert lines[0].split()[:2] == ["NAME", "PROVISIONER"]
    assert [line.split()[:2] for line in lines[1:]] == [[f"{unique}-fast", "example.org/x"]]
    answer = proxy.client(unique, groups=["class-a"]).get("/api/v1/nodes").expect(503)
    assert "does not let the proxy list nodes" in json.dumps(answer)
    for name in (f"{unique}-fast", f"{unique}-hidden"):
        client.request("DELETE", f"{path}/{name}").expect(200)
