"""Reads what the user may know of a Tenant, a hostname, a route or a namespace."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace

from apiserver.meta.resource import Key, Object
from registry.cluster.interface import NAMESPACES, RESOURCEQUOTAS, ClusterResource
from registry.explain.domains import TenantsAround, tenants_around
from registry.explain.hostnames import (
    certificate_name,
    is_passthrough,
    mappings,
    within,
)
from registry.explain.known import KnownGateway, KnownHost, KnownNamespace, KnownRoute, KnownTenant
from registry.explain.possible_keys import key_of_namespace
from registry.explain.read_routes import GATEWAY_API, HTTP_AND_GRPC, TLS, read_routes
from registry.explain.reading_slots import ReadingSlots
from registry.explain.sight import Sight
from registry.explain.sources import ExplainSources
from registry.tenant.pool_quotas import POOL_NAME
from registry.tenantgateway.types import TENANTGATEWAYS

GATEWAYS = ClusterResource(GATEWAY_API, "v1", "gateways", "Gateway")
CERTIFICATES = ClusterResource("cert-manager.io", "v1", "certificates", "Certificate")


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


async def read_host(
    sources: ExplainSources, sight: Sight, tenant: KnownTenant, host: str, slots: ReadingSlots
) -> KnownHost:
    """The routes are read where the Tenant has the host: those of another one decide nothing here. Raises
    TooManyRequests while others are being read."""
    around = await tenants_around(sources, sight, tenant, host)
    owner = await _owner_of_host(sources, sight, tenant, host, around)
    known = KnownHost(tenant=tenant, host=host, owner=owner, may_set_host=sources.may_set_host(sight.user))
    if owner is not None or not within(tenant.host, host):
        return known
    gateway = await _gateway(sources, sight, tenant)
    namespaces = [each for each in _namespaces_of_routes(tenant, gateway, around.tenants) if each]
    async with slots.held(sight.user.name):
        found = await read_routes(sight, namespaces, host)
    kind = TLS[0] if is_passthrough(gateway, host) else HTTP_AND_GRPC[0]
    return replace(
        known,
        may_create_routes=await sight.may("create", kind, tenant.namespace),
        gateway=gateway,
        routes=found.routes,
        searched=found.searched,
        left_out=found.left_out,
        incomplete=bool(found.left_out or found.unlisted) or len(found.searched) < len(namespaces) or around.truncated,
        may_list_routes=(tenant.namespace, kind.plural) not in found.unlisted,
        certificate=await _certificate(sight, gateway, host),
    )


async def read_route(sources: ExplainSources, sight: Sight, tenant: KnownTenant, key: Key) -> KnownRoute:
    """The first of the kinds of routes that has an object of this name."""
    for resource in (*HTTP_AND_GRPC, *TLS):
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
        keys = (await sources.visible(sight.user))(keys)
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
