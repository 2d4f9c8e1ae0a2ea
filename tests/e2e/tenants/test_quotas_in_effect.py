"""Quotas of tenants limit workloads, with kube-apiserver's own quota plugin and a real quota controller."""

from __future__ import annotations

from functools import partial

import pytest

from controller.tenant.rbac_step import ROLES
from tests.e2e.support.clusters.cluster import ROOT, E2eCluster, tenants_path
from tests.e2e.support.clusters.kube import KubeCluster
from tests.e2e.support.pods import Pods
from tests.e2e.support.tenants import Object, Tenants, manifest

QUOTA, POOL, LIMITS = "tenant-quota", "tenant-pool", "tenant-range-limits"


def hard(cluster: E2eCluster, namespace: str, name: str) -> Object | None:
    answer = cluster.client().get(f"/api/v1/namespaces/{namespace}/resourcequotas/{name}")
    found: Object | None = answer.json()["spec"].get("hard") if answer.status == 200 else None
    return found


def wait_for_hard(cluster: E2eCluster, namespace: str, name: str, expected: Object) -> None:
    cluster.wait_until(f"{name} of {namespace} is {expected}", lambda: hard(cluster, namespace, name) == expected)


def refusal(cluster: E2eCluster, tenants: Tenants, namespace: str, quotas: Object) -> str:
    body = manifest(tenants.new_name(namespace), namespace, spec={"resourceQuotas": quotas})
    message: str = cluster.client().request("POST", tenants_path(namespace), body).expect(422)["message"]
    return message


def test_a_quota_has_what_cozystacks_chart_renders(cluster: E2eCluster, tenants: Tenants) -> None:
    """The values of Cozystack's own end-to-end tests. Requests are divided by the ratios of the platform."""
    quotas = {"cpu": "60", "memory": "128Gi", "storage": "200Gi"}
    namespace = tenants.create_with_namespace(spec={"resourceQuotas": quotas})
    expected = {
        "limits.cpu": "60",
        "requests.cpu": "6",
        "limits.memory": "128Gi",
        "requests.memory": "128Gi",
        "requests.storage": "200Gi",
    }
    for name in (QUOTA, POOL):
        wait_for_hard(cluster, namespace, name, expected)


def test_a_key_that_kubernetes_does_not_know_is_rejected_with_the_known_ones(
    cluster: E2eCluster, tenants: Tenants
) -> None:
    for key in ("memry", "limits.storage", "services.clusterip"):
        message = refusal(cluster, tenants, ROOT, {key: "1Gi", "cpu": 1})
        assert f"spec.resourceQuotas[{key}]: Invalid value" in message
        assert "must be cpu, memory, ephemeral-storage, storage, pods," in message
    assert "must be an integer" in refusal(cluster, tenants, ROOT, {"pods": "1500m"})


def test_refusals_have_the_units_of_the_user(cluster: E2eCluster, tenants: Tenants) -> None:
    parent = tenants.create_with_namespace(spec={"resourceQuotas": {"memory": "64Gi"}})
    tenants.create(parent, spec={"resourceQuotas": {"limits.memory": "32Gi"}})
    message = refusal(cluster, tenants, parent, {"memory": "1Ti"})
    assert "1Ti is more than the 32Gi that are left of the parent's 64Gi" in message


def test_a_child_without_quotas_has_a_part_of_the_parents(cluster: E2eCluster, tenants: Tenants) -> None:
    parent = tenants.create_with_namespace(spec={"resourceQuotas": {"pods": 10}})
    child = tenants.create_with_namespace(parent)
    grandchild = tenants.create_with_namespace(child, spec={"resourceQuotas": {"pods": 4}})
    client = cluster.client()
    for namespace, pods in ((parent, "6"), (child, "6"), (grandchild, "4")):
        wait_for_hard(cluster, namespace, POOL, {"pods": pods})
        # containers have limits: the LimitRange is written before the quota
        client.get(f"/api/v1/namespaces/{namespace}/limitranges/{LIMITS}").expect(200)
    assert hard(cluster, child, QUOTA) is None


