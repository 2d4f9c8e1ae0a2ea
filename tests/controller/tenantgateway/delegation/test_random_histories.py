"""The controller against the model, over random histories: the flat routes of the cluster are those that the model asks
for, after each change, and none remains at the end."""

from __future__ import annotations

from random import Random

import pytest

from controller.tenantgateway.delegation.flat_routes import parse_flat_route, vertex_label
from controller.tenantgateway.model import RouteId, RouteKind
from registry.cluster.interface import NAMESPACES
from tests.controller.tenantgateway.delegation.delegation_model import (
    OTHERS,
    ROOT_NAMESPACE,
    Model,
    random_change,
    to_object,
)
from tests.controller.tenantgateway.delegation.delegation_world import add_tenant
from tests.controller.tenantgateway.gateway_world import (
    GATEWAY_API,
    GRANTS,
    GRPCROUTES,
    HTTPROUTES,
    TLSROUTES,
    World,
    run_in_world,
)

APEX = "example.org"
RESOURCES = {"HTTPRoute": HTTPROUTES, "GRPCRoute": GRPCROUTES, "TLSRoute": TLSROUTES}


def host(namespace: str) -> str:
    return f"{namespace}.{APEX}"


async def follow(world: World, model: Model, changed: RouteId | tuple[str, RouteId] | str) -> None:
    """Makes the cluster like the model in what has changed."""
    if isinstance(changed, str):
        labels = {"namespace.cozystack.io/host": "example.net" if changed in model.unadmitted else host(changed)}
        await world.edit(NAMESPACES, "", changed, {"metadata": {"labels": labels}})
    elif isinstance(changed, RouteId):
        await follow_route(world, model, changed)
    else:
        guest, route = changed
        name = f"{guest}-{route.name}"
        if changed not in model.grants:
            await world.cluster.delete(GRANTS, route.namespace, name)
            return
        spec = {
            "from": [{"group": GATEWAY_API, "kind": route.kind, "namespace": guest}],
            "to": [{"group": GATEWAY_API, "kind": route.kind, "name": route.name}],
        }
        world.cluster.add(GRANTS, {"metadata": {"namespace": route.namespace, "name": name}, "spec": spec})


async def follow_route(world: World, model: Model, route: RouteId) -> None:
    kind = RESOURCES[route.kind]
    exists = world.cluster.peek(kind, route.namespace, route.name) is not None
    if route not in model.routes:
        if exists:
            await world.cluster.delete(kind, route.namespace, route.name)
        return
    made = to_object(route, model.routes[route])
    made["spec"]["hostnames"] = [f"{each}.{APEX}" for each in made["spec"]["hostnames"]]
    if exists:
        await world.edit(kind, route.namespace, route.name, {"spec": made["spec"]})
    else:
        del made["metadata"]["uid"]
        world.cluster.add(kind, made)


async def served(world: World, model: Model) -> set[tuple[RouteId, RouteId]]:
    """Pairs of a root and a route whose rules a flat route has."""
    known = {vertex_label(each): each for each in model.routes}
    items = (await world.cluster.list(RESOURCES[model.kind], ""))["items"]
    flat = [found for each in items if (found := parse_flat_route(each, model.kind)) is not None]
    return {(each.root, known[each.vertex]) for each in flat}


@pytest.mark.parametrize(
    ("kind", "seed"), [("HTTPRoute", 0), ("HTTPRoute", 1), ("GRPCRoute", 2), ("TLSRoute", 3), ("TLSRoute", 4)]
)
def test_the_flat_routes_of_the_cluster_follow_the_model(kind: RouteKind, seed: int) -> None:
    random, model = Random(seed), Model(kind)

    async def main(world: World) -> None:
        for namespace in (ROOT_NAMESPACE, *OTHERS):
            add_tenant(world, namespace, host=host(namespace))
        services = [f"{each}.{namespace}" for each in "xy" for namespace in (ROOT_NAMESPACE, *OTHERS)]
        passthrough = services if kind == "TLSRoute" else []
        world.add_tenantgateway(ROOT_NAMESPACE, apex=APEX, tlsPassthroughServices=passthrough)
        async with world.running():
            for _ in range(60):
                await follow(world, model, random_change(model, random))
                await world.settle()
                assert await served(world, model) == model.served()
            for route in tuple(model.routes):
                del model.routes[route]
                await follow(world, model, route)
            await world.settle()
            assert await served(world, model) == set()

    run_in_world(main, settings={"gateway": {"attachedNamespaces": [], "grpcRoutes": True}})
