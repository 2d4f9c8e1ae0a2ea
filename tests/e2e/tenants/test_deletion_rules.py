"""Tenants that others depend on cannot be deleted, and permitted deletions complete."""

from __future__ import annotations

from typing import Any

from tests.e2e.support.clusters.cluster import PATIENCE, ROOT, E2eCluster, tenants_path
from tests.e2e.support.tenants import Tenants

ALLOW = "tenant.cozystack.io/allow-cascading-deletion"


def create_family(tenants: Tenants) -> tuple[str, str, str]:
    """Creates a Tenant with one child; returns the Tenant's name and namespace and the child's name."""
    tenant = tenants.create()
    workload = tenant["status"]["namespace"]
    tenants.wait_for_namespace(workload)
    return tenant["metadata"]["name"], workload, tenants.create(workload)["metadata"]["name"]


def delete(cluster: E2eCluster, name: str, **query: Any) -> Any:
    return cluster.client().request("DELETE", tenants_path(ROOT, name), query=query or None)


def test_the_root_tenant_is_never_deleted(cluster: E2eCluster) -> None:
    for policy in ("Background", "Foreground", "Orphan"):
        assert delete(cluster, "root", propagationPolicy=policy).expect(403)["reason"] == "Forbidden"


def test_a_tenant_with_children_cannot_be_deleted(cluster: E2eCluster, tenants: Tenants) -> None:
    name, _, child = create_family(tenants)
    status = delete(cluster, name).expect(409)
    assert child in status["message"]
    assert "deletionTimestamp" not in tenants.get(name)["metadata"]


def test_a_dry_run_is_rejected_like_the_deletion(cluster: E2eCluster, tenants: Tenants) -> None:
    name, _, _ = create_family(tenants)
    delete(cluster, name, dryRun="All").expect(409)


def test_foreground_deletion_deletes_the_children(cluster: E2eCluster, tenants: Tenants) -> None:
    name, workload, _ = create_family(tenants)
    assert delete(cluster, name, propagationPolicy="Foreground").status in (200, 202)
    tenants.wait_until_gone(tenants_path(ROOT, name))
    tenants.wait_until_gone(f"/api/v1/namespaces/{workload}")


def test_the_cascading_deletion_annotation_deletes_the_children(cluster: E2eCluster, tenants: Tenants) -> None:
    name, workload, _ = create_family(tenants)
    tenants.patch(name, {"metadata": {"annotations": {ALLOW: "true"}}})
    assert delete(cluster, name).status in (200, 202)
    tenants.wait_until_gone(tenants_path(ROOT, name))
    tenants.wait_until_gone(f"/api/v1/namespaces/{workload}")


def test_kubectl_deletes_a_family_in_the_foreground(cluster: E2eCluster, tenants: Tenants) -> None:
    name, _, child = create_family(tenants)
    rejected = cluster.kubectl("delete", "tenant", name, "-n", ROOT, status=1)
    assert child in rejected.stderr
    timeout = f"--timeout={PATIENCE:.0f}s"
    cluster.kubectl("delete", "tenant", name, "-n", ROOT, "--cascade=foreground", timeout)
    assert not tenants.exists(name)


def test_a_tenant_without_children_is_deleted_with_its_namespace(cluster: E2eCluster, tenants: Tenants) -> None:
    tenant = tenants.create()
    name, workload = tenant["metadata"]["name"], tenant["status"]["namespace"]
    tenants.wait_for_namespace(workload)
    assert delete(cluster, name).status in (200, 202)
    tenants.wait_until_gone(tenants_path(ROOT, name))
    tenants.wait_until_gone(f"/api/v1/namespaces/{workload}")


def test_deleting_a_collection_rejects_tenants_with_children(
    cluster: E2eCluster, tenants: Tenants, unique: str
) -> None:
    parent = tenants.create(labels={"e2e": unique})
    tenants.wait_for_namespace(parent["status"]["namespace"])
    tenants.create(parent["status"]["namespace"])
    answer = cluster.client().request("DELETE", tenants_path(ROOT), query={"labelSelector": f"e2e={unique}"})
    answer.expect(409)
    assert tenants.exists(parent["metadata"]["name"])


def test_a_finalizer_set_by_a_user_delays_the_deletion(cluster: E2eCluster, tenants: Tenants) -> None:
    name = tenants.create(finalizers=["example.org/keep"])["metadata"]["name"]
    assert delete(cluster, name).status in (200, 202)
    terminating = tenants.get(name)["metadata"]
    assert terminating["deletionTimestamp"]
    assert terminating["finalizers"] == ["example.org/keep"]
    tenants.patch(name, {"metadata": {"finalizers": None}})
    tenants.wait_until_gone(tenants_path(ROOT, name))


def test_no_tenant_request_removes_the_finalizer_of_flux(cluster: E2eCluster, tenants: Tenants) -> None:
    name = tenants.create()["metadata"]["name"]
    path = f"/apis/helm.toolkit.fluxcd.io/v2/namespaces/{ROOT}/helmreleases/tenant-{name}"
    flux = {"metadata": {"finalizers": ["finalizers.fluxcd.io"]}}
    kind = "application/merge-patch+json"
    cluster.client().request("PATCH", path, flux, content_type=kind).expect(200)
    tenants.patch(name, {"metadata": {"finalizers": []}})
    assert "finalizers.fluxcd.io" in cluster.client().get(path).expect(200)["metadata"]["finalizers"]
    assert "finalizers" not in tenants.get(name)["metadata"]
    cluster.client().request("PATCH", path, {"metadata": {"finalizers": None}}, content_type=kind).expect(200)
