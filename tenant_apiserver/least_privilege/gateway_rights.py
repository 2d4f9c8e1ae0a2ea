"""The rows of the table for the objects of TenantGateways, and for routes."""

from __future__ import annotations

from collections.abc import Sequence

from controller.publishing.services import SERVICES
from controller.tenantgateway.model import ROUTE_KINDS, RouteKind
from tenant_apiserver.least_privilege import limits, places
from tenant_apiserver.least_privilege.issuance_limits import certificate_limits, issuer_limits
from tenant_apiserver.least_privilege.right import Right, Role

_READ_AGAIN = {
    "get": "tests/controller/runtime/test_apply.py::"
    "test_a_foreign_object_that_the_cache_has_not_seen_is_not_written_either"
}
"""The proof of `get`: an object that the cache has not seen yet is read before anything is written to it."""

_PLATFORM_ROUTES = (
    "tests/e2e/gateways/test_migration.py::test_no_hostname_is_unserved_on_the_way_there_and_the_way_back_has_a_limit"
)
_READ = ("get", "list", "watch")
_GATEWAY_API, _CERT_MANAGER = "gateway.networking.k8s.io", "cert-manager.io"


def gateway_rights(role: Role) -> Sequence[Right]:
    # their limit on annotations allows more than that of the others
    platform = [_platform_routes(role, kind) for kind in ("HTTPRoute", "TLSRoute")]
    return (
        _gateways(role),
        *_listener_sets(role),
        *platform,
        _redirects(role),
        *(_flat_routes(role, kind) for kind in ROUTE_KINDS),
        _issuers(role),
        _certificates(role),
        *_routes(role),
    )


def _gateways(role: Role) -> Right:
    return Right(
        role=role,
        group=_GATEWAY_API,
        resources=["gateways"],
        verbs=[*_READ, "create", "patch"],
        place=places.OWNED_BY_TENANTGATEWAY,
        limits=[limits.owner_stays(), limits.annotations_stay()],
        proofs=_READ_AGAIN,
        why="A TenantGateway owns a Gateway.",
        remains="Change the Gateways of tenants: their listeners, and with them who receives their traffic. Create "
        "Gateways anywhere, but only with a TenantGateway as their owner: if it does not exist, they are garbage at "
        "once.",
    )


def _redirects(role: Role) -> Right:
    return Right(
        role=role,
        group=_GATEWAY_API,
        resources=["httproutes"],
        verbs=[*_READ, "create", "patch"],
        place=places.OWNED_BY_TENANTGATEWAY,
        limits=[limits.owner_stays(), limits.annotations_stay()],
        proofs=_READ_AGAIN,
        why="A TenantGateway owns a route that redirects to HTTPS. Hostnames of routes decide which listeners a "
        "Gateway has.",
        remains="Create routes anywhere, but only with a TenantGateway as their owner: if it does not exist, they are "
        "garbage at once.",
    )


def _listener_sets(role: Role) -> Sequence[Right]:
    return (
        Right(
            role=role,
            group=_GATEWAY_API,
            resources=["listenersets"],
            verbs=[*_READ, "create", "patch", "delete"],
            place=places.OWNED_BY_TENANTGATEWAY,
            limits=[limits.owner_stays(), limits.annotations_stay()],
            proofs=_READ_AGAIN,
            why="A TenantGateway owns ListenerSets with the listeners that do not fit on its Gateway.",
            remains="Change these listeners, as those of the Gateway itself.",
        ),
        Right(
            role=role,
            group=_GATEWAY_API,
            resources=["gatewayclasses"],
            verbs=["list", "watch"],
            why="A GatewayClass says whether its controller implements ListenerSets.",
            remains="Read all of them.",
        ),
    )


def _flat_routes(role: Role, kind: RouteKind) -> Right:
    return Right(
        role=role,
        group=_GATEWAY_API,
        resources=[f"{kind.lower()}s"],
        verbs=[*_READ, "create", "patch", "delete"],
        place=places.flat_routes(kind),
        limits=[limits.flat_route_stays(kind), limits.annotations_stay()],
        proofs=_READ_AGAIN,
        why="A route that delegates parts of its hostname owns the routes that the Gateway serves in its place. They "
        "are deleted when somebody withdraws.",
        remains="Serve any rules below the hostnames of a namespace, as far as layer 5 and ReferenceGrants permit, and "
        "stop what is delegated.",
    )


def _issuers(role: Role) -> Right:
    return Right(
        role=role,
        group=_CERT_MANAGER,
        resources=["issuers"],
        verbs=[*_READ, "create", "patch", "delete"],
        place=places.OWNED_BY_TENANTGATEWAY,
        limits=[limits.owner_stays(), *issuer_limits()],
        proofs=_READ_AGAIN,
        why="A TenantGateway owns an Issuer, an ACME account. It is deleted when it is no longer needed.",
        remains="Have certificates issued by another ACME server, with the DNS tokens of the tenant.",
    )


def _certificates(role: Role) -> Right:
    return Right(
        role=role,
        group=_CERT_MANAGER,
        resources=["certificates"],
        verbs=[*_READ, "create", "patch", "delete"],
        place=places.OWNED_BY_TENANTGATEWAY,
        limits=[limits.owner_stays(), *certificate_limits()],
        proofs=_READ_AGAIN,
        why="A TenantGateway owns Certificates. Those that it no longer needs are deleted.",
        remains="Let cert-manager request certificates for any hostname from Issuers named *-gateway, and write "
        "them into Secrets named *-tls next to the Certificate, also in place of what is there. It cannot read "
        "these Secrets.",
    )


def _routes(role: Role) -> Sequence[Right]:
    """The routes of tenants; they are read with the rights above."""
    return (
        Right(
            role=role,
            group=_GATEWAY_API,
            resources=["referencegrants"],
            verbs=["list", "watch"],
            why="A ReferenceGrant is a namespace's consent to references from other namespaces.",
            remains="Read all of them.",
        ),
        _route_status(role, "httproutes", "tlsroutes"),
        _route_status(role, "grpcroutes"),
    )


def _route_status(role: Role, *plurals: str) -> Right:
    return Right(
        role=role,
        group=_GATEWAY_API,
        resources=[f"{each}/status" for each in plurals],
        verbs=["patch"],
        limits=[limits.route_status_limit()],
        why="Conditions on routes report contested hostnames.",
        remains="Show wrong conditions under our name.",
    )


def _platform_routes(role: Role, kind: str) -> Right:
    services = [each for each in SERVICES.values() if each.kind == kind]
    verbs = ("get", "create", "patch", "delete")
    return Right(
        role=role,
        group=_GATEWAY_API,
        resources=[f"{kind.lower()}s"],
        verbs=verbs,
        names=[each.route for each in services],
        place=places.platform_routes(services),
        limits=[limits.platform_route_annotations(), limits.platform_route_backends(services)],
        proofs=dict.fromkeys(verbs, _PLATFORM_ROUTES),
        why="With `gateway.platformRoutes: true`, the routes of the platform's services are ours.",
        remains="Take these services off their hostnames, or publish them under others and by other Gateways.",
    )
