"""Reads what the user may know of a Tenant, a hostname, a route or a namespace."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence, Set
from typing import NamedTuple

from apiserver.meta.resource import Key, Object
from registry.cluster.interface import NAMESPACES, RESOURCEQUOTAS, ClusterResource
from registry.explain.domains import TenantsAround, tenants_around
from registry.explain.hostnames import (
    certificate_name,
    hostname_matches,
    is_passthrough,
    mappings,
    within,
)
from registry.explain.known import KnownGateway, KnownHost, KnownNamespace, KnownRoute, KnownTenant
from registry.explain.possible_keys import key_of_namespace
from registry.explain.sight import ListedPage, Sight
from registry.explain.sources import ExplainSources
from registry.tenant.pool_quotas import POOL_NAME
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
    around = await tenants_around(sources, sight, tenant, host)
    owner = await _owner_of_host(sources, sight, tenant, host, around)
    gateway = await _gateway(sources, sight, tenant)
    namespaces = [each for each in _namespaces_of_routes(tenant, gateway, around.tenants) if each]
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
        incomplete=found.truncated or bool(found.unlisted) or len(found.searched) < len(namespaces) or around.truncated,
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


async def _owner_of_host(
    sources: ExplainSources, sight: Sight, tenant: KnownTenant, host: str, around: TenantsAround
) -> KnownTenant | None:
    """The Tenant with the longest domain around the host, the oldest of several, unless that of `tenant` is as long."""
    if not around.tenants or (within(tenant.host, host) and len(around.longest) <= len(tenant.host)):
        return None
    return await read_tenant(sources, sight, around.tenants[0])


async def _visible_tenant(sources: ExplainSources, sight: Sight, namespace: str) -> KnownTenant | None:
    """The Tenant with this workload namespace, if the user may get it."""
    key = await _visible_key(sources, sight, namespace)
    found = await sources.tenants.get(key) if key is not None else None
    return await read_tenant(sources, sight, found.object()) if found is not None else None


async def _visible_key(sources: ExplainSources, sight: Sight, namespace: str) -> Key | None:
    """As `_visible_tenant`; it costs one review, of a Tenant that might have the namespace if none has it. Of several
    that have it, those that are hidden do not decide which is told."""
    keys = [each.key for each in sources.tree.all_by_namespace(namespace)]
    if len(keys) > 1:
        keys = await sources.visible(sight.user, keys)
    may = await sight.may_get_tenant(keys[0] if keys else key_of_namespace(namespace))
    return keys[0] if keys and may else None


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
