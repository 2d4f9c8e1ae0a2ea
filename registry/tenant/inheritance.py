"""Settings that a Tenant inherits from its ancestors. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from registry.tenant.summary import TenantSummary


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """The workload namespace of the Tenant that provides each service, empty if there is none."""

    etcd: str = ""
    ingress: str = ""
    monitoring: str = ""
    seaweedfs: str = ""

    def by_name(self) -> Mapping[str, str]:
        return asdict(self)


NO_SERVICES = Services()


def effective_services(tenant: TenantSummary, ancestors: Sequence[TenantSummary]) -> Services:
    """For each service, the nearest of the Tenant and its ancestors that enables it; the root provides all of them,
    whatever its spec (R-063 to R-067). `ancestors` are nearest first."""
    lineage = (tenant, *ancestors)
    return Services(
        etcd=_provider("etcd", lineage),
        ingress=_provider("ingress", lineage),
        monitoring=_provider("monitoring", lineage),
        seaweedfs=_provider("seaweedfs", lineage),
    )


def _provider(service: str, lineage: Sequence[TenantSummary]) -> str:
    return next((each.namespace for each in lineage if each.is_root or service in each.flags), "")


def effective_scheduling_class(tenant: TenantSummary, ancestors: Sequence[TenantSummary]) -> str:
    """The scheduling class of the farthest ancestor that has one, since a parent overrides its children. Empty if there
    is none."""
    return next((each.scheduling_class for each in reversed((tenant, *ancestors)) if each.scheduling_class), "")
