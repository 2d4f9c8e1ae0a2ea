"""WorkloadMonitors of Cozystack, whose CRD is installed after the server has started."""

from __future__ import annotations

from typing import Any

from tests.e2e.support.clusters import PATIENCE, ROOT, KubeCluster, tenants_path
from tests.e2e.support.gateways import MERGE
from tests.e2e.support.processes import wait_until
from tests.e2e.support.tenants import Tenants

GROUP, VERSION, PLURAL = "cozystack.io", "v1alpha1", "workloadmonitors"


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def workload_monitor_crd() -> dict[str, Any]:
    """The CRD with the fields that the controller reads; other fields are pruned."""
    text, number = {"type": "string"}, {"type": "integer", "format": "int32"}
    selector = {"type": "object", "additionalProperties": text}
    spec = _object(selector=selector, kind=text, type=text, version=text, replicas=number, minReplicas=number)
    status = _object(operational={"type": "boolean"}, availableReplicas=number, observedReplicas=number)
    version = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": _object(spec={**spec, "required": ["selector"]}, status=status)},
        "subresources": {"status": {}},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{PLURAL}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"kind": "WorkloadMonitor", "plural": PLURAL},
            "versions": [version],
        },
    }


def test_workload_monitors_determine_the_workloads_ready_condition(
    kube: KubeCluster, cluster: KubeCluster, tenants: Tenants
) -> None:
    client = kube.client()
    client.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", workload_monitor_crd()).expect(
        201
    )
    kube.kubectl("wait", "--for=condition=Established", f"crd/{PLURAL}.{GROUP}", "--timeout=60s")
    name = tenants.create()["metadata"]["name"]
    tenants.wait_for_namespace(f"tenant-{name}")
    monitors = f"/apis/{GROUP}/{VERSION}/namespaces/tenant-{name}/{PLURAL}"
    body = {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": "WorkloadMonitor",
        "metadata": {"name": "db"},
        "spec": {"kind": "postgres", "type": "postgres", "replicas": 2, "minReplicas": 1, "selector": {"app": "db"}},
    }
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
