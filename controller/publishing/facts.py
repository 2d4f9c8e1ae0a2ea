"""The facts of routes, Services, Ingresses and TenantGateways for the publishing guard. Pure projections of objects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

from apiserver.meta.resource import Key, Object
from controller.publishing.routes.marks import RouteOwner, route_owner
from controller.publishing.services import SERVICES
from controller.runtime.conditions import find_condition, is_stale
from controller.tenantgateway.model import RouteKind
from controller.tenantgateway.names import CONTROLLER_NAME
from controller.tenantgateway.parse import hostnames, mapping, mappings, parent_gateway, parent_refs, route_id, string
from registry.names import canonical_host

_ROUTES = frozenset(each.route_id for each in SERVICES.values())
_BACKENDS = frozenset(Key(each.namespace, each.backend) for each in SERVICES.values())
_CLASS_ANNOTATION = "kubernetes.io/ingress.class"


class Parent(NamedTuple):
    """The state of a route at one Gateway: accepted means Accepted and ResolvedRefs; `problem` is why it is not."""

    accepted: bool = False
    problem: str = ""
    conflict: bool = False


@dataclass(frozen=True, slots=True)
class PublishedRoute:
    """A route: its canonical hostnames, its state at each Gateway that it refers to, and who wrote it."""

    hostnames: frozenset[str]
    parents: Mapping[Key, Parent]
    owner: RouteOwner = RouteOwner.OTHER


class PublishedListener(NamedTuple):
    hostname: str
    ready: bool
    reason: str = ""


class ServicePorts(NamedTuple):
    """The ports of a Service: their numbers, and those that have a name by it."""

    ports: frozenset[int]
    names: Mapping[str, int] = MappingProxyType({})


class PublishedIngress(NamedTuple):
    class_name: str
    hosts: frozenset[str]


def route(obj: Object, kind: RouteKind) -> PublishedRoute | None:
    """None for a route of no service of the platform."""
    identity = route_id(obj, kind)
    if identity not in _ROUTES:
        return None
    gateways = {parent_gateway(each, identity.namespace) for each in parent_refs(obj)}
    parents = {each: _parent(obj, each) for each in gateways if each is not None}
    names = frozenset(canonical_host(each) for each in hostnames(obj))
    return PublishedRoute(names, parents, route_owner(obj))


def _parent(obj: Object, gateway: Key) -> Parent:
    accepted, problem, conflict = False, "", False
    for entry in _entries(obj, gateway):
        conditions = entry.get("conditions")
        if entry.get("controllerName") == CONTROLLER_NAME:
            conflict = conflict or string(find_condition(conditions, "Accepted") or {}, "reason") == "HostnameConflict"
            continue
        found = next(filter(None, (_problem(obj, conditions, each) for each in ("Accepted", "ResolvedRefs"))), "")
        accepted, problem = accepted or not found, problem or found
    return Parent(accepted, "" if accepted else problem, conflict)


def _entries(obj: Object, gateway: Key) -> Iterator[Mapping[str, Any]]:
    for entry in mappings(mapping(obj.get("status")).get("parents")):
        if parent_gateway(mapping(entry.get("parentRef")), obj["metadata"]["namespace"]) == gateway:
            yield entry


def _problem(obj: Object, conditions: object, type_: str) -> str:
    found = find_condition(conditions, type_)
    if found is None or is_stale(found, obj):
        return f"{type_} is not decided yet"
    return "" if found.get("status") == "True" else f"{type_} is {found.get('status')}: {found.get('reason')}"


def backend(service: Object) -> ServicePorts | None:
    """None for a Service that is no backend of the platform's services."""
    metadata = service["metadata"]
    if Key(metadata["namespace"], metadata["name"]) not in _BACKENDS:
        return None
    found = [(each.get("port"), string(each, "name")) for each in mappings(mapping(service.get("spec")).get("ports"))]
    ports = [(port, name) for port, name in found if isinstance(port, int)]
    return ServicePorts(frozenset(port for port, _ in ports), {name: port for port, name in ports if name})


def ingress(obj: Object) -> PublishedIngress | None:
    """None for an Ingress without a class, or without hosts."""
    spec = mapping(obj.get("spec"))
    annotations = mapping(obj["metadata"].get("annotations"))
    class_name = string(spec, "ingressClassName") or string(annotations, _CLASS_ANNOTATION)
    hosts = frozenset(string(each, "host") for each in mappings(spec.get("rules"))) - {""}
    return PublishedIngress(class_name, hosts) if class_name and hosts else None


def listeners(tenantgateway: Object) -> Mapping[str, PublishedListener]:
    """The listeners of the Gateway by name, as the status of its TenantGateway has them."""
    found = mappings(mapping(tenantgateway.get("status")).get("listeners"))
    return {
        string(each, "name"): PublishedListener(
            string(each, "hostname"), each.get("ready") is True, string(each, "reason")
        )
        for each in found
    }
