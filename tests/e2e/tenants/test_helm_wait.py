"""`helm install --wait` of a real Helm 4, which waits by the rules of kstatus, as Flux does."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.support.clusters.cluster import PATIENCE, ROOT, E2eCluster, tenants_path
from tests.e2e.support.clusters.processes import Process
from tests.e2e.support.gateways import MERGE, Gateways
from tests.e2e.support.helm import helm, write_chart
from tests.e2e.support.tenants import Object, Tenants, manifest

RELEASE = f"/apis/helm.toolkit.fluxcd.io/v2/namespaces/{ROOT}/helmreleases/tenant-{{}}"


def install(cluster: E2eCluster, folder: Path, tenant: Object) -> Process:
    """Starts Helm with a chart of one Tenant. It ends when Helm takes the Tenant for ready."""
    chart = write_chart(folder, tenant)
    name = tenant["metadata"]["name"]
    flags = ["--wait", f"--timeout={PATIENCE:.0f}s", f"--kubeconfig={cluster.admin.kubeconfig}", f"--namespace={ROOT}"]
    log = folder / "helm.log"
    return Process("helm", [helm(), "install", name, chart, *flags], log=log, environment={"HOME": str(folder)})


def ready(tenant: Object) -> tuple[str, str]:
    [found] = [each for each in tenant["status"]["conditions"] if each["type"] == "Ready"]
    return found["status"], found["reason"]


def test_helm_waits_for_the_gateway_of_a_tenant(
    cluster: E2eCluster, tenants: Tenants, gateways: Gateways, tmp_path: Path
) -> None:
    name = tenants.new_name()
    helm_process = install(cluster, tmp_path, manifest(name, spec={"gateway": True}))
    try:
        tenants.wait("helm has created the tenant", lambda: tenants.exists(name))
        gateways.wait_until("the Gateway exists", lambda: gateways.listener_hostnames(f"tenant-{name}"))
        assert not helm_process.ended, helm_process.log()
        gateways.mark_certificates_ready(f"tenant-{name}")
        assert not helm_process.ended, helm_process.log()
        gateways.mark_gateway_programmed(f"tenant-{name}")
        assert helm_process.wait(seconds=PATIENCE) == 0, helm_process.log()
        assert ready(tenants.get(name)) == ("True", "Reconciled")
    finally:
        helm_process.stop()


def test_helm_waits_for_what_flux_installs(cluster: E2eCluster, tenants: Tenants, tmp_path: Path) -> None:
    name = tenants.new_name()
    helm_process = install(cluster, tmp_path, manifest(name, spec={"etcd": True}))
    client = cluster.client()
    try:
        tenants.wait("helm has created the tenant", lambda: tenants.exists(name))
        tenants.wait_until_settled(name)
        assert not helm_process.ended, helm_process.log()
        condition = {
            "type": "Ready",
            "status": "True",
            "reason": "InstallSucceeded",
            "message": "done",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
            "observedGeneration": client.get(RELEASE.format(name)).expect(200)["metadata"]["generation"],
        }
        status = {"status": {"conditions": [condition]}}
        client.request("PATCH", f"{RELEASE.format(name)}/status", status, content_type=MERGE).expect(200)
        assert helm_process.wait(seconds=PATIENCE) == 0, helm_process.log()
        assert client.get(tenants_path(ROOT, name)).expect(200)["status"]["observedGeneration"] == 1
    finally:
        helm_process.stop()
