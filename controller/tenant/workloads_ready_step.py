"""The condition WorkloadsReady of a Tenant, and the number of external addresses in its Namespace.

WorkloadsReady does not count for Ready: workloads start and fail all the time, as at the direct peer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from apiserver.meta.resource import Key, Object
from controller.runtime.conditions import Finding, join_limited
from controller.tenant.observe import ObservedTenant
from registry.cluster.event_handlers import ProjectionByNamespace
from registry.cluster.interface import ClusterResource
from registry.names import APPLICATION_KIND_LABEL, APPLICATION_NAME_LABEL, KIND
from registry.tenant.summary import TenantSummary

WORKLOADS_READY = "WorkloadsReady"
WORKLOADMONITORS = ClusterResource("cozystack.io", "v1alpha1", "workloadmonitors", "WorkloadMonitor")


def external_ips(service: Object) -> Sequence[str]:
    """The IP addresses of a Service of type LoadBalancer, sorted. A hostname is none."""
    if (service.get("spec") or {}).get("type") != "LoadBalancer":
        return ()
    ingress = ((service.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
    found = [each.get("ip") for each in ingress if isinstance(each, dict)]
    return tuple(sorted({ip for ip in found if isinstance(ip, str) and ip}))


def is_operational(monitor: Object) -> bool | None:
    """`status.operational` as Cozystack's controller sets it: False while fewer replicas are ready than
    `spec.minReplicas`. None if it is not set yet."""
    operational = (monitor.get("status") or {}).get("operational")
    return operational if isinstance(operational, bool) else None


class Monitor(NamedTuple):
    """A WorkloadMonitor: "True", "False" or "Unknown", and the Tenant that its labels name, empty without labels."""

    operational: str
    tenant: str


def project_monitor(monitor: Object) -> Monitor | None:
    """None for a WorkloadMonitor of an application of another kind: it says nothing about the Tenant."""
    labels = monitor["metadata"].get("labels") or {}
    if labels.get(APPLICATION_KIND_LABEL, KIND) != KIND:
        return None
    operational = is_operational(monitor)
    return Monitor("Unknown" if operational is None else str(operational), labels.get(APPLICATION_NAME_LABEL, ""))


class WorkloadIndex:
    """The index of the external addresses of Services, and of WorkloadMonitors if the cluster serves that kind."""

    def __init__(self, *, on_change: Callable[[Key], None]) -> None:
        self.services = ProjectionByNamespace(lambda service: external_ips(service) or None, on_change=on_change)
        self.monitors = ProjectionByNamespace(project_monitor, on_change=on_change)

    def external_ips(self, namespace: str) -> int:
        """Services can share an address."""
        return len({ip for found in self.services.values(namespace).values() for ip in found})

    def finding(self, tenant: TenantSummary) -> Finding | None:
        """None for a Tenant without WorkloadMonitors: nothing is known of its workloads."""
        monitors = self.monitors.values(tenant.namespace).items()
        return workloads_finding(
            {name: each.operational for name, each in monitors if each.tenant in ("", tenant.key.name)}
        )


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
        found = self._workloads.finding(observed.tenant)
        return [found] if found is not None else []
