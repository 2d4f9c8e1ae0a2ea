"""What tells of a Tenant's state besides what its Namespace holds: indexes, and the informers that feed them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from apiserver.meta.resource import Key
from controller.runtime.apply import Apply
from controller.tenant.gateway_ready_step import GATEWAYS, GatewayIndex
from controller.tenant.workloads_ready_step import WORKLOADMONITORS, WorkloadIndex
from registry.cluster.event_handlers import EventHandler
from registry.cluster.informer_factory import Informers
from registry.cluster.interface import SERVICES, ClusterResource
from registry.tenant.tree import TenantTree
from registry.tenantgateway.types import TENANTGATEWAYS


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantState:
    gateways: GatewayIndex
    workloads: WorkloadIndex


def tenant_state(
    *,
    informers: Informers,
    apply: Apply,
    tree: TenantTree,
    enqueue: Callable[[Key], None],
    concern: Callable[[str], None],
) -> TenantState:
    """`concern` is told a namespace whose Tenant has to be looked at. Kinds that the host lacks are waited for."""
    state = TenantState(
        gateways=GatewayIndex(apply=apply, tree=tree, enqueue=enqueue), workloads=WorkloadIndex(concern=concern)
    )
    informers.get(SERVICES, keep=False).add_handler(state.workloads.services)
    informers.get(TENANTGATEWAYS, keep=False).add_handler(state.gateways.tenantgateways)
    _when_served(informers, GATEWAYS, state.gateways.gateways)
    _when_served(informers, WORKLOADMONITORS, state.workloads.monitors)
    return state


def _when_served(informers: Informers, resource: ClusterResource, handler: EventHandler) -> None:
    def follow(found: ClusterResource) -> None:
        informers.get(found).add_handler(handler)

    informers.when_served(resource.group, resource.kind, [resource.version]).subscribe(follow)
