"""What a host with TenantGatewayIndex has to hold, worked out from everything that is on it, without any index."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from apiserver.meta.resource import Key, Object
from controller.runtime.apply import merge_patch
from controller.tenantgateway import parse
from controller.tenantgateway.ensure import is_owned
from controller.tenantgateway.model import Plan, Route, RouteKind, TenantGateway
from controller.tenantgateway.plan import plan
from controller.tenantgateway.render.gateway import render_gateway
from controller.tenantgateway.route_status import rejections_by_route
from registry.cluster.interface import NAMESPACES, ClusterResource
from registry.names import GATEWAY_ATTACHED_BY_ANNOTATION
from registry.tenantgateway.types import TENANTGATEWAYS
from tests.controller.tenantgateway.gateway_world import (
    CERTIFICATES,
    GATEWAYS,
    HTTPROUTES,
    ISSUERS,
    OURS,
    TLSROUTES,
    World,
)

_KINDS: tuple[tuple[ClusterResource, RouteKind], ...] = ((HTTPROUTES, "HTTPRoute"), (TLSROUTES, "TLSRoute"))


async def surprises(world: World) -> list[str]:
    """What is not as it should be, a sentence each. A TenantGateway with a problem leaves everything as it was."""
    gateways = [parse.tenantgateway(each) for each in await _all(world, TENANTGATEWAYS)]
    routes = [(obj, kind) for res, kind in _KINDS for obj in await _all(world, res)]
    plans: dict[Key, Plan] = {}
    found: list[str] = []
    for gateway, problem in gateways:
        if not problem:
            plans[gateway.key] = await _plan(world, gateway, routes)
            found += await _made(world, gateway, plans[gateway.key])
    found += _told(plans, routes, problematic={each.key for each, problem in gateways if problem})
    listed = {each: gateway.key.namespace for gateway, _ in gateways for each in gateway.attached}
    for namespace in await _all(world, NAMESPACES):
        metadata = namespace["metadata"]
        marked = (metadata.get("annotations") or {}).get(GATEWAY_ATTACHED_BY_ANNOTATION)
        if marked and metadata["name"] not in listed:
            found.append(f"{metadata['name']} is attached to {marked}, and nobody lists it")
    return found


async def _all(world: World, res: ClusterResource, namespace: str = "") -> Sequence[Object]:
    items: list[Object] = (await world.cluster.list(res, namespace))["items"]
    return items


async def _plan(world: World, gateway: TenantGateway, routes: Sequence[tuple[Object, RouteKind]]) -> Plan:
    owner = gateway.key.namespace
    inheriting = [
        found[1]
        for each in await _all(world, NAMESPACES)
        if (found := parse.inheriting_namespace(each)) and found[0] == owner
    ]
    own: list[Route] = [
        route for obj, kind in routes if (route := parse.routes_by_gateway(obj, kind).get(gateway.key)) is not None
    ]
    return plan(gateway, inheriting, own, current=_own_gateway(world, gateway))


def _own_gateway(world: World, gateway: TenantGateway) -> Object | None:
    found = world.cluster.peek(GATEWAYS, gateway.key.namespace, gateway.key.name)
    return found if found is not None and is_owned(found, gateway.uid) else None


async def _made(world: World, gateway: TenantGateway, made: Plan) -> Sequence[str]:
    found, namespace = [], gateway.key.namespace
    current = _own_gateway(world, gateway)
    if current is None and world.cluster.peek(GATEWAYS, namespace, gateway.key.name) is None:
        found.append(f"{gateway.key} has no Gateway")
    if current is not None and (changes := merge_patch(current, render_gateway(gateway, made))):
        found.append(f"the Gateway of {gateway.key} lacks {changes}")
    planned = {each.name for each in made.certificates}
    if surplus := await _owned(world, CERTIFICATES, gateway) - planned:
        found.append(f"{gateway.key} has {surplus} left")
    issuers = await _owned(world, ISSUERS, gateway)
    if gateway.cert_mode == "existingSecret" and issuers:
        found.append(f"{gateway.key} has {issuers} left")
    held = {each["metadata"]["name"] for each in await _all(world, CERTIFICATES, namespace)}
    if issuers and planned - held:
        found.append(f"{gateway.key} has no {planned - held}")
    return found


async def _owned(world: World, res: ClusterResource, gateway: TenantGateway) -> set[str]:
    items = await _all(world, res, gateway.key.namespace)
    return {each["metadata"]["name"] for each in items if is_owned(each, gateway.uid)}


def _told(
    plans: dict[Key, Plan], routes: Sequence[tuple[Object, RouteKind]], *, problematic: set[Key]
) -> Iterator[str]:
    """Every parentRef that was refused has to say so, and nothing else may."""
    for obj, kind in routes:
        identity = parse.route_id(obj, kind)
        lost = {
            (gateway, parent.get("sectionName"), parent.get("port"))
            for parent in parse.parent_refs(obj)
            if (gateway := parse.parent_gateway(parent, identity.namespace)) in plans
            and identity in rejections_by_route(plans[gateway])
            and parent.get("sectionName") != "http"
        }
        said = {
            (gateway, parent.get("sectionName"), parent.get("port"))
            for entry in (obj.get("status") or {}).get("parents") or ()
            if entry["controllerName"] == OURS and _is_refused(entry)
            for parent in (entry["parentRef"],)
            if (gateway := parse.parent_gateway(parent, identity.namespace)) not in problematic
        }
        if lost != said:
            yield f"{kind} {identity} was told {said}, and should be {lost}"


def _is_refused(entry: Object) -> bool:
    return any((each["type"], each["status"]) == ("Accepted", "False") for each in entry["conditions"])
