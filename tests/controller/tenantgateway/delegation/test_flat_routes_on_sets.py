"""Flat routes whose hostnames are on ListenerSets: they name the set that has the listener, and follow it."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Key, Object
from registry.cluster.interface import ClusterResource
from tests.controller.tenantgateway.delegation.delegation_world import (
    FINANCE,
    HOST,
    ROOT,
    add_finance_story,
    add_root,
    delegating,
    flat_routes,
    reasons,
    serving,
    told,
)
from tests.controller.tenantgateway.delegation.test_statuses import report
from tests.controller.tenantgateway.gateway_world import HTTPROUTES, World, run_in_world, run_until_settled
from tests.controller.tenantgateway.listenersets.test_listener_sets import SETS, settings

GATEWAY_REF = ("Gateway", "cozystack", 443)


def add_others(world: World, count: int) -> None:
    """Routes that take the room on the Gateway before anybody else."""
    for start in range(0, count, 16):
        hostnames = [f"a{each:03}.example.org" for each in range(start, min(start + 16, count))]
        world.route(ROOT, f"a{start:03}", *hostnames, to=f"{ROOT}/cozystack", port=443)


async def parents(world: World) -> dict[str, list[tuple[Any, ...]]]:
    """Kind, name and port of the parentRefs of each flat route."""
    found = await flat_routes(world)
    return {
        name: [(each["kind"], each["name"], each.get("port")) for each in spec["parentRefs"]]
        for name, spec in found.items()
    }


def on_set(number: int) -> tuple[str, str, None]:
    return ("ListenerSet", f"cozystack-{number}", None)


def served_by(world: World, name: str) -> list[str]:
    return [each["hostname"] for each in world.get(SETS, ROOT, name)["spec"]["listeners"]]


def test_a_flat_route_names_the_set_that_has_the_listener_of_its_hostname() -> None:
    """The root's owner has nothing to do, and is told nothing of it; a restart writes nothing."""

    async def main(world: World) -> None:
        world.settings.replace(settings(listenerSets="always"))
        add_finance_story(world)
        add_others(world, 63)
        async with world.running():
            assert served_by(world, "cozystack-1") == [HOST]
            ((name, refs),) = (await parents(world)).items()
            assert refs == [on_set(1)]
            spec = (await flat_routes(world))[name]
            assert spec["parentRefs"][0]["namespace"] == ROOT
            for namespace, route, parent in ((ROOT, "www", "cozystack"), (FINANCE, "finance", "www")):
                assert reasons(world, namespace, route)[parent, "Accepted"] == ("True", "Accepted")
                assert "ListenerSet" not in str(told(world, namespace, route))
            assert "HostnamesLeftOut" not in world.conditions(ROOT)
            await report(world, name, "True", "Accepted")
            assert "are served" in told(world, ROOT, "www")["cozystack", "Accepted"][2]
        world.cluster.clear_writes()
        await run_until_settled(world)
        assert world.cluster.writes == []

    run_in_world(main)


def test_a_root_with_hostnames_in_several_places_names_each_of_them_once() -> None:
    async def main(world: World) -> None:
        world.settings.replace(settings(listenerSets="always"))
        add_finance_story(world)
        add_others(world, 62 + 63)
        hosts = ("www.example.org", "x1.example.org", "x2.example.org", "x3.example.org")
        async with world.running():
            assert list((await parents(world)).values()) == [[on_set(1)]]
            await world.edit(HTTPROUTES, ROOT, "www", {"spec": {"hostnames": list(hosts)}})
            await world.settle()
            places = {place for host in hosts for place in _places(world, host)}
            ((_, refs),) = (await parents(world)).items()
            assert sorted(refs, key=str) == sorted(places, key=str)
            assert len(refs) >= 2

    run_in_world(main)


def _places(world: World, hostname: str) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = [GATEWAY_REF] if hostname in world.listeners(ROOT) else []
    return found + [
        ("ListenerSet", each["metadata"]["name"], None)
        for each in world.cluster.peek_all(SETS)
        if hostname in [listener["hostname"] for listener in each["spec"]["listeners"]]
    ]


def test_a_flat_route_follows_its_listener() -> None:
    """To a set as soon as one may be used, and back to the Gateway when the settings forbid them."""

    async def main(world: World) -> None:
        add_finance_story(world)
        add_others(world, 63)
        async with world.running():
            assert list((await parents(world)).values()) == [[GATEWAY_REF]]
            assert reasons(world, ROOT, "www")["cozystack", "Accepted"] == ("False", "ListenersTruncated")
            world.settings.replace(settings(listenerSets="always"))
            await world.settle()
            assert list((await parents(world)).values()) == [[on_set(1)]]
            assert reasons(world, ROOT, "www")["cozystack", "Accepted"] == ("True", "Accepted")
            await world.cluster.delete(HTTPROUTES, ROOT, "a000")
            world.settings.replace(settings(listenerSets="never"))
            await world.settle()
            assert HOST in world.listeners(ROOT)
            assert list((await parents(world)).values()) == [[GATEWAY_REF]]
            assert reasons(world, ROOT, "www")["cozystack", "Accepted"] == ("True", "Accepted")

    run_in_world(main)


def test_the_set_of_another_owner_is_not_named() -> None:
    async def main(world: World) -> None:
        world.settings.replace(settings(listenerSets="always"))
        add_finance_story(world)
        listeners = [{"name": "x", "port": 443, "protocol": "HTTPS", "hostname": HOST}]
        metadata = {"namespace": ROOT, "name": "cozystack-7"}
        world.cluster.add(SETS, {"metadata": metadata, "spec": {"parentRef": {"name": "mine"}, "listeners": listeners}})
        async with world.running():
            assert list((await parents(world)).values()) == [[GATEWAY_REF]]

    run_in_world(main)


def test_flat_routes_stay_as_they_are_while_the_sets_cannot_be_listed() -> None:
    async def main(world: World) -> None:
        world.settings.replace(settings(listenerSets="always"))
        add_finance_story(world)
        add_others(world, 63)
        await run_until_settled(world)
        before = await flat_routes(world)
        counting = world.cluster.before
        assert counting is not None

        async def refusing(verb: str, res: ClusterResource, key: Key) -> None:
            await counting(verb, res, key)
            if res.plural == "listenersets":
                raise StatusError(403, "Forbidden", "may not list listenersets")

        world.cluster.before = refusing
        await run_until_settled(world)
        assert await flat_routes(world) == before

    run_in_world(main)


@pytest.mark.parametrize("rules", [[serving("/")], [delegating("/finance", f"{FINANCE}/finance")]])
def test_one_listener_that_moves_costs_the_flat_routes_of_its_hostname(rules: list[Object]) -> None:
    """Those of other roots of the Gateway are not written."""

    async def main(world: World) -> None:
        world.settings.replace(settings(listenerSets="always"))
        add_finance_story(world)
        async with world.running():
            add_others(world, 63)
            await world.settle()
            world.cluster.clear_writes()
            add_root(world, *rules, name="zzz", hosts=("zzz.example.org",))
            await world.settle()
            written = {(each.verb, each.key.name.partition("-")[0]) for each in world.cluster.writes
                       if each.resource == HTTPROUTES and not each.subresource}  # fmt: skip
            assert {name for _, name in written} <= {"zzz"}

    run_in_world(main)
