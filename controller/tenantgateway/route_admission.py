"""Decides which routes count for a Gateway: only those that its listeners admit have any effect (seed 000). Pure.

The decision is made from the labels of the route's namespace as they are now, not as they were when the route was
written: a host that moved away, or a label that was removed, ends the claims of the routes that relied on it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from controller.tenantgateway import names
from controller.tenantgateway.hostname_ownership import WILDCARD, binds_plain_http
from controller.tenantgateway.hostname_validation import (
    NO_MATCHING_LISTENER,
    NO_MATCHING_PARENT,
    NOT_ALLOWED_BY_LISTENERS,
    HostnameRejection,
    within,
)
from controller.tenantgateway.listeners import HTTPS_PORT
from controller.tenantgateway.model import ParentRef, Route, RouteKind, RouteNamespace, TenantGateway
from registry.names import GATEWAY_LABEL, HOST_LABEL, NAMESPACE_PREFIX, canonical_host


class AdmittedRoute(NamedTuple):
    """The part of a route that counts, and the reasons why other hostnames of it do not.

    `route` has no hostnames if it may attach to port 80 only, or if its namespace may use none of them.
    """

    route: Route
    rejections: Sequence[HostnameRejection] = ()


def admits_namespace(gateway: TenantGateway, namespace: RouteNamespace) -> bool:
    """True if the listeners on port 443 admit routes of the namespace (layer 1, R-131)."""
    return namespace.name == gateway.key.namespace or namespace.gateway == gateway.key.namespace


def admits_plain_http(gateway: TenantGateway, namespace: str) -> bool:
    """True if the listener on port 80 admits routes of the namespace (R-132)."""
    return namespace in (gateway.key.namespace, names.CERT_MANAGER_NAMESPACE)


def reject_kind(kind: RouteKind, gateway: str, *, grpc_routes: bool) -> HostnameRejection | None:
    """Returns the reason why no listener on port 443 admits routes of a kind (R-136); None if one does. `gateway` are
    the words for the Gateway."""
    if kind != "GRPCRoute" or grpc_routes:
        return None
    message = f"{gateway} admits no GRPCRoutes: an administrator can set gateway.grpcRoutes to true"
    return HostnameRejection(NOT_ALLOWED_BY_LISTENERS, message)


def admit(
    gateway: TenantGateway, route: Route, namespace: RouteNamespace, *, grpc_routes: bool = False
) -> AdmittedRoute | None:
    """The part of a route that counts for the Gateway; None if none of its parentRefs is admitted."""
    rejections_of = partial(
        reject_parent,
        gateway,
        kind=route.id.kind,
        hostnames=route.hostnames,
        namespace=namespace,
        grpc_routes=grpc_routes,
    )
    parents = tuple(each for each in route.parents if rejections_of(each) is None)
    if not parents:
        return None
    hostnames, rejections = [], []
    if admits_namespace(gateway, namespace):
        for hostname in sorted({canonical_host(each) for each in route.hostnames}):
            if rejection := reject_hostname(hostname, namespace):
                rejections.append(rejection)
            elif any(_selects(gateway, parent, route.id.kind, hostname) for parent in parents):
                hostnames.append(hostname)
    return AdmittedRoute(replace(route, hostnames=tuple(hostnames), parents=parents), tuple(rejections))


def reject_parent(
    gateway: TenantGateway,
    parent: ParentRef,
    kind: RouteKind,
    hostnames: Sequence[str],
    namespace: RouteNamespace,
    *,
    grpc_routes: bool = False,
) -> HostnameRejection | None:
    """Returns the reason why no listener that a parentRef may mean admits the route; None if one does."""
    if rejection := reject_kind(kind, _describe(gateway), grpc_routes=grpc_routes):
        return rejection
    if parent.port not in (None, names.HTTP_PORT, HTTPS_PORT):
        return _no_parent(gateway, f"has no listener on port {parent.port}")
    plain_http = binds_plain_http(parent)
    if plain_http and kind != "HTTPRoute":
        return HostnameRejection(
            NOT_ALLOWED_BY_LISTENERS, f"{_describe(gateway)} admits only HTTPRoutes on port {names.HTTP_PORT}"
        )
    if plain_http and parent.listener_set:
        return _no_parent(gateway, f"has no ListenerSet with a listener on port {names.HTTP_PORT}")
    either_port = not (parent.section or parent.port or parent.listener_set) and kind == "HTTPRoute"
    if (plain_http or either_port) and admits_plain_http(gateway, namespace.name):
        return None
    if plain_http or not admits_namespace(gateway, namespace):
        return _not_allowed(gateway, namespace, plain_http=plain_http)
    if hostnames and not any(_selects(gateway, parent, kind, canonical_host(each)) for each in hostnames):
        return _no_parent(gateway, f'has no listener "{parent.section}" for a hostname of this route')
    return None


def reject_hostname(hostname: str, namespace: RouteNamespace) -> HostnameRejection | None:
    """Returns the reason why routes of a tenant's namespace may not claim a canonical hostname (layer 5); None if they
    may. Outside of tenants' namespaces, the apex of the Gateway is the only limit."""
    if not namespace.name.startswith(NAMESPACE_PREFIX):
        return None
    host = canonical_host(namespace.host)
    if host and within(host, hostname):
        return None
    what = f'the host of namespace {namespace.name} is "{host}"' if host else f"namespace {namespace.name} has no host"
    remedy = f"choose {host} or a name below it" if host else f"set spec.host of the tenant, which sets {HOST_LABEL}"
    return HostnameRejection(NO_MATCHING_LISTENER, f'"{hostname}" is not of this namespace: {what}; {remedy}')


