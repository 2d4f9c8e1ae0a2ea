"""Renders the Gateway of a TenantGateway as a desired object for `ClusterWriter`. Pure.

`addresses`, `infrastructure` and, without ListenerSets of ours, `allowedListeners` are left to the operator (GW-20). A
field of a listener that is None is removed, even if another client has set it.
"""

from __future__ import annotations

from typing import Any, Literal

from apiserver.meta.resource import Object
from controller.tenantgateway.model import Plan, PlannedListener, RouteKind, TenantGateway
from controller.tenantgateway.names import (
    CERT_MANAGER_NAMESPACE,
    GATEWAY_API_GROUP,
    GATEWAY_MANAGED_BY_LABEL,
    MANAGED_BY,
    OWNER_LABEL,
    metadata,
)
from registry.names import GATEWAY_LABEL

Port443Kinds = Literal["separate", "shared"]
"""The kinds of routes that a listener on port 443 admits: only the one for its protocol, or both (PEER-01)."""

NAMESPACE_NAME_LABEL = "kubernetes.io/metadata.name"


def render_gateway(
    gateway: TenantGateway, plan: Plan, *, port443_kinds: Port443Kinds = "separate", grpc_routes: bool = False
) -> Object:
    """The Gateway with all planned listeners (R-106, R-108 to R-125, R-130 to R-137)."""
    labels = {OWNER_LABEL: gateway.key.namespace, GATEWAY_MANAGED_BY_LABEL: MANAGED_BY}
    spec: Object = {
        "gatewayClassName": gateway.class_name,
        "listeners": [render_listener(gateway, each, port443_kinds, grpc_routes) for each in plan.listeners],
    }
    if plan.sets:
        spec["allowedListeners"] = {"namespaces": {"from": "Same", "selector": None}}
    return {"metadata": metadata(gateway, gateway.key.name, labels), "spec": spec}


def render_listener(
    gateway: TenantGateway, listener: PlannedListener, port443_kinds: Port443Kinds, grpc_routes: bool
) -> Object:
    return {
        "name": listener.name,
        "protocol": listener.protocol,
        "port": listener.port,
        "hostname": listener.hostname or None,
        "tls": _tls(listener),
        "allowedRoutes": {
            "namespaces": {"from": "Selector", "selector": _selector(gateway, listener)},
            "kinds": [
                {"group": GATEWAY_API_GROUP, "kind": kind} for kind in _kinds(listener, port443_kinds, grpc_routes)
            ],
        },
    }


def _tls(listener: PlannedListener) -> Object | None:
    match listener.protocol:
        case "HTTP":
            return None
        case "HTTPS":
            secret: Object = {"group": "", "kind": "Secret", "name": listener.certificate}
            secret["namespace"] = listener.certificate_namespace or None
            return {"mode": "Terminate", "certificateRefs": [secret], "options": None}
        case "TLS":
            return {"mode": "Passthrough", "certificateRefs": None, "options": None}


def _selector(gateway: TenantGateway, listener: PlannedListener) -> dict[str, Any]:
    """Namespaces whose routes may attach (layer 1): those labelled for this Gateway; on port 80 the Gateway's
    own and cert-manager's."""
    if listener.protocol != "HTTP":
        return {"matchLabels": {GATEWAY_LABEL: gateway.key.namespace}, "matchExpressions": None}
    by_name = {
        "key": NAMESPACE_NAME_LABEL,
        "operator": "In",
        "values": list(dict.fromkeys((gateway.key.namespace, CERT_MANAGER_NAMESPACE))),
    }
    return {"matchLabels": None, "matchExpressions": [by_name]}


def _kinds(listener: PlannedListener, port443_kinds: Port443Kinds, grpc_routes: bool) -> tuple[RouteKind, ...]:
    """Never empty, because an empty list admits kinds that were not asked for (R-136, FACT-8)."""
    if listener.protocol == "HTTP":
        return ("HTTPRoute",)
    terminated: tuple[RouteKind, ...] = ("HTTPRoute", "GRPCRoute") if grpc_routes else ("HTTPRoute",)
    if port443_kinds == "shared":
        return (*terminated, "TLSRoute")
    return terminated if listener.protocol == "HTTPS" else ("TLSRoute",)
