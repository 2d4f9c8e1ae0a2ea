"""A namespace goes with the Tenants inside it (WIRE-J56), and nothing new comes into one that is going."""

from __future__ import annotations

import pytest

from tests.e2e.support.clusters import PATIENCE, ROOT, E2eCluster, tenants_path
from tests.e2e.support.tenants import Tenants, manifest

pytestmark = pytest.mark.controller_manager


def test_deleting_a_namespace_deletes_the_tenants_in_it(cluster: E2eCluster, tenants: Tenants) -> None:
    workload = tenants.create_with_namespace()
    inner = tenants.create_with_namespace(workload)
    tenants.create(inner)
    patience = f"--timeout={PATIENCE:.0f}s"
    cluster.kubectl("delete", "namespace", workload, "--wait=false")
    # while the Tenant itself remains, its namespace may be made anew
    cluster.kubectl("wait", f"namespace/{inner}", "--for=delete", patience)
    tenants.wait_until_gone(tenants_path(workload, inner.removeprefix(f"{workload}-")))


def test_no_tenant_is_created_in_a_terminating_namespace(cluster: E2eCluster, tenants: Tenants) -> None:
    workload = tenants.create_with_namespace()
    client, path = cluster.client(), f"/api/v1/namespaces/{workload}/configmaps"
    kept = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "kept", "finalizers": ["example.org/keep"]},
    }
    client.request("POST", path, kept).expect(201)
    cluster.kubectl("delete", "namespace", workload, "--wait=false")
    try:
        going = f"/api/v1/namespaces/{workload}"
        tenants.wait(
            "the namespace is terminating", lambda: client.get(going).json()["status"]["phase"] == "Terminating"
        )
        answer = client.request("POST", tenants_path(workload), manifest(tenants.new_name(workload), workload))
        assert answer.expect(403)["reason"] == "Forbidden"
    finally:
        release = {"metadata": {"finalizers": None}}
        kind = "application/merge-patch+json"
        client.request("PATCH", f"{path}/kept", release, content_type=kind)


def test_cascading_deletion_deletes_every_nested_namespace(cluster: E2eCluster, tenants: Tenants) -> None:
    outer = tenants.create_with_namespace()
    middle = tenants.create_with_namespace(outer)
    tenants.create_with_namespace(middle)
    name = outer.removeprefix("tenant-")
    cluster.kubectl("delete", "tenant", name, "-n", ROOT, "--cascade=foreground", f"--timeout={PATIENCE:.0f}s")
    for namespace in (middle, outer):
        tenants.wait_until_gone(f"/api/v1/namespaces/{namespace}")