@pytest.mark.controller_manager
def test_a_pod_beyond_the_quota_is_not_admitted(kube: KubeCluster, tenants: Tenants) -> None:
    quotas = {"cpu": "60", "memory": "128Gi", "storage": "200Gi", "devices.com/nvidia": "1"}
    namespace, pods = tenants.create_with_namespace(spec={"resourceQuotas": quotas}), Pods(kube)
    pods.wait_until_limited(namespace, QUOTA, POOL)
    assert "exceeded quota" in pods.create(namespace, "large", cpu=500).expect(403)["message"]
    pods.create(namespace, "small", cpu=1).expect(201)
    devices = {"devices.com/nvidia": 1}
    pods.create(namespace, "first", **devices).expect(201)
    assert "requests.devices.com/nvidia" in pods.create(namespace, "second", **devices).expect(403)["message"]


@pytest.mark.controller_manager
def test_nobody_can_create_pods_before_the_quota_is_in_effect(kube: KubeCluster, tenants: Tenants) -> None:
    """kube-apiserver admits by status.hard. The resourceVersions of all objects are in the order of their writes."""
    client = kube.client()
    start = client.get("/api/v1/namespaces").json()["metadata"]["resourceVersion"]
    parent = tenants.create_with_namespace(spec={"resourceQuotas": {"pods": 1}})
    for namespace in (parent, tenants.create_with_namespace(parent)):
        bindings = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings"
        paths = [f"{bindings}/{role}" for role in ROLES]
        kube.wait_until("people are bound", partial(client.serves, paths[-1]))
        bound_at = min(int(client.get(path).json()["metadata"]["resourceVersion"]) for path in paths)
        assert limited_at(kube, namespace, start) < bound_at


def limited_at(kube: KubeCluster, namespace: str, start: str) -> int:
    """The version at which `tenant-pool` came into effect, from the history of the namespace's quotas."""
    query = {"watch": "true", "resourceVersion": start, "fieldSelector": f"metadata.name={POOL}"}
    with kube.client().stream(f"/api/v1/namespaces/{namespace}/resourcequotas", query=query) as frames:
        for frame in frames:
            if (frame["object"].get("status") or {}).get("hard"):
                return int(frame["object"]["metadata"]["resourceVersion"])
    raise AssertionError("the watch has ended")


@pytest.mark.controller_manager
def test_what_the_parent_uses_is_not_left_for_a_child(kube: KubeCluster, tenants: Tenants) -> None:
    parent = tenants.create_with_namespace(spec={"resourceQuotas": {"cpu": 10}})
    pods = Pods(kube)
    pods.wait_until_limited(parent, QUOTA, POOL)
    pods.create(parent, "mine", cpu=8).expect(201)
    kube.wait_until(
        "the use is seen",
        lambda: (
            "10 is more than the 2 that are left of the parent's 10"
            in kube.client()
            .request(
                "POST",
                tenants_path(parent),
                manifest("large", parent, spec={"resourceQuotas": {"cpu": 10}}),
                query={"dryRun": "All"},
            )
            .json()
            .get("message", "")
        ),
    )
    tenants.create(parent, spec={"resourceQuotas": {"cpu": 2}})


@pytest.mark.controller_manager
def test_a_child_without_quotas_cannot_use_more_than_its_parent_has(kube: KubeCluster, tenants: Tenants) -> None:
    parent = tenants.create_with_namespace(spec={"resourceQuotas": {"cpu": 4}})
    child, pods = tenants.create_with_namespace(parent), Pods(kube)
    pods.wait_until_limited(parent, QUOTA, POOL)
    pods.wait_until_limited(child, POOL)
    pods.create(child, "three", cpu=3).expect(201)
    kube.wait_until("the parent has one left", lambda: (hard(kube, parent, POOL) or {}).get("limits.cpu") == "1")
    pods.wait_until_limited(parent, POOL)
    assert "exceeded quota: tenant-pool" in pods.create(parent, "two", cpu=2).expect(403)["message"]
    pods.create(parent, "one", cpu=1).expect(201)
    pods.delete(child, "three")
    kube.wait_until("the parent has three more", lambda: (hard(kube, parent, POOL) or {}).get("limits.cpu") == "4")
