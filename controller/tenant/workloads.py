"""What runs in a Tenant's Namespace: the condition WorkloadsReady, and the number of external addresses."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from apiserver.errors import StatusError
from apiserver.resource import Object
from controller.conditions import Finding
from controller.tenant.observed import Observed
from registry.host import HostResource

WORKLOADS_READY = "WorkloadsReady"
WORKLOADMONITORS = HostResource("cozystack.io", "v1alpha1", "workloadmonitors", "WorkloadMonitor")
# A condition shows what is wrong, and not all of it.
_SHOWN = 10


def has_external_address(service: Object) -> bool:
    """Whether it is of type LoadBalancer, and has an ingress address."""
    if (service.get("spec") or {}).get("type") != "LoadBalancer":
        return False
    ingress = ((service.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
    return any(isinstance(each, dict) and (each.get("ip") or each.get("hostname")) for each in ingress)


def is_operational(monitor: Object) -> bool | None:
    """None while its controller has not said."""
    said = (monitor.get("status") or {}).get("operational")
    return said if isinstance(said, bool) else None


class ByNamespace:
    """A handler of an informer that keeps one value an object, of those for which there is one.

    `concern` is told the Namespace of an object that changed it.
    """

    def __init__(self, value: Callable[[Object], object], *, concern: Callable[[str], None]) -> None:
        self._value = value
        self._concern = concern
        self._held: dict[str, dict[str, object]] = {}

    def get(self, namespace: str) -> dict[str, object]:
        """Values by name."""
        return self._held.get(namespace, {})

    def replace(self, items: Sequence[Object], rv: int) -> None:
        before, self._held = self._held, {}
        for obj in items:
            self._put(obj["metadata"]["namespace"], obj["metadata"]["name"], self._value(obj))
        for namespace in before.keys() | self._held.keys():
            if before.get(namespace) != self._held.get(namespace):
                self._concern(namespace)

    def apply(self, type: str, obj: Object, rv: int) -> None:
        namespace, name = obj["metadata"]["namespace"], obj["metadata"]["name"]
        if self._put(namespace, name, None if type == "DELETED" else self._value(obj)):
            self._concern(namespace)

    def bookmark(self, rv: int) -> None:
        """Nothing to do."""

    def unreachable(self, error: StatusError | None) -> None:
        """Nothing to do: what was missed comes with `replace`."""

    def _put(self, namespace: str, name: str, value: object) -> bool:
        """Whether that is new; None is not kept."""
        held = self._held.get(namespace, {})
        if held.get(name) == value:
            return False
        if value is not None:
            self._held.setdefault(namespace, held)[name] = value
            return True
        del held[name]
        if not held:
            del self._held[namespace]
        return True


class Workloads:
    """The index of Services with an external address, and of WorkloadMonitors where the host has that kind."""

    def __init__(self, *, concern: Callable[[str], None]) -> None:
        self.services = ByNamespace(lambda service: has_external_address(service) or None, concern=concern)
        self.monitors = ByNamespace(_operational, concern=concern)

    def external_ips(self, namespace: str) -> int:
        return len(self.services.get(namespace))

    def finding(self, namespace: str) -> Finding | None:
        """None for a Namespace without WorkloadMonitors: nobody says anything of its workloads then."""
        return workloads_finding(self.monitors.get(namespace))


def workloads_finding(monitors: dict[str, object]) -> Finding | None:
    """`monitors` are "True", "False" or "Unknown", by name."""
    if not monitors:
        return None
    failing = sorted(name for name, operational in monitors.items() if operational == "False")
    if failing:
        return Finding(WORKLOADS_READY, "False", "WorkloadsNotOperational", f"not operational: {_listed(failing)}")
    waiting = sorted(name for name, operational in monitors.items() if operational == "Unknown")
    if waiting:
        return Finding(WORKLOADS_READY, "Unknown", "Pending", f"not known yet: {_listed(waiting)}")
    return Finding(WORKLOADS_READY, "True", "WorkloadsOperational", "all workloads are operational")


class WorkloadsStep:
    """Finding: WorkloadsReady. It writes nothing."""

    name = "workloads"
    condition = WORKLOADS_READY

    def __init__(self, *, workloads: Workloads) -> None:
        self._workloads = workloads

    async def run(self, observed: Observed) -> Sequence[Finding]:
        found = self._workloads.finding(observed.facts.namespace)
        return [found] if found is not None else []


def _operational(monitor: Object) -> str:
    said = is_operational(monitor)
    return "Unknown" if said is None else str(said)


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
