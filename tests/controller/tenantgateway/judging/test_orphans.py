"""Routes of all namespaces hear when their Gateway goes, while the process runs, before it starts, and after."""

from __future__ import annotations

import pytest

from apiserver.meta.resource import Object
from registry.cluster.interface import NAMESPACES
from registry.names import GATEWAY_LABEL
from registry.tenantgateway.types import TENANTGATEWAYS
from tests.controller.tenantgateway.gateway_world import GATEWAYS, HTTPROUTES, World, run_in_world, run_until_settled

OWN = {"gateway": {"attachedNamespaces": [], "ownerNamespaces": ["cozy-gateway"]}}
GATEWAY = "cozystack"


def reason(world: World, namespace: str, name: str = "web") -> str:
    """Of our Accepted condition on a route with one parentRef; empty if there is none."""
    found = world.accepted_conditions(namespace, name)
    return next((reason for _, reason, _ in found.values()), "")


async def remove_gateway(world: World, owner: str) -> None:
    """The TenantGateway, and what the garbage collector deletes with it."""
    await world.cluster.delete(TENANTGATEWAYS, owner, GATEWAY)
    await world.cluster.delete(GATEWAYS, owner, GATEWAY)


@pytest.mark.parametrize(
    ("owner", "namespace"),
    [
        pytest.param("tenant-foo", "cozy-dashboard", id="the platform's namespace, a tenant's Gateway"),
        pytest.param("tenant-foo", "default", id="an attached namespace, a tenant's Gateway"),
        pytest.param("cozy-gateway", "cozy-gateway", id="a Gateway of the platform, its own namespace"),
        pytest.param("cozy-gateway", "cozy-dashboard", id="a Gateway of the platform, another of its namespaces"),
        pytest.param("cozy-gateway", "tenant-foo", id="a Gateway of the platform, a tenant"),
    ],
)
@pytest.mark.parametrize("running", [True, False], ids=["while it runs", "while nobody runs"])
def test_a_route_that_was_served_hears_that_its_gateway_is_gone(owner: str, namespace: str, running: bool) -> None:
    """R-347."""

    async def main(world: World) -> None:
        world.add_tenantgateway(owner)
        world.route(namespace, "web", "one.foo.example.com", to=f"{owner}/{GATEWAY}", port=443)
        async with world.running():
            assert reason(world, namespace) == ""
            assert world.listeners(owner) == ["one.foo.example.com"]
            if running:
                await remove_gateway(world, owner)
                await world.settle()
                assert reason(world, namespace) == "Orphaned"
        if not running:
            await remove_gateway(world, owner)
        await run_until_settled(world)
        assert reason(world, namespace) == "Orphaned"
        world.add_tenantgateway(owner)
        await run_until_settled(world)
        assert reason(world, namespace) == "Accepted"

    run_in_world(main, settings=OWN)


def test_an_attached_namespace_hears_it_when_its_label_goes_with_the_gateway() -> None:
    async def main(world: World) -> None:
        world.namespace("default")
        world.add_tenantgateway(attachedNamespaces=["default"])
        async with world.running():
            assert world.get(NAMESPACES, "", "default")["metadata"]["labels"][GATEWAY_LABEL] == "tenant-foo"
            world.route("default", "web", "one.foo.example.com", port=443)
            await world.settle()
            await remove_gateway(world, "tenant-foo")
            await world.settle()
            assert reason(world, "default") == "Orphaned"

    run_in_world(main)


def test_a_route_to_a_listener_set_hears_it_too() -> None:
    """As long as the process remembers that the Gateway was ours."""

    async def main(world: World) -> None:
        world.add_tenantgateway()
        world.route("tenant-foo", "web", "one.foo.example.com", to="tenant-foo/cozystack-1", kind="ListenerSet")
        async with world.running():
            assert reason(world, "tenant-foo") != "Orphaned"
            await remove_gateway(world, "tenant-foo")
            await world.settle()
            assert reason(world, "tenant-foo") == "Orphaned"

    run_in_world(main)


def test_a_gateway_of_others_is_not_ours_to_miss() -> None:
    """Nobody knows of a Gateway that does not exist in a namespace that may own none of ours, whose it would be."""

    async def main(world: World) -> None:
        world.route("elsewhere", "web", "one.foo.example.com", to="elsewhere/cozystack")
        theirs: Object = {"metadata": {"namespace": "theirs", "name": GATEWAY}, "spec": {}}
        world.cluster.add(GATEWAYS, theirs)
        world.route("tenant-foo", "other", "one.foo.example.com", to="theirs/cozystack")
        async with world.running():
            await world.cluster.delete(GATEWAYS, "theirs", GATEWAY)
            await world.settle()
            assert "status" not in world.get(HTTPROUTES, "elsewhere", "web")
            assert "status" not in world.get(HTTPROUTES, "tenant-foo", "other")

    run_in_world(main)
