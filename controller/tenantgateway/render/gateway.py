"""The Gateway of a TenantGateway. Pure: a desired object as controller.runtime.apply takes it.

`addresses` and `infrastructure` are the operator's (GW-20); None is what a listener must not have, whoever put it
there.
"""

from __future__ import annotations

from typing import Any, Literal

from apiserver.meta.resource import Object
from controller.tenantgateway.model import Plan, PlannedListener, TenantGateway
from controller.tenantgateway.names import (
    CERT_MANAGER_NAMESPACE,
    GATEWAY_API_GROUP,
    MANAGED_BY,
    MANAGED_BY_LABEL,
    OWNER_LABEL,
    metadata,
)
from registry.names import GATEWAY_LABEL

Port443Kinds = Literal["separate", "shared"]
"""Whether listeners on port 443 admit one kind of route each, or all of them the same two (PEER-01)."""

NAMESPACE_NAME_LABEL = "kubernetes.io/metadata.name"


def render_gateway(gateway: TenantGateway, plan: Plan, *, port443_kinds: Port443Kinds = "separate") -> Object:
    """R-106, R-108 to R-125, R-130 to R-137."""
    labels = {OWNER_LABEL: gateway.key.namespace, MANAGED_BY_LABEL: MANAGED_BY}
    return {
        "metadata": metadata(gateway, gateway.key.name, labels),
        "spec": {
            "gatewayClassName": gateway.class_name,
            "listeners": [_listener(gateway, each, port443_kinds) for each in plan.listeners],
        },
    }


def _listener(gateway: TenantGateway, listener: PlannedListener, port443_kinds: Port443Kinds) -> Object:
    return {
        "name": listener.name,
        "protocol": listener.protocol,
        "port": listener.port,
        "hostname": listener.hostname or None,
        "tls": _tls(listener),
        "allowedRoutes": {
            "namespaces": {"from": "Selector", "selector": _selector(gateway, listener)},
            "kinds": [{"group": GATEWAY_API_GROUP, "kind": kind} for kind in _kinds(listener, port443_kinds)],
        },
    }


def _tls(listener: PlannedListener) -> Object | None:
    match listener.protocol:
        case "HTTP":
            return None
        case "HTTPS":
            secret = {"group": "", "kind": "Secret", "name": listener.certificate, "namespace": None}
            return {"mode": "Terminate", "certificateRefs": [secret], "options": None}
        case "TLS":
            return {"mode": "Passthrough", "certificateRefs": None, "options": None}


def _selector(gateway: TenantGateway, listener: PlannedListener) -> dict[str, Any]:
    """The two selectors of Layer 1: who publishes through this Gateway, and who may answer without TLS."""
    if listener.protocol != "HTTP":
        return {"matchLabels": {GATEWAY_LABEL: gateway.key.namespace}, "matchExpressions": None}
    may_answer = {
        "key": NAMESPACE_NAME_LABEL,
        "operator": "In",
        "values": [gateway.key.namespace, CERT_MANAGER_NAMESPACE],
    }
    return {"matchLabels": None, "matchExpressions": [may_answer]}


def _kinds(listener: PlannedListener, port443_kinds: Port443Kinds) -> tuple[str, ...]:
    """Never empty: that would admit GRPCRoute too, which no policy covers (R-136, FACT-8)."""
    if listener.protocol == "HTTP":
        return ("HTTPRoute",)
    if port443_kinds == "shared":
        return ("HTTPRoute", "TLSRoute")
    return ("HTTPRoute",) if listener.protocol == "HTTPS" else ("TLSRoute",)
