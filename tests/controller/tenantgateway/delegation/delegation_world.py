"""Roots, vertices and grants as objects of the cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from apiserver.meta.resource import Object
from controller.tenantgateway.names import VERTEX_LABEL
from registry.cluster.interface import NAMESPACES, ClusterResource
from registry.tenantgateway.types import GROUP
from tests.controller.tenantgateway.gateway_world import GATEWAY_API, GRANTS, HTTPROUTES, OURS, World

ROOT, FINANCE = "tenant-root", "tenant-finance"
HOST = "www.example.org"


def matching(*paths: str) -> list[Object]:
    return [{"path": {"type": "PathPrefix", "value": each}} for each in paths]


def delegating(path: str, *targets: str) -> Object:
    """A rule that delegates a path to routes, each given as namespace/name."""
    named = [each.partition("/") for each in targets]
    backends = [
        {"group": GATEWAY_API, "kind": "HTTPRoute", "namespace": namespace, "name": name}
        for namespace, _, name in named
    ]
    return {"matches": matching(path), "backendRefs": backends}


def serving(*paths: str, service: str = "web") -> Object:
    return {"matches": matching(*paths), "backendRefs": [{"name": service, "port": 80}]}


def add_tenant(world: World, name: str, *, host: str = "", gateway: str = ROOT) -> None:
    """A namespace whose routes the Gateway of `gateway` admits."""
    if world.cluster.peek(NAMESPACES, "", name) is None:
        world.namespace(name, gateway=gateway, host=host or f"{name.removeprefix('tenant-')}.example.org")


def add_root(
    world: World, *rules: Object, namespace: str = ROOT, name: str = "www", hosts: tuple[str, ...] = (HOST,)
) -> None:
    parent = {"group": GROUP, "kind": "TenantGateway", "namespace": ROOT, "name": "cozystack"}
    spec = {"hostnames": list(hosts), "parentRefs": [parent], "rules": list(rules)}
    world.cluster.add(HTTPROUTES, {"metadata": {"namespace": namespace, "name": name}, "spec": spec})


def parent_refs(*parents: str) -> list[Object]:
    named = [each.partition("/") for each in parents]
    return [
        {"group": GATEWAY_API, "kind": "HTTPRoute", "namespace": namespace, "name": name}
        for namespace, _, name in named
    ]


def add_vertex(
    world: World, namespace: str, name: str, *rules: Object, parents: tuple[str, ...] = (f"{ROOT}/www",)
) -> None:
    spec = {"parentRefs": parent_refs(*parents), "rules": list(rules)}
    world.cluster.add(HTTPROUTES, {"metadata": {"namespace": namespace, "name": name}, "spec": spec})


def add_grant(
    world: World,
    namespace: str,
    *,
    guest: str = ROOT,
    name: str = "www",
    routes: tuple[str, ...] = ("finance",),
    services: tuple[str, ...] = ("web",),
) -> None:
    to: list[Mapping[str, Any]] = [{"group": GATEWAY_API, "kind": "HTTPRoute", "name": each} for each in routes]
    to += [{"group": "", "kind": "Service", **({"name": each} if each else {})} for each in services]
    spec = {"from": [{"group": GATEWAY_API, "kind": "HTTPRoute", "namespace": guest}], "to": to}
    world.cluster.add(GRANTS, {"metadata": {"namespace": namespace, "name": name}, "spec": spec})


def add_platform(world: World) -> None:
    """The domain owner's Gateway, and the tenant finance."""
    add_tenant(world, ROOT, host="example.org")
    world.add_tenantgateway(ROOT, apex="example.org")
    add_tenant(world, FINANCE)


def add_finance_story(world: World) -> None:
    """The three objects of the seed: the domain owner gives /finance away."""
    add_platform(world)
    add_root(world, delegating("/finance", f"{FINANCE}/finance"))
    add_vertex(world, FINANCE, "finance", serving("/finance"))
    add_grant(world, FINANCE)


async def flat_routes(world: World, namespace: str = ROOT, res: ClusterResource = HTTPROUTES) -> dict[str, Object]:
    """The specs of the flat routes of a namespace by name."""
    listed = await world.cluster.list(res, namespace)
    items = [each for each in listed["items"] if VERTEX_LABEL in each["metadata"].get("labels", {})]
    return {each["metadata"]["name"]: each["spec"] for each in items}


def told(
    world: World, namespace: str, name: str, res: ClusterResource = HTTPROUTES
) -> dict[tuple[str, str], tuple[str, str, str]]:
    """(status, reason, message) of our conditions by the name of the parent and the type."""
    parents = (world.get(res, namespace, name).get("status") or {}).get("parents") or []
    return {
        (each["parentRef"]["name"], condition["type"]): (condition["status"], condition["reason"], condition["message"])
        for each in parents
        if each["controllerName"] == OURS
        for condition in each["conditions"]
    }


def reasons(
    world: World, namespace: str, name: str, res: ClusterResource = HTTPROUTES
) -> dict[tuple[str, str], tuple[str, str]]:
    """(status, reason) of our conditions by the name of the parent and the type."""
    return {key: value[:2] for key, value in told(world, namespace, name, res).items()}
