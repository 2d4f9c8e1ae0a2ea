"""Requests of the garbage collector, the namespace controller and the quota controller (WIRE-D96, WIRE-D97, WIRE-J44 to
WIRE-J47, WIRE-J56)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest

from tests.e2e.support.clusters.cluster import ROOT, E2eCluster, tenants_path
from tests.e2e.support.clusters.kube import KubeCluster
from tests.e2e.support.clusters.processes import wait_until
from tests.e2e.support.http.https_client import Response
from tests.e2e.support.tenants import Tenants, manifest

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
PARTIAL = (
    "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,"
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
)
PARTIAL_LIST = PARTIAL.replace("as=PartialObjectMetadata;", "as=PartialObjectMetadataList;")
NAMESPACES = 100
SECONDS = 400.0
FINALIZER = "example.org/held"


class GarbageCollectorClient:
    """Sends the requests of the metadata client of the garbage collector."""

    def __init__(self, cluster: E2eCluster) -> None:
        self._client = cluster.client()

    def get(self, name: str) -> Response:
        return self._client.get(tenants_path(ROOT, name), headers={"Accept": PARTIAL})

    def patch(self, name: str, metadata: dict[str, Any], content_type: str = MERGE) -> Response:
        path, body, accept = tenants_path(ROOT, name), {"metadata": metadata}, {"Accept": PARTIAL}
        return self._client.request("PATCH", path, body, headers=accept, content_type=content_type)

    def delete(self, name: str, uid: str, policy: str) -> Response:
        body = {
            "kind": "DeleteOptions",
            "apiVersion": "meta.k8s.io/v1",
            "preconditions": {"uid": uid},
            "propagationPolicy": policy,
        }
        return self._client.request("DELETE", tenants_path(ROOT, name), body, headers={"Accept": PARTIAL})


def test_the_requests_of_the_garbage_collector_succeed(cluster: E2eCluster, tenants: Tenants) -> None:
    collector = GarbageCollectorClient(cluster)
    ours = {"apiVersion": "v1", "kind": "Namespace", "name": ROOT}
    ours["uid"] = cluster.client().get(f"/api/v1/namespaces/{ROOT}").expect(200)["metadata"]["uid"]
    created = tenants.create(finalizers=[FINALIZER], ownerReferences=[ours])["metadata"]
    name, uid = created["name"], created["uid"]
    seen = collector.get(name).expect(200)
    assert (seen["kind"], seen["apiVersion"]) == ("PartialObjectMetadata", "meta.k8s.io/v1")
    assert seen["metadata"]["ownerReferences"] == [ours]
    assert collector.delete(name, "another", "Background").expect(409)["reason"] == "Conflict"
    terminating = collector.delete(name, uid, "Background").expect(200)
    assert (terminating["kind"], terminating["metadata"]["finalizers"]) == ("PartialObjectMetadata", [FINALIZER])
    assert collector.patch(name, {"resourceVersion": "1", "finalizers": None}).expect(409)["reason"] == "Conflict"

    def remove_finalizer() -> bool:
        version = collector.get(name).expect(200)["metadata"]["resourceVersion"]
        answer = collector.patch(name, {"resourceVersion": version, "uid": uid, "finalizers": None})
        if answer.status == 409:
            return False
        return bool(answer.expect(200)["kind"] == "PartialObjectMetadata")

    tenants.wait("the collector has removed the finalizer", remove_finalizer)
    tenants.wait_until_gone(tenants_path(ROOT, name))
    assert collector.delete(name, uid, "Background").expect(404)["reason"] == "NotFound"


def test_an_owner_is_removed_by_merge_patch_after_a_strategic_merge_patch_is_rejected(
    cluster: E2eCluster, tenants: Tenants
) -> None:
    """A server that took the first patch for a JSON merge patch would store its directive (WIRE-J45)."""
    collector = GarbageCollectorClient(cluster)
    root = tenants.get("root")["metadata"]
    owner = {"apiVersion": "apps.cozystack.io/v1alpha1", "kind": "Tenant", "name": "root", "uid": root["uid"]}
    created = tenants.create(ownerReferences=[owner])["metadata"]
    name = created["name"]
    directive = {"uid": created["uid"], "ownerReferences": [{"$patch": "delete", "uid": owner["uid"]}]}
    assert collector.patch(name, directive, STRATEGIC).expect(415)["reason"] == "UnsupportedMediaType"
    assert collector.get(name).expect(200)["metadata"]["ownerReferences"] == [owner]

    def remove_owner() -> bool:
        version = collector.get(name).expect(200)["metadata"]["resourceVersion"]
        return collector.patch(name, {"resourceVersion": version, "ownerReferences": []}).status == 200

    tenants.wait("the owner is removed", remove_owner)
    assert "ownerReferences" not in collector.get(name).expect(200)["metadata"]


def test_the_requests_of_the_namespace_controller_succeed(cluster: E2eCluster, tenants: Tenants) -> None:
    workload, client = tenants.create_with_namespace(), cluster.client()
    made = sorted(tenants.create(workload)["metadata"]["name"] for _ in range(3))
    body = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"}
    client.request("DELETE", tenants_path(workload), body, headers={"Accept": PARTIAL_LIST}).expect(200)

    def remaining() -> list[str]:
        listed = client.get(tenants_path(workload), headers={"Accept": PARTIAL_LIST}).expect(200)
        assert listed["kind"] == "PartialObjectMetadataList"
        return [item["metadata"]["name"] for item in listed["items"]]

    tenants.wait("the namespace is empty", lambda: not remaining())
    assert [tenants.exists(name, workload) for name in made] == [False] * 3


@pytest.mark.controller_manager
def test_a_hundred_namespaces_are_deleted_with_their_content(cluster: E2eCluster, tenants: Tenants) -> None:
    outer, client = tenants.create_with_namespace(), cluster.client()
    with ThreadPoolExecutor(8) as pool:
        bodies = [manifest(f"n{number}", outer) for number in range(NAMESPACES)]
        made = list(pool.map(lambda body: client.request("POST", tenants_path(outer), body).expect(201), bodies))
    inner = {tenant["status"]["namespace"] for tenant in made}

    # lists of all namespaces, again and again, would take a tenth of the processor time of the deletion
    def exists(namespace: str) -> bool:
        return client.get(f"/api/v1/namespaces/{namespace}").status == 200

    def is_gone(namespace: str) -> bool:
        return not exists(namespace)

    within: dict[str, Any] = {"seconds": SECONDS, "processes": cluster.processes}
    for namespace in (outer, *inner):
        wait_until("every tenant has its namespace", partial(exists, namespace), **within)
    parent = outer.removeprefix("tenant-")
    client.request("DELETE", tenants_path(ROOT, parent), query={"propagationPolicy": "Foreground"}).expect(200)
    for namespace in (outer, *inner):
        wait_until("all namespaces are deleted", partial(is_gone, namespace), **within)
    # a Tenant is deleted after its Namespace
    tenants.wait_until_gone(tenants_path(ROOT, parent))
    assert client.get(tenants_path(outer)).expect(200)["items"] == []


@pytest.mark.controller_manager
def test_a_quota_counts_tenants_and_rejects_none(kube: KubeCluster, tenants: Tenants) -> None:
    """The quota controller counts Tenants by listing them; kube-apiserver enforces quotas only for its own kinds, as
    docs/tenants.md says."""
    namespace, client = tenants.create_with_namespace(), kube.client()
    hard = {"count/tenants.apps.cozystack.io": "1"}
    body = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few"}, "spec": {"hard": hard}}
    path = f"/api/v1/namespaces/{namespace}/resourcequotas"
    client.request("POST", path, body).expect(201)

    def used() -> str | None:
        status = client.get(f"{path}/few").expect(200)["status"]
        count: str | None = status.get("used", {}).get("count/tenants.apps.cozystack.io")
        return count

    within: dict[str, Any] = {"seconds": SECONDS, "processes": kube.processes}
    wait_until("no Tenant is counted", lambda: used() == "0", **within)
    names = [tenants.create(namespace)["metadata"]["name"] for _ in range(2)]
    wait_until("both Tenants are counted", lambda: used() == "2", **within)
    client.request("DELETE", tenants_path(namespace, names[0])).expect(200)
    wait_until("one Tenant is counted", lambda: used() == "1", **within)
