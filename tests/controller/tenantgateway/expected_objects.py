"""Compares the cluster with the desired state of all TenantGateways, computed from full lists and without indexes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from apiserver.meta.resource import Key, Object
from controller.runtime.apply import create_merge_patch
from controller.tenantgateway import parse
from controller.tenantgateway.ensure import is_owned
from controller.tenantgateway.hostname_validation import HostnameRejection
from controller.tenantgateway.model import Plan, RouteId, RouteKind, RouteNamespace, TenantGateway
from controller.tenantgateway.plan import plan
from controller.tenantgateway.render.gateway import render_gateway
from controller.tenantgateway.route_admission import admit, reject_parent
from controller.tenantgateway.route_status import rejections_by_route
from registry.cluster.interface import NAMESPACES, ClusterResource
from registry.names import GATEWAY_ATTACHED_BY_ANNOTATION, GATEWAY_LABEL, HOST_LABEL
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
    namespaces = {each["metadata"]["name"]: _labels(each) for each in await _all(world, NAMESPACES)}
    plans: dict[Key, _Planned] = {}
    deviations: list[str] = []
    for gateway, problem in gateways:
        if not problem:
            plans[gateway.key] = await _plan(world, gateway, routes, namespaces)
            deviations += await _check_objects(world, gateway, plans[gateway.key].plan)
    problematic = {each.key for each, problem in gateways if problem}
    deviations += _check_route_statuses(world, plans, routes, namespaces, problematic=problematic)
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


@dataclass(frozen=True)
class _Planned:
    """A TenantGateway and its plan, with the rejected hostnames of routes that it counts in part or not at all."""

    gateway: TenantGateway
    plan: Plan
    not_counted: Mapping[RouteId, Sequence[HostnameRejection]]


def _labels(namespace: Object) -> RouteNamespace:
    labels = namespace["metadata"].get("labels") or {}
    return RouteNamespace(namespace["metadata"]["name"], labels.get(GATEWAY_LABEL, ""), labels.get(HOST_LABEL, ""))


async def _plan(
    world: World,
    gateway: TenantGateway,
    routes: Sequence[tuple[Object, RouteKind]],
    namespaces: Mapping[str, RouteNamespace],
) -> _Planned:
    owner = gateway.key.namespace
    inheriting = [
        found[1]
        for each in await _all(world, NAMESPACES)
        if (found := parse.inheriting_namespace(each)) and found[0] == owner
    ]
    own = [
        admitted
        for obj, kind in routes
        if (route := parse.routes_by_gateway(obj, kind).get(gateway.key)) is not None
        and (admitted := admit(gateway, route, namespaces[route.id.namespace])) is not None
    ]
    counted, current = [each.route for each in own], _own_gateway(world, gateway)
    planned = plan(gateway, inheriting, counted, current=current, is_issued=partial(_is_issued, world, gateway))
    return _Planned(gateway, planned, {each.route.id: each.rejections for each in own if each.rejections})


def _is_issued(world: World, gateway: TenantGateway, name: str) -> bool | None:
    found = world.cluster.peek(CERTIFICATES, gateway.key.namespace, name)
    if found is None or not is_owned(found, gateway.uid):
        return None
    conditions = (found.get("status") or {}).get("conditions") or ()
    return any((each["type"], each["status"]) == ("Ready", "True") for each in conditions)


def _own_gateway(world: World, gateway: TenantGateway) -> Object | None:
    found = world.cluster.peek(GATEWAYS, gateway.key.namespace, gateway.key.name)
    return found if found is not None and is_owned(found, gateway.uid) else None


async def _check_objects(world: World, gateway: TenantGateway, plan: Plan) -> Sequence[str]:
    deviations, namespace = [], gateway.key.namespace
    current = _own_gateway(world, gateway)
    if current is None and world.cluster.peek(GATEWAYS, namespace, gateway.key.name) is None:
        deviations.append(f"{gateway.key} has no Gateway")
    if current is not None and (changes := create_merge_patch(current, render_gateway(gateway, plan))):
        deviations.append(f"the Gateway of {gateway.key} lacks {changes}")
    planned = {each.name for each in plan.certificates}
    in_use = {each.certificate for each in plan.listeners}
    if surplus := await _owned(world, CERTIFICATES, gateway) - planned - in_use:
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
    world: World,
    plans: dict[Key, _Planned],
    routes: Sequence[tuple[Object, RouteKind]],
    namespaces: Mapping[str, RouteNamespace],
    *,
    problematic: set[Key],
) -> Iterator[str]:
    """Every rejected parentRef must have an entry of ours that says so, and no other parentRef may."""
    for obj, kind in routes:
        identity = parse.route_id(obj, kind)
        expected = {
            (gateway, parent.get("sectionName"), parent.get("port"))
            for parent in parse.parent_refs(obj)
            if (gateway := parse.parent_gateway(parent, identity.namespace)) is not None
            and gateway not in problematic
            and _is_expected_to_be_rejected(world, gateway, plans.get(gateway), parent, obj, identity, namespaces)
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


def _is_expected_to_be_rejected(
    world: World,
    gateway: Key,
    planned: _Planned | None,
    parent: Mapping[str, Any],
    route: Object,
    identity: RouteId,
    namespaces: Mapping[str, RouteNamespace],
) -> bool:
    if planned is None:
        existing = world.cluster.peek(GATEWAYS, *gateway)
        return existing is None or parse.is_of_tenantgateway(existing)
    reference, namespace = parse.parent_ref(parent), namespaces[identity.namespace]
    if (
        reject_parent(planned.gateway, reference, identity.kind, route["spec"].get("hostnames") or (), namespace)
        is not None
    ):
        return True
    return reference.section != "http" and identity in rejections_by_route(planned.plan, planned.not_counted)


def _is_rejected(entry: Object) -> bool:
    return any((each["type"], each["status"]) == ("Accepted", "False") for each in entry["conditions"])
