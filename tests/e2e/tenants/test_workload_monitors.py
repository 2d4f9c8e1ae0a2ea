"""WorkloadMonitors of Cozystack, whose CRD is installed after the server has started."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.support.clusters.cluster import PATIENCE, ROOT, tenants_path
from tests.e2e.support.clusters.control_plane import COZYSTACK_CRDS
from tests.e2e.support.clusters.kube import KubeCluster
from tests.e2e.support.clusters.processes import wait_until
from tests.e2e.support.gateways import MERGE
from tests.e2e.support.tenants import Tenants

GROUP, VERSION, PLURAL = "cozystack.io", "v1alpha1", "workloadmonitors"


def install_crd(kube: KubeCluster) -> None:
    crd = kube.crds / COZYSTACK_CRDS / f"{GROUP}_{PLURAL}.yaml"
    if not crd.is_file():
        pytest.skip(f"no {crd}: set TEST_CRD_DIR to a folder that also has the CRDs of Cozystack")
    kube.kubectl("apply", "--server-side", f"--filename={crd}")
    kube.wait_until_served(f"/apis/{GROUP}/{VERSION}/{PLURAL}")


def test_workload_monitors_determine_the_workloads_ready_condition(
    kube: KubeCluster, cluster: KubeCluster, tenants: Tenants
) -> None:
    client = kube.client()
    install_crd(kube)
    name = tenants.create()["metadata"]["name"]
    tenants.wait_for_namespace(f"tenant-{name}")
    monitors = f"/apis/{GROUP}/{VERSION}/namespaces/tenant-{name}/{PLURAL}"
    body = {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": "WorkloadMonitor",
        "metadata": {"name": "db"},
        "spec": {"kind": "postgres", "type": "postgres", "replicas": 2, "minReplicas": 1, "selector": {"app": "db"}},
    }
    labels = {"apps.cozystack.io/application.kind": "Postgres", "apps.cozystack.io/application.name": "pg"}
    of_postgres = {**body, "metadata": {"name": "pg", "labels": labels}}
    client.request("POST", monitors, of_postgres).expect(201)
    failing = {"status": {"operational": False}}
    client.request("PATCH", f"{monitors}/pg/status", failing, content_type=MERGE).expect(200)
    client.request("POST", monitors, body).expect(201)

    def workloads_ready() -> tuple[str, str] | None:
        conditions = client.get(tenants_path(ROOT, name)).expect(200)["status"].get("conditions", ())
        found = [(each["status"], each["reason"]) for each in conditions if each["type"] == "WorkloadsReady"]
        return found[0] if found else None

    def set_status(**status: Any) -> None:
        client.request("PATCH", f"{monitors}/db/status", {"status": status}, content_type=MERGE).expect(200)

    def wait_for(expected: tuple[str, str] | None) -> None:
        wait_until(
            f"the condition is {expected}",
            lambda: workloads_ready() == expected,
            seconds=PATIENCE,
            processes=kube.processes,
        )

    wait_for(("Unknown", "Pending"))
    set_status(operational=False, availableReplicas=0, observedReplicas=2)
    wait_for(("False", "WorkloadsNotOperational"))
    set_status(operational=True, availableReplicas=1, observedReplicas=2)
    wait_for(("True", "WorkloadsOperational"))
    client.request("DELETE", f"{monitors}/db").expect(200)
    wait_for(None)
