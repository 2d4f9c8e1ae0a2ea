"""A second replica takes over while flat routes are written, or deleted: none of them comes or goes twice."""

from __future__ import annotations

from collections import Counter
from contextlib import AbstractAsyncContextManager, nullcontext

import pytest

from controller.runtime.write_gate import NotLeading
from tests.controller.tenantgateway.delegation.delegation_world import (
    FINANCE,
    ROOT,
    add_grant,
    add_platform,
    add_root,
    add_tenant,
    add_vertex,
    delegating,
    flat_routes,
    reasons,
    serving,
)
from tests.controller.tenantgateway.gateway_world import GRANTS, HTTPROUTES, World, run_in_world, run_until_settled

SHOP = "tenant-shop"
NUMBERS = range(6)
ACCEPTED, ORPHANED = ("True", "Accepted"), ("False", "Orphaned")


class LastWrites:
    """The gate of a replica that leads for some more writes."""

    def __init__(self, count: int) -> None:
        self._left = count

    @property
    def is_open(self) -> bool:
        return self._left > 0

    def writing(self) -> AbstractAsyncContextManager[None]:
        if not self.is_open:
            raise NotLeading("this replica is not the leader")
        self._left -= 1
        return nullcontext()


def add_chains(world: World) -> None:
    """Roots that delegate to finance, which delegates a part of that to shop."""
    add_platform(world)
    add_tenant(world, SHOP)
    for number in NUMBERS:
        part, below = f"/part{number}", f"/part{number}/shop"
        add_root(world, delegating(part, f"{FINANCE}/f{number}"), name=f"www{number}")
        rules = (serving(part), delegating(below, f"{SHOP}/s{number}"))
        add_vertex(world, FINANCE, f"f{number}", *rules, parents=(f"{ROOT}/www{number}",))
        add_vertex(world, SHOP, f"s{number}", serving(below), parents=(f"{FINANCE}/f{number}",))
    add_grant(world, FINANCE, routes=tuple(f"f{number}" for number in NUMBERS))
    add_grant(world, SHOP, guest=FINANCE, routes=tuple(f"s{number}" for number in NUMBERS), services=())
    add_grant(world, SHOP, name="services", routes=(), services=("web",))


def written(world: World) -> Counter[tuple[str, str]]:
    """The writes of flat routes, by verb and name."""
    writes = (each for each in world.cluster.writes if each.resource == HTTPROUTES and not each.subresource)
    return Counter((each.verb, each.key.name) for each in writes if each.key.name.startswith("www"))


@pytest.mark.parametrize("writes", [1, 5, 12, 20, 30])
def test_a_replica_that_takes_over_in_the_middle_writes_only_what_is_missing(writes: int) -> None:
    async def main(world: World) -> None:
        add_chains(world)
        async with world.running(LastWrites(writes)), world.running():
            assert written(world) == {("create", each): 1 for each in await flat_routes(world)}
            assert len(await flat_routes(world)) == 2 * len(NUMBERS)
            assert reasons(world, SHOP, "s0") == {("f0", "Accepted"): ACCEPTED}
        await run_until_settled(world)
        assert world.writer.writes == 0

    run_in_world(main)


@pytest.mark.parametrize("writes", [1, 3, 6, 12])
def test_a_replica_that_takes_over_in_the_middle_deletes_only_what_is_left(writes: int) -> None:
    """The consent of the second in each chain is withdrawn: the first serves on."""

    async def main(world: World) -> None:
        add_chains(world)
        await run_until_settled(world)
        before = await flat_routes(world)
        world.cluster.writes.clear()
        await world.cluster.delete(GRANTS, SHOP, "www")
        async with world.running(LastWrites(writes)), world.running():
            after = await flat_routes(world)
            assert len(after) == len(NUMBERS)
            assert written(world) == {("delete", each): 1 for each in before.keys() - after.keys()}
            assert reasons(world, SHOP, "s0") == {("f0", "Accepted"): ORPHANED}
            assert reasons(world, FINANCE, "f0")["www0", "Accepted"] == ACCEPTED

    run_in_world(main)
