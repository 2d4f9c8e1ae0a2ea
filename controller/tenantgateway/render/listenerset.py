"""Renders the ListenerSets of a TenantGateway as desired objects for `ClusterWriter`. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from apiserver.meta.resource import Object
from controller.tenantgateway.model import Plan, PlannedListenerSet, TenantGateway
from controller.tenantgateway.names import GATEWAY_API_GROUP, metadata, tenantgateway_labels
from controller.tenantgateway.render.gateway import Port443Kinds, render_listener


def render_listener_sets(
    gateway: TenantGateway, plan: Plan, *, port443_kinds: Port443Kinds = "separate", grpc_routes: bool = False
) -> Sequence[Object]:
    """One object for each planned set; its listeners admit the same routes as those of the Gateway."""
    return [_listener_set(gateway, each, port443_kinds, grpc_routes) for each in plan.sets]


def _listener_set(
    gateway: TenantGateway, planned: PlannedListenerSet, port443_kinds: Port443Kinds, grpc_routes: bool
) -> Object:
    return {
        "metadata": metadata(gateway, planned.name, tenantgateway_labels(gateway)),
        "spec": {
            "parentRef": {
                "group": GATEWAY_API_GROUP,
                "kind": "Gateway",
                "name": gateway.key.name,
                "namespace": None,
            },
            "listeners": [render_listener(gateway, each, port443_kinds, grpc_routes) for each in planned.listeners],
        },
    }
