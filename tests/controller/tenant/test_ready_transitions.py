"""lastTransitionTime of Ready: it changes exactly when the status changes that clients see. Time is virtual."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from apiserver.storage.event_history import CacheEvent
from registry.cluster.interface import CLUSTERROLES, HELMRELEASES
from registry.names import TENANT_FINALIZER
from tests.controller.tenant.tenant_world import NOW, World
from tests.tenant_objects import release
from tests.virtual_time import virtual

HOUR = timedelta(hours=1)


def at(hours: int) -> str:
    return (NOW + hours * HOUR).strftime("%Y-%m-%dT%H:%M:%SZ")


def shown(world: World, type_: str = "Ready") -> tuple[str, str]:
    """(status, lastTransitionTime) of a condition of the Tenant alpha."""
    [found] = [each for each in world.tenant("alpha")["status"]["conditions"] if each["type"] == type_]
    return found["status"], found["lastTransitionTime"]


async def report(world: World, status: str, hours: int) -> None:
    """Flux reports on the current generation of the HelmRelease."""
    release = world.content(HELMRELEASES, "tenant-root", "tenant-alpha")
    ready = {
        "type": "Ready",
        "status": status,
        "reason": "F",
        "message": "",
        "lastTransitionTime": at(hours),
        "observedGeneration": release["metadata"].get("generation", 1),
    }
    await world.cluster.update(HELMRELEASES, {**release, "status": {"conditions": [ready]}}, subresource="status")
    await world.settle()


async def later(world: World, hours: int) -> None:
    world.now = NOW + hours * HOUR
    await world.settle()


@virtual
async def test_ready_is_new_when_a_part_that_was_not_ready_is_asked_for_no_longer() -> None:
    """A change of the settings, so that the Tenant has no new generation."""
    world = World(settings={"tenants": {"chart": "flux"}})
    async with world.running():
        await world.create("alpha")
        await world.settle()
        await report(world, "True", 1)
        assert shown(world) == ("True", at(1))
        await report(world, "False", 2)
        assert shown(world) == ("False", at(2))
        await later(world, 3)
        world.configure(tenants={"chart": "none"})
        await world.settle()
        assert shown(world) == ("True", at(3))
        world.cluster.clear_writes()
        await later(world, 4)
        await world.reconcile_all()
        assert shown(world) == ("True", at(3))
        assert world.writes() == []


@virtual
async def test_ready_is_new_after_a_change_of_the_spec_that_it_was_unknown_for() -> None:
    world = World()
    async with world.running():
        await world.create("alpha", monitoring=True)
        await world.settle(100)
        await later(world, 1)
        assert shown(world) == ("False", at(0))
        await world.change("alpha", monitoring=False)
        await world.settle()
        assert shown(world) == ("True", at(1))
        assert shown(world, "AccessReady") == ("True", at(0)), "no part has changed"


@virtual
async def test_ready_keeps_its_time_while_other_parts_fail_and_recover() -> None:
    world = World(settings={"tenants": {"chart": "flux"}})
    async with world.running():
        await world.create("alpha")
        await world.settle()
        await report(world, "True", 1)
        await report(world, "False", 2)
        await later(world, 3)
        role = world.content(CLUSTERROLES, "", "cozy:tenant")
        await world.cluster.delete(CLUSTERROLES, "", "cozy:tenant")
        await world.settle()
        assert (shown(world, "AccessReady"), shown(world)) == (("False", at(3)), ("False", at(2)))
        await later(world, 4)
        world.cluster.add(CLUSTERROLES, {"metadata": {"name": role["metadata"]["name"]}})
        await world.settle()
        assert (shown(world, "AccessReady"), shown(world)) == (("True", at(4)), ("False", at(2)))
        await report(world, "True", 5)
        assert shown(world) == ("True", at(5))


@virtual
async def test_ready_is_as_new_as_the_part_that_became_ready_last() -> None:
    world = World(settings={"tenants": {"chart": "flux"}})
    async with world.running():
        await world.create("alpha")
        await world.settle()
        await report(world, "True", 1)
        await later(world, 2)
        await world.cluster.delete(CLUSTERROLES, "", "cozy:tenant")
        await world.settle()
        assert shown(world) == ("False", at(2))
        await later(world, 3)
        world.cluster.add(CLUSTERROLES, {"metadata": {"name": "cozy:tenant"}})
        await world.settle()
        assert (shown(world), shown(world, "ReleaseReady")) == (("True", at(3)), ("True", at(1)))


@virtual
async def test_a_tenant_that_is_ready_by_flux_stays_ready_while_our_controllers_take_over() -> None:
    """As one of cozystack-api, and of this server while its controllers were off."""
    stored = release("alpha")
    ready = {"type": "Ready", "status": "True", "reason": "F", "message": "", "lastTransitionTime": at(-5)}
    stored["status"] = {"conditions": [{**ready, "observedGeneration": 1}]}
    before = World()
    async with before.running():
        pass
    before.cluster.add(HELMRELEASES, stored)
    world = World(before.cluster)
    seen: list[tuple[str, str]] = []
    world.cache.subscribe(lambda event: seen.extend(_ready_of_alpha(event)))
    async with world.running():
        await world.settle()
    assert world.content(HELMRELEASES, "tenant-root", "tenant-alpha")["metadata"]["finalizers"] == [TENANT_FINALIZER]
    assert "NamespaceReady" in world.conditions("alpha")
    assert len(seen) > 2
    assert set(seen) == {("True", at(-5))}


def _ready_of_alpha(event: CacheEvent) -> Sequence[tuple[str, str]]:
    """(status, lastTransitionTime), as clients see them."""
    if event.object.key.name != "alpha":
        return []
    conditions = event.object.object()["status"]["conditions"]
    return [(each["status"], each["lastTransitionTime"]) for each in conditions if each["type"] == "Ready"]
