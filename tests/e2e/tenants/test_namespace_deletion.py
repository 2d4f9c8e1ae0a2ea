"""Deleting a namespace deletes the Tenants in it (WIRE-J56), and a terminating one accepts no new Tenants."""

from __future__ import annotations

import pytest

from tests.e2e.support.clusters.cluster import PATIENCE, ROOT, E2eCluster, tenants_path
from tests.e2e.support.tenants import Tenants, manifest

pytestmark = pytest.mark.controller_manager


def test_deleting_a_namespace_deletes_the_tenants_in_it(cluster: E2eCluster, tenants: Tenants) -> None:
    workload = tenants.create_with_namespace()
    inner = tenants.create_with_namespace(workload)
    tenants.create(inner)
    timeout = f"--timeout={PATIENCE:.0f}s"
    cluster.kubectl("delete", "namespace", workload, "--wait=false")
    # the Tenant itself remains, so its namespace may be created again
    cluster.kubectl("wait", f"namespace/{inner}", "--for=delete", timeout)
    tenants.wait_until_gone(tenants_path(workload, inner.removeprefix(f"{workload}-")))


def test_no_tenant_is_created_in_a_terminating_namespace(cluster: E2eCluster, tenants: Tenants) -> None:
    workload = tenants.create_with_namespace()
    client, path = cluster.client(), f"/api/v1/namespaces/{workload}/configmaps"
    blocking = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "kept", "finalizers": ["example.org/keep"]},
    }
    client.request("POST", path, blocking).expect(201)
    cluster.kubectl("delete", "namespace", workload, "--wait=false")
    try:
        namespace = f"/api/v1/namespaces/{workload}"
        tenants.wait(
            "the namespace is terminating", lambda: client.get(namespace).json()["status"]["phase"] == "Terminating"
        )
        answer = client.request("POST", tenants_path(workload), manifest(tenants.new_name(workload), workload))
        assert answer.expect(403)["reason"] == "Forbidden"
    finally:
        body = {"metadata": {"finalizers": None}}
        kind = "application/merge-patch+json"
        client.request("PATCH", f"{path}/kept", body, content_type=kind)


def test_cascading_deletion_deletes_every_nested_namespace(cluster: E2eCluster, tenants: Tenants) -> None:
    outer = tenants.create_with_namespace()
    middle = tenants.create_with_namespace(outer)
    tenants.create_with_namespace(middle)
    name = outer.removeprefix("tenant-")
    cluster.kubectl("delete", "tenant", name, "-n", ROOT, "--cascade=foreground", f"--timeout={PATIENCE:.0f}s")
    for namespace in (middle, outer):
        tenants.wait_until_gone(f"/api/v1/namespaces/{namespace}")
