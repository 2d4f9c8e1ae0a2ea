"""The keys and amounts of quotas, and the use that is taken, as kube-apiserver and a real quota controller see them."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import pytest

from registry import quantity
from registry.quota_names import LARGEST_WHOLE
from registry.tenant.quota_keys import key_errors, value_errors
from tests.e2e.support.clusters.cluster import tenants_path
from tests.e2e.support.clusters.kube import KubeCluster
from tests.e2e.support.http.https_client import Client, Response
from tests.e2e.support.pods import Pods
from tests.e2e.support.tenants import Object, Tenants, manifest

QUOTAS = "/api/v1/namespaces/default/resourcequotas"
MERGE = "application/merge-patch+json"

COUNTS = ("pods", "count/secrets", "count/widgets.example.org", "gold.storageclass.storage.k8s.io/requests.storage")
AMOUNTS = (
    *("0", "1", "1000m", "1e3", "0.1e1", "1.5Ki", "1Mi", "8Pi", "1P", "1e15", "9007199254740992", "9223372036854775"),
    *("1.5", "1500m", "1n", "1000.0000001", "9223372036854775807m"),
    *("9223372036854776", "9Pi", "10Pi", "100000000000000000000m", "1Ei", "7Ei", "1234567890123456789"),
)
ACCEPTED_BY_CHANCE = ("0.9999", "10P", "100P", "1e16", "1E", "2Ei", "6Ei", "9223372036854775807")
"""kube-apiserver rounds the first, and computes the thousandths of the others in too few bits."""

COUNTED = (
    *("count/pods", "count/secrets", "count/endpoints", "count/deployments.apps", "count/jobs.batch"),
    *("count/horizontalpodautoscalers.autoscaling", "count/poddisruptionbudgets.policy", "hugepages-2Mi"),
    *("count/leases.coordination.k8s.io", "requests.nvidia.com/gpu", "requests.storage", "services.nodeports"),
    *("count/services", "services", "count/configmaps", "configmaps", "count/resourcequotas", "resourcequotas"),
    *("gold.storageclass.storage.k8s.io/requests.storage", "gpu.deviceclass.resource.k8s.io/devices"),
    *("count/roles.rbac.authorization.k8s.io", "count/ingresses.networking.k8s.io"),
    *("gold.storageclass.storage.k8s.io/persistentvolumeclaims", "requests.deviceclass.resource.kubernetes.io/gpu"),
)
UNCOUNTED = (
    *("count/cpu", "count/Pods", "count/pods.core", "count/events", "count/events.events.k8s.io", "count/bindings"),
    *("count/deployment.apps", "count/deployments.extensions", "count/services.nodeports", "count/nodes"),
    *("count/ingress.networking.k8s.io", "count/clusterroles.rbac.authorization.k8s.io"),
    *("count/customresourcedefinitions.apiextensions.k8s.io", "count/storageclasses.storage.k8s.io"),
    *("count/apiservices.apiregistration.k8s.io", "count/tokenreviews.authentication.k8s.io"),
    "count/localsubjectaccessreviews.authorization.k8s.io",
    *("kubernetes.io/cpu", "requests.kubernetes.io/cpu", "requests.x.kubernetes.io/y", "limits.nvidia.com/gpu"),
    *("gold.storageclass.storage.k8s.io/pods", "gpu.deviceclass.resource.k8s.io/claims"),
)


def resource_quota(hard: Mapping[str, str]) -> Object:
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "keys"}, "spec": {"hard": dict(hard)}}


def test_an_amount_that_a_tenant_can_declare_is_none_that_kube_apiserver_rejects(kube: KubeCluster) -> None:
    client = kube.client()

    def is_accepted(key: str, value: str) -> bool:
        answer = client.request("POST", QUOTAS, resource_quota({key: value}), query={"dryRun": "All"})
        assert answer.status == 201 or "must be an integer" in answer.expect(422)["message"]
        return answer.status == 201

    pairs = list(itertools.product(COUNTS, AMOUNTS))
    assert {pair: is_accepted(*pair) for pair in pairs} == {pair: not value_errors(*pair) for pair in pairs}
    for value in ACCEPTED_BY_CHANCE:
        assert is_accepted("count/secrets", value)
        assert value_errors("count/secrets", value)
        assert value == "0.9999" or quantity.parse(value) > LARGEST_WHOLE
    assert not value_errors("requests.storage", "10Pi")
    assert is_accepted("requests.storage", "10Pi")


@pytest.mark.controller_manager
def test_a_key_that_a_tenant_can_have_is_one_that_the_quota_controller_counts(kube: KubeCluster) -> None:
    client = kube.client()
    keys = (*COUNTED, *UNCOUNTED)
    client.request("POST", QUOTAS, resource_quota(dict.fromkeys(keys, "9"))).expect(201)
    try:
        path = f"{QUOTAS}/keys"
        kube.wait_until("the keys are counted", lambda: client.get(path).json().get("status", {}).get("used"))
        used = client.get(path).expect(200)["status"]["used"]
    finally:
        client.request("DELETE", f"{QUOTAS}/keys").expect(200)
    assert {key: key in used for key in keys} == {key: not key_errors(key) for key in keys}
    for each in ("services", "configmaps", "resourcequotas"):
        assert used[each] == used[f"count/{each}"]
    for group, path in (("", "/api/v1"), *_built_in_groups(client)):
        kinds = [each for each in client.get(path).expect(200)["resources"] if each["namespaced"]]
        plurals = [each["name"] for each in kinds if {"create", "list", "watch"} <= set(each["verbs"])]
        unknown = [each for each in plurals if key_errors(f"count/{each}{group}")]
        assert unknown == (["events"] if "events" in plurals else []), path


def _built_in_groups(client: Client) -> list[tuple[str, str]]:
    """The ends of the keys of the groups of Kubernetes, and of the CRDs with such a name, and their paths."""
    groups = client.get("/apis").expect(200)["groups"]
    own = [each for each in groups if "." not in each["name"] or each["name"].endswith(".k8s.io")]
    return [(f".{each['name']}", f"/apis/{version['groupVersion']}") for each in own for version in each["versions"]]


@pytest.mark.controller_manager
@pytest.mark.parametrize(
    "resource",
    [
        pytest.param("hugepages-foo", id="no size of pages"),
        pytest.param("hugepages-0", id="pages of nothing"),
        pytest.param("hugepages-1500m", id="pages of a part of a byte"),
        pytest.param("requests.nvidia.com/gpu", id="requests of an extended resource"),
    ],
)
def test_a_resource_that_no_pod_can_have_is_none_of_a_quota(kube: KubeCluster, resource: str) -> None:
    pods = Pods(kube)
    pods.wait_until_limited("default")
    assert resource in pods.create("default", "none", **{"cpu": 1, resource: 1}).expect(422)["message"]
    key = f"requests.{resource}" if "/" in resource else resource
    assert "limits nothing" in key_errors(key)[0]


def test_a_key_that_counts_nothing_is_rejected(kube: KubeCluster, tenants: Tenants) -> None:
    body = manifest(tenants.new_name(), spec={"resourceQuotas": {"count/cpu": "1", "count/secrets": "10Pi"}})
    message = kube.client().request("POST", tenants_path("tenant-root"), body).expect(422)["message"]
    assert "spec.resourceQuotas[count/cpu]" in message
    assert "limits nothing: Kubernetes counts no cpu; must be count/ and configmaps" in message
    assert "spec.resourceQuotas[count/secrets]" in message
    assert f"must be no more than {LARGEST_WHOLE}" in message


class Family:
    """A tenant with a quota of three Pods, all of which its child declares and uses."""

    def __init__(self, kube: KubeCluster, tenants: Tenants) -> None:
        self._kube, self._tenants, self.pods = kube, tenants, Pods(kube)
        self.parent = tenants.create_with_namespace(spec={"resourceQuotas": {"pods": 3}})
        child = tenants.create(self.parent, spec={"resourceQuotas": {"pods": 3}})
        self.path = tenants_path(self.parent, child["metadata"]["name"])
        self.child = child["status"]["namespace"]
        self.pods.wait_until_limited(self.parent, "tenant-quota", "tenant-pool")
        self.pods.wait_until_limited(self.child, "tenant-quota", "tenant-pool")
        for number in range(3):
            self.pods.create(self.child, f"p{number}", cpu=1).expect(201)

    def declare(self, pods: int | None) -> Response:
        body = {"spec": {"resourceQuotas": {"pods": pods}}}
        return self._kube.client().request("PATCH", self.path, body, content_type=MERGE)

    def left(self) -> str:
        """The words that tell what another child could declare now, empty if it could have everything."""
        body = manifest("another", self.parent, spec={"resourceQuotas": {"pods": 3}})
        answer = self._kube.client().request("POST", tenants_path(self.parent), body, query={"dryRun": "All"})
        return "" if answer.status == 201 else str(answer.expect(422)["message"].rpartition("Forbidden: ")[2])

    def of_parent(self) -> str:
        """The Pods that the parent's own namespace may use, as is in effect."""
        path = f"/api/v1/namespaces/{self.parent}/resourcequotas/tenant-pool"
        hard = self._kube.client().get(path).expect(200).get("status", {}).get("hard") or {}
        return str(hard.get("pods", ""))


