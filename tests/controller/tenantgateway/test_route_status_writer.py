"""Rejections in the status of routes are written, retried and removed."""

from __future__ import annotations

from apiserver.meta.resource import Key
from registry.cluster.interface import ClusterResource
from registry.tenantgateway.types import TENANTGATEWAYS
from tests.controller.tenantgateway.gateway_world import (
    HTTPROUTES,
    OURS,
    World,
    api_error,
    run_in_world,
    run_until_settled,
)


def test_routes_whose_status_cannot_be_written_are_reported_and_retried() -> None:
    """GW-15."""

    async def main(world: World) -> None:
        world.add_tenantgateway()
        world.route("cozy-a", "winner", "one.foo.example.com")
        for loser in ("x", "y", "z"):
            world.route("tenant-foo", loser, "one.foo.example.com")
        world.failing_calls["patch", "httproutes", "y"] = api_error(500, "no space")
        async with world.running():
            assert world.accepted_conditions("tenant-foo", "y") == {}
            assert {*world.accepted_conditions("tenant-foo", "x"), *world.accepted_conditions("tenant-foo", "z")} == {
                "tenant-foo"
            }
            message = "status of HTTPRoute tenant-foo/y: no space"
            assert world.ready() == ("False", "ReconcileError", message)
            world.failing_calls.clear()
        assert world.accepted_conditions("tenant-foo", "y")["tenant-foo"][1] == "HostnameConflict"
        assert world.ready()[1] == "GatewayNotAccepted"

    run_in_world(main)


def test_a_status_entry_that_another_controller_writes_concurrently_is_kept() -> None:
    """R-203: a write is conditional on the version that was read, and a conflict is retried."""

    async def main(world: World) -> None:
        world.add_tenantgateway()
        world.route("cozy-a", "winner", "one.foo.example.com")
        world.route("tenant-foo", "loser", "one.foo.example.com")
        parent = {"namespace": "tenant-foo", "name": "cozystack"}
        cilium = {"parentRef": parent, "controllerName": "io.cilium/gateway-controller", "conditions": [{"type": "X"}]}
        raced: list[str] = []
        counting = world.cluster.before
        assert counting is not None

        async def race(verb: str, res: ClusterResource, key: Key) -> None:
            await counting(verb, res, key)
            if (verb, key.name) == ("patch", "loser") and not raced:
                raced.append(key.name)
                await world.edit(HTTPROUTES, *key, {"status": {"parents": [cilium]}}, "status")

        world.cluster.before = race
        await run_until_settled(world)
        assert raced
        parents = world.get(HTTPROUTES, "tenant-foo", "loser")["status"]["parents"]
        assert parents[0] == cilium
        assert [each["controllerName"] for each in parents[1:]] == [OURS]

    run_in_world(main)


def test_a_rejection_is_removed_with_its_cause() -> None:
    """R-206, GW-15: if the parentRef or TenantGateway is removed, while the process runs or before it starts."""

    async def main(world: World) -> None:
        world.add_tenantgateway()
        world.add_tenantgateway("tenant-bar", apex="bar.example.com")
        world.route("cozy-a", "winner", "one.foo.example.com")
        for name in ("moves", "stays", "left"):
            world.route("tenant-foo", name, "one.foo.example.com")
        async with world.running():
            assert world.accepted_conditions("tenant-foo", "moves")["tenant-foo"][0] == "False"
            elsewhere = {"parentRefs": [{"namespace": "tenant-bar", "name": "cozystack"}]}
            await world.edit(HTTPROUTES, "tenant-foo", "moves", {"spec": elsewhere})
            await world.edit(HTTPROUTES, "tenant-foo", "left", {"spec": {"parentRefs": None}})
            await world.edit(HTTPROUTES, "tenant-foo", "stays", {"spec": {"hostnames": ["mine.foo.example.com"]}})
        assert world.accepted_conditions("tenant-foo", "moves").keys() == {"tenant-bar"}
        assert world.accepted_conditions("tenant-foo", "left") == {}
        assert world.accepted_conditions("tenant-foo", "stays")["tenant-foo"][:2] == ("True", "Accepted")
        await world.cluster.delete(TENANTGATEWAYS, "tenant-foo", "cozystack")
        await world.cluster.delete(TENANTGATEWAYS, "tenant-bar", "cozystack")
        await run_until_settled(world)
        for name in ("moves", "stays", "left"):
            assert world.accepted_conditions("tenant-foo", name) == {}

    run_in_world(main)
