"""Deleting a Tenant: its objects are deleted first and in order, and a condition says what the deletion waits for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.e2e.support.clusters import credentials
from tests.e2e.support.clusters.cluster import PATIENCE, ROOT, E2eCluster, tenants_path
from tests.e2e.support.clusters.processes import free_port, run_command, wait_until
from tests.e2e.support.http.https_client import Client
from tests.e2e.support.tenants import Tenants, manifest

MERGE = "application/merge-patch+json"
FINALIZER = "apps.cozystack.io/tenant"
RELEASES = "/apis/helm.toolkit.fluxcd.io/v2/namespaces/{}/helmreleases/tenant-{}"


ROOT_RELEASE = {
    "metadata": {
        "name": "tenant-root",
        "labels": {
            "apps.cozystack.io/application.kind": "Tenant",
            "apps.cozystack.io/application.group": "apps.cozystack.io",
            "apps.cozystack.io/application.name": "root",
        },
    },
    "spec": {"interval": "5m0s", "chartRef": {"kind": "ExternalArtifact", "name": "tenant"}, "values": {}},
}


def patch(client: Client, path: str, **metadata: Any) -> None:
    client.request("PATCH", path, {"metadata": metadata}, content_type=MERGE).expect(200)


def condition_message(tenants: Tenants, name: str, type_: str) -> str:
    """The message of a condition, empty if there is no such condition."""
    answer = tenants.client.get(tenants_path(ROOT, name))
    conditions = answer.json().get("status", {}).get("conditions", [])
    return next((each["message"] for each in conditions if each["type"] == type_), "")


@pytest.mark.controller_manager
def test_a_condition_says_what_a_terminating_tenant_waits_for(cluster: E2eCluster, tenants: Tenants) -> None:
    client = cluster.client()
    workload = tenants.create_with_namespace(spec={"gateway": True})
    name = workload.removeprefix("tenant-")
    child = tenants.create_with_namespace(workload)
    gateway = f"/apis/gateway.cozystack.io/v1alpha1/namespaces/{workload}/tenantgateways/cozystack"
    tenants.wait("the TenantGateway exists", lambda: client.get(gateway).status == 200)
    release = RELEASES.format(ROOT, name)
    assert FINALIZER in client.get(release).expect(200)["metadata"]["finalizers"]
    patch(client, release, finalizers=[FINALIZER, "finalizers.fluxcd.io"])
    client.request("DELETE", tenants_path(ROOT, name), query={"propagationPolicy": "Foreground"}).expect(200)
    tenants.wait(
        "the deletion waits for Flux", lambda: "finalizers.fluxcd.io" in condition_message(tenants, name, "Terminating")
    )
    for path in (f"/api/v1/namespaces/{child}", tenants_path(workload, child.removeprefix(f"{workload}-"))):
        assert client.get(path).status == 404
    assert client.get(gateway).status == 200
    client.update(release, _without_finalizer_of_flux).expect(200)
    tenants.wait_until_gone(tenants_path(ROOT, name))
    for path in (gateway, f"/api/v1/namespaces/{workload}", release):
        assert client.get(path).status == 404


def _without_finalizer_of_flux(release: dict[str, Any]) -> dict[str, Any]:
    finalizers = [each for each in release["metadata"]["finalizers"] if each != "finalizers.fluxcd.io"]
    return {**release, "metadata": {**release["metadata"], "finalizers": finalizers}}


@pytest.mark.controller_manager
def test_a_tenant_with_ten_thousand_annotations_is_reconciled_changed_and_deleted(
    cluster: E2eCluster, tenants: Tenants
) -> None:
    """Its managedFields have as many values again, and do not count."""
    annotations = {f"k{number}": "" for number in range(10_001)}
    name = tenants.create(annotations=annotations)["metadata"]["name"]
    tenants.wait_for_namespace(f"tenant-{name}")
    patch(cluster.client(), tenants_path(ROOT, name), annotations={"k0": None, "more": "yes"})
    tenants.wait_until_settled(name)
    cluster.client().request("DELETE", tenants_path(ROOT, name)).expect(200)
    tenants.wait_until_gone(tenants_path(ROOT, name))


@pytest.mark.controller_manager
def test_deleting_the_helmrelease_deletes_the_tenant(cluster: E2eCluster, tenants: Tenants) -> None:
    workload = tenants.create_with_namespace()
    cluster.kubectl("delete", "helmrelease", workload, "-n", ROOT, f"--timeout={PATIENCE:.0f}s")
    assert cluster.client().get(f"/api/v1/namespaces/{workload}").status == 404


def test_describe_shows_the_events_of_a_tenant(cluster: E2eCluster, tenants: Tenants, unique: str) -> None:
    name = tenants.create()["metadata"]["name"]
    tenants.wait_until_settled(name)

    def events() -> str:
        return cluster.kubectl("describe", "tenant", name, "-n", ROOT).stdout.partition("Events:")[2]

    tenants.wait("there is an event", lambda: "Reconciled" in events())
    name = tenants.new_name()
    cluster.client().request("POST", "/api/v1/namespaces", {"metadata": {"name": f"tenant-{name}"}}).expect(201)
    tenants.client.request("POST", tenants_path(ROOT), manifest(name)).expect(201)
    tenants.wait("there is a warning", lambda: "NamespaceConflict" in events())
    assert "Warning" in events()
    cluster.client().request("DELETE", f"/api/v1/namespaces/tenant-{name}")


def test_load_balancer_addresses_are_counted(cluster: E2eCluster, tenants: Tenants) -> None:
    workload = tenants.create_with_namespace()
    name, client = workload.removeprefix("tenant-"), cluster.client()
    path = f"/api/v1/namespaces/{workload}/services"
    service = {"metadata": {"name": "lb"}, "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]}}
    client.request("POST", path, service).expect(201)
    status = {"status": {"loadBalancer": {"ingress": [{"hostname": "lb.example"}, {"ip": "192.0.2.1"}]}}}
    client.request("PATCH", f"{path}/lb/status", status, content_type=MERGE).expect(200)
    tenants.wait("the address is counted", lambda: tenants.get(name)["status"].get("externalIPsCount") == 1)


def test_a_tenant_can_be_deleted_without_controllers(tmp_path: Path) -> None:
    port, data = free_port(), tmp_path / "data"
    server = run_command(
        "standalone",
        f"--data-dir={data}",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        "--controllers=none",
        log=tmp_path / "log",
    )
    try:
        wait_until("the kubeconfig is written", (data / "kubeconfig").is_file, processes=[server])
        admin = credentials.from_kubeconfig(data / "kubeconfig")
        client = Client(f"https://127.0.0.1:{port}", admin.tls, admin.headers)
        wait_until("the server is ready", lambda: client.serves("/readyz"), processes=[server])
        client.request("POST", "/api/v1/namespaces", {"metadata": {"name": ROOT}}).expect(201)
        client.request("POST", RELEASES.format(ROOT, "").removesuffix("/tenant-"), ROOT_RELEASE).expect(201)
        client.request("POST", tenants_path(ROOT), manifest("alpha")).expect(201)
        client.request("DELETE", tenants_path(ROOT, "alpha")).expect(200)
        assert client.get(tenants_path(ROOT, "alpha")).status == 404
    finally:
        server.stop()