ALL_TAKEN = "3 is more than the 0 that are left of the parent's 3"


@pytest.mark.controller_manager
def test_what_a_child_uses_is_taken_although_its_quota_is_lowered_or_removed(
    kube: KubeCluster, tenants: Tenants
) -> None:
    family = Family(kube, tenants)
    for pods in (0, None):
        family.declare(pods).expect(200)
        kube.wait_until("the use is seen", lambda: family.left() == ALL_TAKEN)
        kube.wait_until("the parent has none", lambda: family.of_parent() == "0")
        assert "exceeded quota" in family.pods.create(family.parent, "mine", cpu=1).expect(403)["message"]
    family.declare(1).expect(200)
    for number in range(3):
        family.pods.delete(family.child, f"p{number}")
    kube.wait_until("the rest is free", lambda: family.of_parent() == "2")
    kube.wait_until("the use has fallen", lambda: "the 2 that are left" in family.left())


@pytest.mark.controller_manager
def test_what_a_deleted_child_uses_is_taken_until_its_namespace_is_gone(kube: KubeCluster, tenants: Tenants) -> None:
    family, client = Family(kube, tenants), kube.client()
    pod = f"/api/v1/namespaces/{family.child}/pods/p0"
    client.request("PATCH", pod, {"metadata": {"finalizers": ["example.org/slow"]}}, content_type=MERGE).expect(200)
    family.declare(1).expect(200)
    client.request("DELETE", family.path).expect(200)
    kube.wait_until("the namespace is being deleted", lambda: _is_terminating(kube, family.child))
    message = family.declare(0).expect(422)["message"]
    assert "spec.resourceQuotas[pods]: Forbidden: cannot be lowered or removed while the tenant is being" in message
    kube.wait_until("the other Pods are gone", lambda: "the 2 that are left" in family.left())
    client.request("PATCH", pod, {"metadata": {"finalizers": None}}, content_type=MERGE)
    kube.wait_until("everything is free", lambda: family.left() == "")
    kube.wait_until("the parent has all", lambda: family.of_parent() == "3")


def _is_terminating(kube: KubeCluster, namespace: str) -> bool:
    found = kube.client().get(f"/api/v1/namespaces/{namespace}")
    return found.status == 404 or "deletionTimestamp" in found.json()["metadata"]


@pytest.mark.controller_manager
def test_a_pool_of_all_pods_also_counts_those_that_have_ended(kube: KubeCluster, tenants: Tenants) -> None:
    """As `count/pods` does; `pods` would leave them out."""
    parent = tenants.create_with_namespace(spec={"resourceQuotas": {"count/pods": 2}})
    child, pods = tenants.create_with_namespace(parent), Pods(kube)
    pods.wait_until_limited(child, "tenant-pool")
    for name in ("first", "second"):
        pods.create(child, name, cpu=1).expect(201)
        path = f"/api/v1/namespaces/{child}/pods/{name}/status"
        kube.client().request("PATCH", path, {"status": {"phase": "Succeeded"}}, content_type=MERGE).expect(200)
    refused = pods.create(child, "third", cpu=1).expect(403)["message"]
    assert "exceeded quota: tenant-pool, requested: count/pods=1" in refused
