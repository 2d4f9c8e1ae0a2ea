"""Reads what the user may know of a Tenant, a hostname, a route or a namespace."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import NamedTuple

from apiserver.meta.resource import Key, Object
from apiserver.request.context import User
from apiserver.storage.watch_cache import WatchCache
from registry.cluster.interface import NAMESPACES, RESOURCEQUOTAS, ClusterResource
from registry.explain.hostnames import (
    certificate_name,
    domains_around,
    hostname_matches,
    is_passthrough,
    mappings,
    within,
)
from registry.explain.known import KnownGateway, KnownHost, KnownNamespace, KnownRoute, KnownTenant
from registry.explain.possible_keys import key_of_domain, key_of_namespace
from registry.explain.sight import MOST_REVIEWS, ListedPage, Sight
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
_ROUTES = (*((each,) for each in _HTTP_AND_GRPC), _TLS)
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
    asked = [each for each in dict.fromkeys(named) if each]
    visible, quota = await asyncio.gather(
        asyncio.gather(*(_visible_key(sources, sight, each) for each in asked)),
        sight.get(RESOURCEQUOTAS, Key(str(status.get("namespace") or ""), POOL_NAME)),
    )
    owners = {namespace: key for namespace, key in zip(asked, visible, strict=True) if key is not None}
    return KnownTenant(obj=obj, owners=owners, quota=quota, gateway_class=await _gateway_class(sources, sight, obj))


async def read_host(sources: ExplainSources, sight: Sight, tenant: KnownTenant, host: str) -> KnownHost:
    around = await _tenants_around(sources, sight, tenant, host)
    owner = await _owner_of_host(sources, sight, tenant, host, around)
    gateway = await _gateway(sources, sight, tenant)
    namespaces = [each for each in _namespaces_of_routes(tenant, gateway, around.values()) if each]
    found = await _routes(sight, namespaces[:_MOST_NAMESPACES], host)
    kind = _TLS[0] if is_passthrough(gateway, host) else _HTTP_AND_GRPC[0]
    return KnownHost(
        tenant=tenant,
        host=host,
        owner=owner,
        may_set_host=sources.may_set_host(sight.user),
        may_create_routes=await sight.may("create", kind, tenant.namespace),
        gateway=gateway,
        routes=found.routes,
        searched=found.searched,
        incomplete=found.truncated or bool(found.unlisted) or len(found.searched) < len(namespaces),
        may_list_routes=(tenant.namespace, kind.plural) not in found.unlisted,
        certificate=await _certificate(sight, gateway, host),
    )


async def read_route(sources: ExplainSources, sight: Sight, tenant: KnownTenant, key: Key) -> KnownRoute:
    """The first of the kinds of routes that has an object of this name."""
    for resource in (*_HTTP_AND_GRPC, *_TLS):
        route = await sight.get(resource, key)
        if route is not None:
            owner = await _visible_tenant(sources, sight, key.namespace)
            gateway = _gateway_key(sources, owner) if owner is not None else None
            return KnownRoute(tenant=tenant, key=key, route=route, gateway=gateway)
    return KnownRoute(tenant=tenant, key=key, route=None)


async def read_namespace(sources: ExplainSources, sight: Sight, tenant: KnownTenant, name: str) -> KnownNamespace:
    owner = await _visible_tenant(sources, sight, name)
    return KnownNamespace(tenant=tenant, name=name, owner=owner, namespace=await sight.get(NAMESPACES, Key("", name)))


async def _tenants_around(
    sources: ExplainSources, sight: Sight, tenant: KnownTenant, host: str
) -> Mapping[str, Object]:
    """Other Tenants that the user may get, by the domains around the host that they have, the longest first. Each
    domain costs one review: of the oldest of several Tenants that have it, or of one that might."""
    domains = list(domains_around(host))[-MOST_REVIEWS:]
    found = [_other_with_host(sources.tree, tenant, each) for each in domains]
    keys = [
        key if key is not None else key_of_domain(sources.tree.root_host, domain)
        for domain, key in zip(domains, found, strict=True)
    ]
    allowed = await asyncio.gather(*(sight.may_get_tenant(each) for each in keys))
    around: dict[str, Object] = {}
    for domain, key, may in zip(domains, found, allowed, strict=True):
        if may and key is not None and (cached := await sources.tenants.get(key)) is not None:
            around[domain] = cached.object()
    return around


def _other_with_host(tree: TenantTree, tenant: KnownTenant, domain: str) -> Key | None:
    found = [each for each in tree.tenants_with_host(domain) if each.key != tenant.key]
    return min(found, key=lambda each: (each.created, each.key)).key if found else None


async def _owner_of_host(
    sources: ExplainSources, sight: Sight, tenant: KnownTenant, host: str, around: Mapping[str, Object]
) -> KnownTenant | None:
    """The Tenant with the longest domain around the host, unless that of `tenant` is as long."""
    for domain, obj in around.items():
        if within(tenant.host, host) and len(domain) <= len(tenant.host):
            return None
        return await read_tenant(sources, sight, obj)
    return None


async def _visible_tenant(sources: ExplainSources, sight: Sight, namespace: str) -> KnownTenant | None:
    """The Tenant with this workload namespace, if the user may get it."""
    key = await _visible_key(sources, sight, namespace)
    found = await sources.tenants.get(key) if key is not None else None
    return await read_tenant(sources, sight, found.object()) if found is not None else None


async def _visible_key(sources: ExplainSources, sight: Sight, namespace: str) -> Key | None:
    """As `_visible_tenant`; it costs one review, of a Tenant that might have the namespace if none has it."""
    found = sources.tree.by_namespace(namespace)
    may = await sight.may_get_tenant(found.key if found is not None else key_of_namespace(namespace))
    return found.key if found is not None and may else None


def _gateway_key(sources: ExplainSources, tenant: KnownTenant) -> Key | None:
    namespace = tenant.gateway_namespace
    return Key(namespace, sources.gateway_name) if namespace else None


async def _gateway(sources: ExplainSources, sight: Sight, tenant: KnownTenant) -> KnownGateway | None:
    key = _gateway_key(sources, tenant)
    if key is None:
        return None
    ours, gateway = await asyncio.gather(sight.get(TENANTGATEWAYS, key), sight.get(GATEWAYS, key))
    return KnownGateway(key=key, tenantgateway=ours, gateway=gateway)


async def _gateway_class(sources: ExplainSources, sight: Sight, obj: Object) -> str:
    """The GatewayClass of a Gateway of the Tenant that no controller has accepted."""
    conditions = mappings((obj.get("status") or {}).get("conditions"))
    if not any(each.get("reason") == "GatewayNotAccepted" for each in conditions):
        return ""
    found = await _gateway(sources, sight, KnownTenant(obj=obj))
    return found.class_name if found is not None else ""


def _namespaces_of_routes(tenant: KnownTenant, gateway: KnownGateway | None, around: Iterable[Object]) -> Sequence[str]:
    """The namespaces whose routes may have the host on the Gateway of the Tenant, as far as the user may know of them:
    its own, that of the Gateway, those of the Tenants with a domain `around` the host and the same Gateway, as their
    statuses tell, and others that the Gateway admits."""
    found = {tenant.namespace: None}
    if gateway is not None:
        found[gateway.key.namespace] = None
        others = (KnownTenant(obj=each) for each in around)
        found |= {each.namespace: None for each in others if each.gateway_namespace == gateway.key.namespace}
        found |= dict.fromkeys(_attached(gateway))
    return list(found)


def _attached(gateway: KnownGateway) -> Sequence[str]:
    """The namespaces whose routes the Gateway admits besides those of its heirs."""
    return [str(each) for each in ((gateway.tenantgateway or {}).get("spec") or {}).get("attachedNamespaces") or ()]


async def _certificate(sight: Sight, gateway: KnownGateway | None, host: str) -> Object | None:
    """The Certificate of the listener of the host."""
    name = certificate_name(gateway.tenantgateway, host) if gateway is not None else ""
    return await sight.get(CERTIFICATES, Key(gateway.key.namespace, name)) if gateway is not None and name else None


class _FoundRoutes(NamedTuple):
    """The routes with a host, the namespaces in which the user may list HTTPRoutes, the namespaces and kinds of
    which they may list none, and whether there are more routes."""

    routes: Sequence[Object]
    searched: Sequence[str]
    unlisted: Set[tuple[str, str]]
    truncated: bool


async def _routes(sight: Sight, namespaces: Sequence[str], host: str) -> _FoundRoutes:
    found: list[Object] = []
    searched, unlisted, truncated = [], set[tuple[str, str]](), False
    for namespace in namespaces:
        for versions in _ROUTES:
            page = await _listed_routes(sight, versions, namespace)
            if page is None:
                unlisted.add((namespace, versions[0].plural))
                continue
            truncated = truncated or page.truncated
            if versions[0] is _HTTP_AND_GRPC[0]:
                searched.append(namespace)
            found += [each for each in page.items if _names(each, host)]
    return _FoundRoutes(found, searched, unlisted, truncated)


async def _listed_routes(sight: Sight, versions: Sequence[ClusterResource], namespace: str) -> ListedPage | None:
    """Those of the first version that the cluster serves. None if the user may not list them."""
    page: ListedPage | None = ListedPage(())
    for each in versions:
        page = await sight.list(each, namespace, limit=_MOST_ROUTES)
        if page is None or page.served:
            return page
    return page


def _names(route: Object, host: str) -> bool:
    return any(
        isinstance(each, str) and each and hostname_matches(each, host)
        for each in (route.get("spec") or {}).get("hostnames") or ()
    )