def _selects(gateway: TenantGateway, parent: ParentRef, kind: RouteKind, hostname: str) -> bool:
    """True if a parentRef selects a listener on port 443 that serves the hostname, whether or not it exists yet."""
    if binds_plain_http(parent):
        return False
    return not parent.section or parent.section in _sections(gateway, kind, hostname)


def _sections(gateway: TenantGateway, kind: RouteKind, hostname: str) -> Collection[str]:
    """The names of all listeners that can serve a hostname. Those of wildcards serve names several labels below."""
    if kind == "TLSRoute":
        return (names.passthrough_listener_name(hostname.partition(".")[0]),)
    if gateway.cert_mode == "http01":
        return (names.listener_name(hostname),)
    apex = canonical_host(gateway.apex)
    if hostname == apex:
        return (names.APEX_LISTENER,)
    labels = hostname.removeprefix(WILDCARD).split(".")
    above = [".".join(labels[start:]) for start in range(0 if hostname.startswith(WILDCARD) else 1, len(labels))]
    return (names.WILDCARD_LISTENER, *(names.child_listener_name(each) for each in above if each != apex))


def _not_allowed(gateway: TenantGateway, namespace: RouteNamespace, *, plain_http: bool) -> HostnameRejection:
    refusal = f"{_describe(gateway)} does not admit routes of namespace {namespace.name}"
    if plain_http:
        return HostnameRejection(
            NOT_ALLOWED_BY_LISTENERS, f"{refusal} on port {names.HTTP_PORT}: use port {HTTPS_PORT}"
        )
    if namespace.gateway:
        remedy = f"attach to a Gateway of namespace {namespace.gateway}, which its label {GATEWAY_LABEL} names"
    else:
        remedy = f"its label {GATEWAY_LABEL} is missing"
    return HostnameRejection(NOT_ALLOWED_BY_LISTENERS, f"{refusal}: {remedy}")


def _no_parent(gateway: TenantGateway, why: str) -> HostnameRejection:
    return HostnameRejection(NO_MATCHING_PARENT, f"{_describe(gateway)} {why}: omit sectionName and port")


def _describe(gateway: TenantGateway) -> str:
    return f"Gateway {gateway.key.namespace}/{gateway.key.name}"
