"""The quotas of child tenants must fit into the quota of their parent."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from tests.e2e.support.clusters.cluster import E2eCluster, tenants_path
from tests.e2e.support.http.https_client import Response
from tests.e2e.support.tenants import Object, Tenants, manifest


def create(cluster: E2eCluster, tenants: Tenants, namespace: str, quotas: Object) -> Response:
    body = manifest(tenants.new_name(namespace), namespace, spec={"resourceQuotas": quotas})
    return cluster.client().request("POST", tenants_path(namespace), body)


def assert_quota_exceeded(answer: Response, key: str) -> None:
    causes = answer.expect(422)["details"]["causes"]
    assert [cause["field"] for cause in causes] == [f"spec.resourceQuotas[{key}]"]


def test_children_share_what_the_parent_declares(cluster: E2eCluster, tenants: Tenants) -> None:
    parent = tenants.create_with_namespace(spec={"resourceQuotas": {"cpu": "4", "memory": "8Gi"}})
    create(cluster, tenants, parent, {"cpu": "3"}).expect(201)
    assert_quota_exceeded(create(cluster, tenants, parent, {"cpu": "1500m"}), "cpu")
    create(cluster, tenants, parent, {"cpu": 1, "memory": "8Gi"}).expect(201)


def test_an_update_is_checked_like_a_create(cluster: E2eCluster, tenants: Tenants) -> None:
    parent = tenants.create_with_namespace(spec={"resourceQuotas": {"cpu": "4"}})
    name = create(cluster, tenants, parent, {"cpu": "3"}).expect(201)["metadata"]["name"]
    patch = {"spec": {"resourceQuotas": {"cpu": "5"}}}
    kind = "application/merge-patch+json"
    assert_quota_exceeded(
        cluster.client().request("PATCH", tenants_path(parent, name), patch, content_type=kind), "cpu"
    )
    tenants.patch(name, {"spec": {"resourceQuotas": {"cpu": "4"}}}, parent)


def test_the_nearest_ancestor_that_declares_a_key_limits_it(cluster: E2eCluster, tenants: Tenants) -> None:
    grandparent = tenants.create_with_namespace(spec={"resourceQuotas": {"cpu": "2"}})
    parent = tenants.create_with_namespace(grandparent)
    assert_quota_exceeded(create(cluster, tenants, parent, {"cpu": "3"}), "cpu")
    create(cluster, tenants, parent, {"cpu": "2"}).expect(201)


def test_a_key_that_no_ancestor_declares_is_unlimited(cluster: E2eCluster, tenants: Tenants) -> None:
    parent = tenants.create_with_namespace(spec={"resourceQuotas": {"cpu": "2"}})
    create(cluster, tenants, parent, {"memory": "1Ti"}).expect(201)


def test_a_parent_cannot_fall_below_its_children(cluster: E2eCluster, tenants: Tenants) -> None:
    tenant = tenants.create(spec={"resourceQuotas": {"cpu": "4"}})
    name, workload = tenant["metadata"]["name"], tenant["status"]["namespace"]
    tenants.wait_for_namespace(workload)
    create(cluster, tenants, workload, {"cpu": "3"}).expect(201)
    patch = {"spec": {"resourceQuotas": {"cpu": "2"}}}
    kind = "application/merge-patch+json"
    path = tenants_path("tenant-root", name)
    assert_quota_exceeded(cluster.client().request("PATCH", path, patch, content_type=kind), "cpu")
    tenants.patch(name, {"spec": {"resourceQuotas": {"cpu": "3"}}})


def test_parallel_creations_never_exceed_the_parent(cluster: E2eCluster, tenants: Tenants) -> None:
    parent = tenants.create_with_namespace(spec={"resourceQuotas": {"cpu": "3"}})
    bodies = [manifest(tenants.new_name(parent), parent, spec={"resourceQuotas": {"cpu": "1"}}) for _ in range(8)]
    client = cluster.client()
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda body: client.request("POST", tenants_path(parent), body), bodies))
    assert sorted(answer.status for answer in answers) == [201] * 3 + [422] * 5
