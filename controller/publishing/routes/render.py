"""Renders the routes of the platform's services, the per-service table of seed 000. Pure.

A desired object is one for `ClusterWriter`: None stands for a field that must be absent.
"""

from __future__ import annotations

from collections.abc import Sequence

from apiserver.meta.resource import Key, Object
from controller.publishing.facts import ServicePorts
from controller.publishing.routes.marks import our_marks
from controller.publishing.services import SERVICES, PlatformService
from controller.publishing.verdicts import PublishingFacts, is_asked_for
from controller.tenantgateway.names import GATEWAY_API_GROUP, passthrough_listener_name


def render_routes(facts: PublishingFacts) -> Sequence[tuple[PlatformService, Object]]:
    """The route of each service that gets one, in the order of the table (R-274 to R-284)."""
    rendered = ((service, render_route(service, facts)) for service in SERVICES.values())
    return [(service, route) for service, route in rendered if route is not None]


def render_route(service: PlatformService, facts: PublishingFacts) -> Object | None:
    """None if the charts render the routes, the gate of the service is closed, or its Service is missing."""
    backend = facts.backends.get(Key(service.namespace, service.backend))
    if not (facts.platform_routes and facts.enabled and is_asked_for(service, facts)) or backend is None:
        return None
    return {
        "metadata": {"name": service.route, "namespace": service.namespace, **our_marks(service)},
        "spec": {
            "parentRefs": [_parent(service, facts.gateway)],
            "hostnames": [service.hostname(facts.host)],
            "rules": [_rule(service, backend)],
        },
    }


def _parent(service: PlatformService, gateway: Key) -> Object:
    """Without a section, the hostname decides the listener, in http01 and in dns01 alike (R-280). It also asks for
    port 80, which admits only redirects."""
    section = passthrough_listener_name(service.name) if service.kind == "TLSRoute" else None
    return {
        "group": GATEWAY_API_GROUP,
        "kind": "Gateway",
        "namespace": gateway.namespace,
        "name": gateway.name,
        "sectionName": section,
        "port": None,
    }


def _rule(service: PlatformService, backend: ServicePorts) -> Object:
    target = {
        "group": "",
        "kind": "Service",
        "namespace": None,
        "name": service.backend,
        "port": service_port(service, backend),
        "weight": 1,
        "filters": None,
    }
    rule: Object = {"backendRefs": [target], "filters": None}
    if service.kind == "HTTPRoute":
        rule["matches"] = [{"path": {"type": "PathPrefix", "value": "/"}}]
    return rule


def service_port(service: PlatformService, backend: ServicePorts) -> int:
    """The port with the name that the service's has; without one, that of the table."""
    return backend.names.get(service.port_name, service.port) if service.port_name else service.port
