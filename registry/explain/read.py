"""Reads what the user may know of a Tenant, a hostname, a route or a namespace."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from apiserver.meta.resource import Key, Object
from apiserver.request.context import User
from apiserver.storage.watch_cache import WatchCache
from registry.cluster.interface import NAMESPACES, RESOURCEQUOTAS, ClusterResource
from registry.explain.chains.host import hostname_matches, within
from registry.explain.known import KnownGateway, KnownHost, KnownNamespace, KnownRoute, KnownTenant
from registry.explain.sight import Sight
from registry.tenant.pool_quotas import POOL_NAME
from registry.tenant.tree import TenantTree
from registry.tenantgateway.types import TENANTGATEWAYS

_GATEWAY_API = "gateway.networking.k8s.io"
GATEWAYS = ClusterResource(_GATEWAY_API, "v1", "gateways", "Gateway")
CERTIFICATES = ClusterResource("cert-manager.io", "v1", "certificates", "Certificate")
_HTTP_AND_GRPC = (
    ClusterResource(_GATEWAY_API, "v1", "httproutes", "HTTPRoute"),
    ClusterResource(_GATEWAY_API, "v1", "grpcroutes", "GRPCRoute"),
)
_TLS = tuple(
    ClusterResource(_GATEWAY_API, version, "tlsroutes", "TLSRoute") for version in ("v1", "v1alpha3", "v1alpha2")
)
_MOST_ROUTES = 500
_MOST_NAMESPACES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainSources:
    """`gateway_name` is the name of the TenantGateways and Gateways of tenants. `may_set_host` is the host policy."""

    tree: TenantTree
    tenants: WatchCache
    gateway_name: str
    may_set_host: Callable[[User], bool]


async def read_tenant(sources: ExplainSources, sight: Sight, obj: Object) -> KnownTenant:
    """A Tenant that the user may get, with what it names."""
    status = obj.get("status") or {}
    named = [
        obj["metadata"]["namespace"],
        *(str((status.get(each) or {}).get("namespace")) for each in ("host", "gateway")),
    ]
    named += [str(each) for each in (status.get("services") or {}).values()]
    found = {namespace: owner.key for namespace in named if (owner := sources.tree.by_namespace(namespace)) is not None}
    visible, quota = await asyncio.gather(
        sight.tenants(found.values()), sight.get(RESOURCEQUOTAS, Key(str(status.get("namespace") or ""), POOL_NAME))
    )
    owners = {namespace: key for namespace, key in found.items() if key in visible}
    return KnownTenant(obj=obj, owners=owners, quota=quota)


async def read_host(sources: ExplainSources, sight: Sight, tenant: KnownTenant, host: str) -> KnownHost:
    owner = await _owner_of_host(sources, sight, tenant, host)
    gateway = await _gateway(sources, sight, tenant)
    namespaces = list(dict.fromkeys([tenant.namespace, *_attached(gateway, tenant)]))[:_MOST_NAMESPACES]
    routes, searched, truncated = await _routes(sight, [each for each in namespaces if each], host)
    return KnownHost(
        tenant=tenant,
        host=host,
        owner=owner,
        may_set_host=sources.may_set_host(sight.user),
        may_create_routes=bool(routes) or await sight.may("create", _HTTP_AND_GRPC[0], tenant.namespace),
        gateway=gateway,
        routes=routes,
        searched=searched,
        truncated=truncated,
        certificate=await _certificate(sight, gateway, host),
    )


async def read_route(sight: Sight, tenant: KnownTenant, key: Key) -> KnownRoute:
    """The first of the kinds of routes that has an object of this name."""
    for resource in (*_HTTP_AND_GRPC, *_TLS):
        route = await sight.get(resource, key)
        if route is not None:
            return KnownRoute(tenant=tenant, key=key, route=route)
    return KnownRoute(tenant=tenant, key=key, route=None)


async def read_namespace(sources: ExplainSources, sight: Sight, tenant: KnownTenant, name: str) -> KnownNamespace:
    found = sources.tree.by_namespace(name)
    visible = await sight.tenants([found.key]) if found is not None else frozenset()
    owner = await _known(sources, sight, found.key) if found is not None and found.key in visible else None
    return KnownNamespace(tenant=tenant, name=name, owner=owner, namespace=await sight.get(NAMESPACES, Key("", name)))


async def _owner_of_host(sources: ExplainSources, sight: Sight, tenant: KnownTenant, host: str) -> KnownTenant | None:
    """Another Tenant that the user may get, with the longest domain around the host; not one around that of
    `tenant`."""
    labels = host.removeprefix("*.").split(".")
    for at in range(len(labels)):
        domain = ".".join(labels[at:])
        if domain == tenant.host and within(tenant.host, host):
            return None
        keys = [each.key for each in sources.tree.tenants_with_host(domain) if each.key != tenant.key]
        for key in sorted(await sight.tenants(keys)):
            return await _known(sources, sight, key)
    return None


async def _known(sources: ExplainSources, sight: Sight, key: Key) -> KnownTenant | None:
    found = await sources.tenants.get(key)
    return await read_tenant(sources, sight, found.object()) if found is not None else None


async def _gateway(sources: ExplainSources, sight: Sight, tenant: KnownTenant) -> KnownGateway | None:
    namespace = str((tenant.status.get("gateway") or {}).get("namespace") or "")
    if not namespace:
        return None
    key = Key(namespace, sources.gateway_name)
    ours, gateway = await asyncio.gather(sight.get(TENANTGATEWAYS, key), sight.get(GATEWAYS, key))
    return KnownGateway(key=key, tenantgateway=ours, gateway=gateway)


def _attached(gateway: KnownGateway | None, tenant: KnownTenant) -> Sequence[str]:
    """The namespaces whose routes the tenant's own Gateway admits besides its own."""
    if gateway is None or gateway.tenantgateway is None or gateway.key.namespace != tenant.namespace:
        return ()
    return [str(each) for each in (gateway.tenantgateway.get("spec") or {}).get("attachedNamespaces") or ()]


async def _certificate(sight: Sight, gateway: KnownGateway | None, host: str) -> Object | None:
    """The Certificate of the listener of the host."""
    if gateway is None or gateway.tenantgateway is None:
        return None
    for each in (gateway.tenantgateway.get("status") or {}).get("listeners") or ():
        if each.get("hostname") and each.get("certificateName") and hostname_matches(each["hostname"], host):
            return await sight.get(CERTIFICATES, Key(gateway.key.namespace, each["certificateName"]))
    return None


async def _routes(sight: Sight, namespaces: Sequence[str], host: str) -> tuple[Sequence[Object], Sequence[str], bool]:
    """The routes with the host, the namespaces in which the user may list HTTPRoutes, and whether there are more."""
    found: list[Object] = []
    searched, truncated = [], False
    for namespace in namespaces:
        for resource in (*_HTTP_AND_GRPC, _TLS[0]):
            page = await sight.list(resource, namespace, limit=_MOST_ROUTES)
            if page is None:
                continue
            truncated = truncated or page.truncated
            if resource is _HTTP_AND_GRPC[0]:
                searched.append(namespace)
            found += [each for each in page.items if _names(each, host)]
    return found, searched, truncated


def _names(route: Object, host: str) -> bool:
    return any(
        isinstance(each, str) and each and hostname_matches(each, host)
        for each in (route.get("spec") or {}).get("hostnames") or ()
    )
