"""What a Tenant has of its place in the tree: its own where it says so, else the nearest ancestor's. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from registry.tenant.summary import TenantSummary


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """Of each cluster service, the workload namespace of the Tenant whose service it is; empty where there is none."""

    etcd: str = ""
    ingress: str = ""
    monitoring: str = ""
    seaweedfs: str = ""

    def by_name(self) -> Mapping[str, str]:
        return asdict(self)


NO_SERVICES = Services()


def effective_services(facts: TenantSummary, ancestors: Sequence[TenantSummary]) -> Services:
    """The nearest of the Tenant and its ancestors that runs the service; the root runs all of them, whatever it says
    (R-063 to R-067). `ancestors` are nearest first."""
    line = (facts, *ancestors)
    return Services(
        etcd=_owner("etcd", line),
        ingress=_owner("ingress", line),
        monitoring=_owner("monitoring", line),
        seaweedfs=_owner("seaweedfs", line),
    )


def _owner(service: str, line: Sequence[TenantSummary]) -> str:
    return next((each.namespace for each in line if each.is_root or service in each.flags), "")


def effective_scheduling_class(facts: TenantSummary, ancestors: Sequence[TenantSummary]) -> str:
    """The class of the farthest ancestor that has one: a parent's wins over the child's. Empty if nobody has one."""
    return next((each.scheduling_class for each in reversed((facts, *ancestors)) if each.scheduling_class), "")
