"""Decides which roots a TenantGateway serves: as for any route, only what is admitted counts. Pure."""

from __future__ import annotations

from apiserver.meta.resource import Key
from controller.tenantgateway.delegation.model import Participant
from controller.tenantgateway.hostname_validation import (
    NO_MATCHING_LISTENER,
    NOT_ALLOWED_BY_LISTENERS,
    ORPHANED,
    UNSUPPORTED_VALUE,
    HostnameRejection,
    check_domain,
)
from controller.tenantgateway.model import RouteNamespace, TenantGateway
from controller.tenantgateway.route_admission import admits_namespace, reject_hostname, reject_kind
from registry.names import GATEWAY_LABEL, NAMESPACE_PREFIX, canonical_host
from registry.tenantgateway.types import TENANTGATEWAY_NAME


def reject_root(
    root: Participant, key: Key, gateway: TenantGateway | None, namespace: RouteNamespace, *, grpc_routes: bool = False
) -> HostnameRejection | None:
    """Returns the reason why no part of the root is served by a TenantGateway, which is None if there is none of this
    key; or None if everything is in order. One hostname that is refused refuses the whole root (R-349)."""
    if gateway is None:
        return HostnameRejection(ORPHANED, _describe_missing(key))
    if root.problem:
        return HostnameRejection(UNSUPPORTED_VALUE, root.problem)
    what = f"TenantGateway {gateway.key.namespace}/{gateway.key.name}"
    if rejection := reject_kind(root.id.kind, what, grpc_routes=grpc_routes):
        return rejection
    if not admits_namespace(gateway, namespace):
        return HostnameRejection(
            NOT_ALLOWED_BY_LISTENERS,
            f"TenantGateway {gateway.key.namespace}/{gateway.key.name} does not admit routes of namespace "
            f"{namespace.name}: its label {GATEWAY_LABEL} names another, or is missing",
        )
    if not root.hostnames:
        return HostnameRejection(NO_MATCHING_LISTENER, "a route that refers to a TenantGateway must have hostnames")
    apex = canonical_host(gateway.apex)
    rejections = (
        reject_hostname(each, namespace) or check_domain(each, apex) or _check_listener(each, root, gateway)
        for each in root.hostnames
    )
    return next(filter(None, rejections), None)


def _check_listener(hostname: str, root: Participant, gateway: TenantGateway) -> HostnameRejection | None:
    """TLSRoutes attach to the passthrough listeners of the TenantGateway only, one for each of its services."""
    apex = canonical_host(gateway.apex)
    if root.id.kind != "TLSRoute" or hostname in {f"{each.lower()}.{apex}" for each in gateway.passthrough}:
        return None
    if _is_of_tenant(gateway.key):
        remedy = f"an administrator can add the name before {apex} to gateway.tlsPassthroughServices"
    else:
        remedy = f"list the name before {apex} in spec.tlsPassthroughServices of the TenantGateway"
    return HostnameRejection(NO_MATCHING_LISTENER, f'"{hostname}" has no TLS passthrough listener: {remedy}')


def _describe_missing(key: Key) -> str:
    what = f"there is no TenantGateway {key.namespace}/{key.name}"
    if not key.namespace.startswith(NAMESPACE_PREFIX):
        return f"{what}: correct the parentRef, or create it"
    if key.name != TENANTGATEWAY_NAME:
        return f"{what}: the TenantGateway of a tenant is called {TENANTGATEWAY_NAME}"
    return f"{what}: set spec.gateway of its tenant"


def _is_of_tenant(key: Key) -> bool:
    """True of the name by which the controller of Tenants writes TenantGateways, and takes back what others write."""
    return key.name == TENANTGATEWAY_NAME and key.namespace.startswith(NAMESPACE_PREFIX)
