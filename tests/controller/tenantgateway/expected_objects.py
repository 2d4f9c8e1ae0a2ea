"""Compares the cluster with the desired state of all TenantGateways, computed from full lists and without indexes."""

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


async def find_deviations(world: World) -> list[str]:
    """Returns one sentence for each deviation from the desired state. TenantGateways with a problem are not checked."""
    gateways = [parse.tenantgateway(each) for each in await _all(world, TENANTGATEWAYS)]
    routes = [(obj, kind) for res, kind in _KINDS for obj in await _all(world, res)]
    plans: dict[Key, Plan] = {}
    deviations: list[str] = []
    for gateway, problem in gateways:
        if not problem:
            plans[gateway.key] = await _plan(world, gateway, routes)
            deviations += await _check_objects(world, gateway, plans[gateway.key])
    deviations += _check_route_statuses(plans, routes, problematic={each.key for each, problem in gateways if problem})
    listed = {each: gateway.key.namespace for gateway, _ in gateways for each in gateway.attached}
    for namespace in await _all(world, NAMESPACES):
        metadata = namespace["metadata"]
        annotation = (metadata.get("annotations") or {}).get(GATEWAY_ATTACHED_BY_ANNOTATION)
        if annotation and metadata["name"] not in listed:
            deviations.append(f"{metadata['name']} is attached to {annotation}, but no TenantGateway lists it")
    return deviations


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


async def _check_objects(world: World, gateway: TenantGateway, plan: Plan) -> Sequence[str]:
    deviations, namespace = [], gateway.key.namespace
    current = _own_gateway(world, gateway)
    if current is None and world.cluster.peek(GATEWAYS, namespace, gateway.key.name) is None:
        deviations.append(f"{gateway.key} has no Gateway")
    if current is not None and (changes := merge_patch(current, render_gateway(gateway, plan))):
        deviations.append(f"the Gateway of {gateway.key} lacks {changes}")
    planned = {each.name for each in plan.certificates}
    if surplus := await _owned(world, CERTIFICATES, gateway) - planned:
        deviations.append(f"{gateway.key} still has {surplus}")
    issuers = await _owned(world, ISSUERS, gateway)
    if gateway.cert_mode == "existingSecret" and issuers:
        deviations.append(f"{gateway.key} still has {issuers}")
    existing = {each["metadata"]["name"] for each in await _all(world, CERTIFICATES, namespace)}
    if issuers and planned - existing:
        deviations.append(f"{gateway.key} has no {planned - existing}")
    return deviations


async def _owned(world: World, res: ClusterResource, gateway: TenantGateway) -> set[str]:
    items = await _all(world, res, gateway.key.namespace)
    return {each["metadata"]["name"] for each in items if is_owned(each, gateway.uid)}


def _check_route_statuses(
    plans: dict[Key, Plan], routes: Sequence[tuple[Object, RouteKind]], *, problematic: set[Key]
) -> Iterator[str]:
    """Every rejected parentRef must have an entry of ours that says so, and no other parentRef may."""
    for obj, kind in routes:
        identity = parse.route_id(obj, kind)
        expected = {
            (gateway, parent.get("sectionName"), parent.get("port"))
            for parent in parse.parent_refs(obj)
            if (gateway := parse.parent_gateway(parent, identity.namespace)) in plans
            and identity in rejections_by_route(plans[gateway])
            and parent.get("sectionName") != "http"
        }
        found = {
            (gateway, parent.get("sectionName"), parent.get("port"))
            for entry in (obj.get("status") or {}).get("parents") or ()
            if entry["controllerName"] == OURS and _is_rejected(entry)
            for parent in (entry["parentRef"],)
            if (gateway := parse.parent_gateway(parent, identity.namespace)) not in problematic
        }
        if found != expected:
            yield f"{kind} {identity} has rejections for {found}, expected {expected}"


def _is_rejected(entry: Object) -> bool:
    return any((each["type"], each["status"]) == ("Accepted", "False") for each in entry["conditions"])
