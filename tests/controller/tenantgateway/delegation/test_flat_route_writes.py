"""Flat routes that somebody changed, that cannot be written, or that nobody wants any more."""

from __future__ import annotations

import pytest

from controller.tenantgateway.names import VERTEX_LABEL
from tests.controller.tenantgateway.delegation.delegation_world import (
    FINANCE,
    ROOT,
    add_finance_story,
    flat_routes,
    reasons,
    serving,
)
from tests.controller.tenantgateway.gateway_world import (
    HTTPROUTES,
    World,
    api_error,
    run_in_world,
    run_until_settled,
)

ACCEPTED = ("True", "Accepted")


def test_a_foreign_route_of_that_name_is_left_and_named() -> None:
    """R-211, R-217 to R-219."""

    async def main(world: World) -> None:
        add_finance_story(world)
        async with world.running():
            (name,) = await flat_routes(world)
        await world.cluster.delete(HTTPROUTES, ROOT, name)
        foreign = {"metadata": {"namespace": ROOT, "name": name}, "spec": {"hostnames": ["theirs.example.org"]}}
        world.cluster.add(HTTPROUTES, foreign)
        async with world.running():
            assert world.get(HTTPROUTES, ROOT, name)["spec"] == foreign["spec"]
            status, reason, message = world.ready(ROOT)
            assert (status, reason) == ("False", "ReconcileError")
            assert f"httproute {ROOT}/{name} exists but is not owned by HTTPRoute {ROOT}/www" in message
            assert reasons(world, FINANCE, "finance")["www", "Accepted"] == ("False", "ReconcileError")
            await world.cluster.delete(HTTPROUTES, ROOT, name)
            await world.settle()
            assert list(await flat_routes(world)) == [name]
            assert reasons(world, FINANCE, "finance")["www", "Accepted"] == ACCEPTED
            assert "is not owned" not in world.ready(ROOT)[2]

    run_in_world(main)


@pytest.mark.parametrize("field", ["rules", "hostnames", "parentRefs"])
def test_a_flat_route_that_somebody_changes_is_written_again(field: str) -> None:
    async def main(world: World) -> None:
        add_finance_story(world)
        async with world.running():
            ((name, spec),) = (await flat_routes(world)).items()
            more = {
                "rules": [*spec["rules"], serving("/admin")],
                "hostnames": [*spec["hostnames"], "b.example.org"],
                "parentRefs": [{**spec["parentRefs"][0], "sectionName": "http"}],
            }
            await world.edit(HTTPROUTES, ROOT, name, {"spec": {field: more[field]}})
            await world.settle()
            assert (await flat_routes(world))[name] == spec

    run_in_world(main)


def test_a_flat_route_loses_what_its_vertex_loses() -> None:
    """Fields that are gone from a rule are gone from the copy, too."""

    async def main(world: World) -> None:
        add_finance_story(world)
        header = {"type": "RequestHeaderModifier", "requestHeaderModifier": {"set": [{"name": "x", "value": "y"}]}}
        await world.edit(
            HTTPROUTES, FINANCE, "finance", {"spec": {"rules": [{**serving("/finance"), "filters": [header]}]}}
        )
        async with world.running():
            (spec,) = (await flat_routes(world)).values()
            assert spec["rules"][0]["filters"] == [header]
            await world.edit(HTTPROUTES, FINANCE, "finance", {"spec": {"rules": [serving("/finance")]}})
            await world.settle()
            (spec,) = (await flat_routes(world)).values()
            assert "filters" not in spec["rules"][0]

    run_in_world(main)


def test_a_refused_write_is_told_and_tried_again() -> None:
    async def main(world: World) -> None:
        add_finance_story(world)
        async with world.running():
            (name,) = await flat_routes(world)
        await world.cluster.delete(HTTPROUTES, ROOT, name)
        world.failing_calls["create", "httproutes", name] = api_error()
        async with world.running():
            assert reasons(world, FINANCE, "finance")["www", "Accepted"] == ("False", "ReconcileError")
            assert f"httproute {ROOT}/{name}: denied by a policy" in world.ready(ROOT)[2]
            world.failing_calls.clear()
            await world.settle()
            await world.settle()
            assert list(await flat_routes(world)) == [name]
            assert reasons(world, FINANCE, "finance")["www", "Accepted"] == ACCEPTED

    run_in_world(main)


def test_flat_routes_of_a_time_when_nobody_ran_are_removed() -> None:
    async def main(world: World) -> None:
        add_finance_story(world)
        await run_until_settled(world)
        assert [
            VERTEX_LABEL in each["metadata"].get("labels", {})
            for each in (await world.cluster.list(HTTPROUTES, ROOT))["items"]
        ].count(True) == 1
        await world.cluster.delete(HTTPROUTES, FINANCE, "finance")
        await world.edit(HTTPROUTES, ROOT, "www", {"spec": {"rules": []}})
        await run_until_settled(world)
        assert await flat_routes(world) == {}

    run_in_world(main)
