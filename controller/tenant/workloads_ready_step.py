"""The condition WorkloadsReady of a Tenant, and the number of external addresses in its Namespace."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from apiserver.meta.resource import Key, Object
from controller.runtime.conditions import Finding, join_limited
from controller.tenant.observe import ObservedTenant
from registry.cluster.event_handlers import ProjectionByNamespace
from registry.cluster.interface import ClusterResource

WORKLOADS_READY = "WorkloadsReady"
WORKLOADMONITORS = ClusterResource("cozystack.io", "v1alpha1", "workloadmonitors", "WorkloadMonitor")


def has_external_address(service: Object) -> bool:
    """True if the Service is of type LoadBalancer and has an ingress address."""
    if (service.get("spec") or {}).get("type") != "LoadBalancer":
        return False
    ingress = ((service.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
    return any(isinstance(each, dict) and (each.get("ip") or each.get("hostname")) for each in ingress)


def is_operational(monitor: Object) -> bool | None:
    """`status.operational` as Cozystack's controller sets it: False while fewer replicas are ready than
    `spec.minReplicas`. None if it is not set yet."""
    operational = (monitor.get("status") or {}).get("operational")
    return operational if isinstance(operational, bool) else None


class WorkloadIndex:
    """The index of Services with an external address, and of WorkloadMonitors if the cluster serves that kind."""

    def __init__(self, *, on_change: Callable[[Key], None]) -> None:
        self.services = ProjectionByNamespace(
            lambda service: has_external_address(service) or None, on_change=on_change
        )
        self.monitors = ProjectionByNamespace(_operational, on_change=on_change)

    def external_ips(self, namespace: str) -> int:
        return len(self.services.values(namespace))

    def finding(self, namespace: str) -> Finding | None:
        """None for a Namespace without WorkloadMonitors: nothing is known of its workloads."""
        return workloads_finding(self.monitors.values(namespace))


def workloads_finding(monitors: Mapping[str, str]) -> Finding | None:
    """`monitors` maps names to "True", "False" or "Unknown"."""
    if not monitors:
        return None
    failing = sorted(name for name, operational in monitors.items() if operational == "False")
    if failing:
        return Finding(WORKLOADS_READY, "False", "WorkloadsNotOperational", f"not operational: {join_limited(failing)}")
    waiting = sorted(name for name, operational in monitors.items() if operational == "Unknown")
    if waiting:
        return Finding(WORKLOADS_READY, "Unknown", "Pending", f"not reported yet: {join_limited(waiting)}")
    return Finding(WORKLOADS_READY, "True", "WorkloadsOperational", "all workloads are operational")


class WorkloadsReadyStep:
    """Finding: WorkloadsReady. The step writes no objects."""

    name = "workloads"
    condition = WORKLOADS_READY

    def __init__(self, *, workloads: WorkloadIndex) -> None:
        self._workloads = workloads

    async def run(self, observed: ObservedTenant) -> Sequence[Finding]:
        found = self._workloads.finding(observed.tenant.namespace)
        return [found] if found is not None else []


def _operational(monitor: Object) -> str:
    operational = is_operational(monitor)
    return "Unknown" if operational is None else str(operational)
