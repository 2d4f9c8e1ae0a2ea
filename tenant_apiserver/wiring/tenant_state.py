"""Builds the indexes of Gateways and workloads that a Tenant's conditions depend on, and their informers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from apiserver.meta.resource import Key
from controller.runtime.apply import ClusterWriter
from controller.tenant.gateway_ready_step import GATEWAYS, GatewayIndex
from controller.tenant.workloads_ready_step import WORKLOADMONITORS, WorkloadIndex
from registry.cluster.event_handlers import EventHandler
from registry.cluster.informer_factory import InformerFactory
from registry.cluster.interface import SERVICES, ClusterResource
from registry.tenant.tree import TenantTree
from registry.tenantgateway.types import TENANTGATEWAYS


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantState:
    """The indexes that the conditions of Tenants are computed from."""

    gateways: GatewayIndex
    workloads: WorkloadIndex


def tenant_state(
    *,
    informers: InformerFactory,
    writer: ClusterWriter,
    tree: TenantTree,
    enqueue: Callable[[Key], None],
    on_change: Callable[[Key], None],
) -> TenantState:
    """`on_change` is called with the key of a changed object: the Tenant of its namespace has to be reconciled. Some
    kinds may be served later."""
    state = TenantState(
        gateways=GatewayIndex(writer=writer, tree=tree, enqueue=enqueue), workloads=WorkloadIndex(on_change=on_change)
    )
    informers.get(SERVICES, store_objects=False).add_handler(state.workloads.services)
    informers.get(TENANTGATEWAYS, store_objects=False).add_handler(state.gateways.tenantgateways)
    _when_served(informers, GATEWAYS, state.gateways.gateways)
    _when_served(informers, WORKLOADMONITORS, state.workloads.monitors)
    return state


def _when_served(informers: InformerFactory, resource: ClusterResource, handler: EventHandler) -> None:
    def add_handler(found: ClusterResource) -> None:
        informers.get(found).add_handler(handler)

    informers.watch_availability(resource.group, resource.kind, [resource.version]).subscribe(add_handler)
