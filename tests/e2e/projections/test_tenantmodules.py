"""TenantModules are read and watched by those who may get them, as cozystack's console does it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from apiserver.meta.resource import Object
from tests.e2e.support.clusters.cluster import CORE_GROUP_VERSION, ROOT, E2eCluster
from tests.e2e.support.http.https_client import read_frames_until
from tests.e2e.support.visibility import TABLE, RbacObjects, WatchReader, user_subject

RELEASES = f"/apis/helm.toolkit.fluxcd.io/v2/namespaces/{ROOT}/helmreleases"
MODULES = f"{CORE_GROUP_VERSION}/namespaces/{ROOT}/tenantmodules"
LABEL = "internal.cozystack.io/tenantmodule"
MERGE = "application/merge-patch+json"
RULE: Object = {"apiGroups": ["core.cozystack.io"], "resources": ["tenantmodules"]}


@pytest.fixture
def module(cluster: E2eCluster, unique: str) -> Iterator[str]:
    """The name of a module that a chart has made."""
    labels = {LABEL: "true", "apps.cozystack.io/application.kind": "Etcd", "set": unique}
    body = {
        "apiVersion": "helm.toolkit.fluxcd.io/v2",
        "kind": "HelmRelease",
        "metadata": {"name": unique, "labels": labels},
        "spec": {
            "interval": "5m",
            "chart": {
                "spec": {"chart": "etcd", "version": "2.9.1", "sourceRef": {"kind": "HelmRepository", "name": "x"}}
            },
            "values": {"password": "secret"},
        },
    }
    client = cluster.client()
    client.request("POST", RELEASES, body).expect(201)
    cluster.wait_until("the module is shown", lambda: client.get(f"{MODULES}/{unique}").status == 200)
    yield unique
    client.request("DELETE", f"{RELEASES}/{unique}")


def test_a_module_is_read_listed_and_watched(cluster: E2eCluster, module: str) -> None:
    client = cluster.client()
    shown = client.get(f"{MODULES}/{module}").expect(200)
    assert shown["metadata"]["labels"] == {"apps.cozystack.io/application.kind": "Etcd", "set": module}
    assert (shown["appVersion"], "spec" in shown) == ("2.9.1", False)
    release = client.get(f"{RELEASES}/{module}").expect(200)
    assert shown["metadata"]["uid"] == release["metadata"]["uid"]
    selected: dict[str, object] = {"labelSelector": f"set={module},apps.cozystack.io/application.kind=Etcd"}
    listed = client.get(MODULES, query=selected).expect(200)
    assert listed["kind"] == "TenantModuleList"
    assert [{**each, "kind": "TenantModule", "apiVersion": shown["apiVersion"]} for each in listed["items"]] == [shown]
    table = client.get(MODULES, query=selected, headers={"Accept": TABLE}).expect(200)
    assert [each["name"] for each in table["columnDefinitions"]] == ["Name", "Ready", "Age", "Version"]
    assert client.request("POST", MODULES, {"metadata": {"name": "x"}}).status == 405
    query = {**selected, "watch": "1", "resourceVersion": listed["metadata"]["resourceVersion"]}
    with client.stream(MODULES, query=query) as frames:
        changes: tuple[Object, ...] = ({"note": "x"}, {LABEL: None})
        for change in changes:
            patch = {"metadata": {"labels": change}}
            client.request("PATCH", f"{RELEASES}/{module}", patch, content_type=MERGE).expect(200)
        seen = read_frames_until(frames, "DELETED")
    assert [each["type"] for each in seen] == ["MODIFIED", "DELETED"]
    client.get(f"{MODULES}/{module}").expect(404)


def test_what_a_user_may_get_decides_on_lists_across_namespaces(
    cluster: E2eCluster, access: RbacObjects, module: str, unique: str
) -> None:
    """The right to list shows nothing by itself; a grant sends ADDED, and its end DELETED."""
    client = cluster.client(unique)
    assert client.get(MODULES).status == 403
    lists = {**RULE, "verbs": ["list", "watch"]}
    access.create("clusterroles", {"metadata": {"name": f"{unique}:list"}, "rules": [lists]})
    access.bind(f"{unique}-list", "", user_subject(unique), f"{unique}:list")
    everywhere, selected = f"{CORE_GROUP_VERSION}/tenantmodules", {"labelSelector": f"set={module}"}
    cluster.wait_until("the user may list", lambda: client.get(everywhere, query=selected).status == 200)
    listed = client.get(everywhere, query=selected).expect(200)
    assert listed["items"] == []
    query = {**selected, "watch": "1", "resourceVersion": listed["metadata"]["resourceVersion"]}
    with client.stream(everywhere, query=query) as frames:
        watch = WatchReader(frames)
        access.create_role(f"{unique}-get", ROOT, {**RULE, "verbs": ["get"]})
        access.bind(f"{unique}-get", ROOT, user_subject(unique), f"{unique}-get")
        assert watch.wait_for_event("ADDED", module)["appVersion"] == "2.9.1"
        access.delete("rolebindings", f"{unique}-get", ROOT)
        assert "appVersion" not in watch.wait_for_event("DELETED", module)
