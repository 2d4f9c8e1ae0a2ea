"""Wrong settings of the platform's Package are reported on the root Tenant, and as Events about the Package."""

from __future__ import annotations

from typing import Any

from apiserver.meta.errors import ServiceUnavailable
from apiserver.meta.object_meta import ANNOTATIONS_LIMIT
from apiserver.meta.resource import Key, Object
from controller.platform.package import PACKAGE
from registry.cluster.interface import HELMRELEASES, ClusterResource
from registry.names import FINDINGS_ANNOTATION, release_name
from tests.controller.tenant.tenant_world import World
from tests.virtual_time import virtual

INVALID = "PlatformSettingsInvalid"
FIELD = "publishing.certificates.solver"


def package(solver: Any) -> Object:
    values = {"publishing": {"certificates": {"solver": solver}}}
    spec = {"components": {"platform": {"values": values}}}
    return {"metadata": {"name": PACKAGE, "uid": "p"}, "spec": spec}


def message(world: World) -> str:
    conditions = world.tenant("root")["status"]["conditions"]
    return next(str(each["message"]) for each in conditions if each["type"] == INVALID)


@virtual
async def test_a_wrong_package_is_a_condition_of_the_root_and_one_event() -> None:
    world = World()
    async with world.running():
        await world.create("alpha")
        world.sources.show_package(package("dns01"))
        world.sources.show_package(package(7))
        await world.settle()
        assert world.conditions("root")[INVALID] == ("True", "WrongValue")
        assert FIELD in message(world)
        assert world.conditions("root")["Ready"] == ("True", "Reconciled")
        assert INVALID not in world.conditions("alpha")
        await world.reconcile_all()
        assert world.events.of(PACKAGE) == [("Warning", "InvalidSettings")]
        world.sources.show_package(package("http01"))
    assert INVALID not in world.conditions("root")
    assert world.events.of(PACKAGE) == [("Warning", "InvalidSettings"), ("Normal", "SettingsInForce")]


@virtual
async def test_a_second_process_does_not_repeat_the_event() -> None:
    world = World()
    async with world.running():
        world.sources.show_package(package(7))
    later = World(world.cluster)
    later.sources.show_package(package(7))
    async with later.running():
        pass
    assert later.events.of(PACKAGE) == []
    assert world.conditions("root")[INVALID] == ("True", "WrongValue")


@virtual
async def test_an_event_is_recorded_if_the_answer_to_the_write_of_the_condition_is_lost() -> None:
    world, lost = World(), False
    patch = world.cluster.patch

    async def patch_without_answer(res: ClusterResource, *arguments: Any, **options: Any) -> Object:
        nonlocal lost
        written = await patch(res, *arguments, **options)
        if res == HELMRELEASES and not lost and "WrongValue" in str(arguments):
            lost = True
            raise ServiceUnavailable("the answer is lost", retry_after=1)
        return written

    world.cluster.patch = patch_without_answer  # type: ignore[method-assign]
    async with world.running():
        world.sources.show_package(package(7))
    assert lost
    assert world.conditions("root")[INVALID] == ("True", "WrongValue")
    assert world.events.of(PACKAGE) == [("Warning", "InvalidSettings")]


@virtual
async def test_a_package_that_is_repaired_while_the_condition_is_written_has_both_events() -> None:
    world = World()
    async with world.running():

        async def repair(verb: str, res: ClusterResource, key: Key) -> None:
            if (verb, res) == ("patch", HELMRELEASES):
                world.cluster.before = None
                world.sources.show_package(package("http01"))

        world.cluster.before = repair
        world.sources.show_package(package(7))
    assert INVALID not in world.conditions("root")
    assert world.events.of(PACKAGE) == [("Warning", "InvalidSettings"), ("Normal", "SettingsInForce")]


@virtual
async def test_a_status_without_room_for_messages_repeats_no_event() -> None:
    world = World()
    async with world.running():
        world.sources.show_package(package(7))
        await world.settle()
        name = release_name("root")
        annotations = world.content(HELMRELEASES, "tenant-root", name)["metadata"]["annotations"]
        padding = "x" * (ANNOTATIONS_LIMIT - len(annotations[FINDINGS_ANNOTATION]) + 60)
        await world.edit(HELMRELEASES, "tenant-root", name, {"metadata": {"annotations": {"p": padding}}})
        for host in ("one.org", "two.org"):
            await world.edit(HELMRELEASES, "tenant-root", name, {"spec": {"values": {"host": host}}})
            await world.settle()
    assert message(world) == ""
    assert world.events.of(PACKAGE) == [("Warning", "InvalidSettings")]


@virtual
async def test_a_wrong_configmap_is_a_condition_without_an_event_about_the_package() -> None:
    world = World()
    async with world.running():
        world.sources.show_package(package("dns01"))
        world.sources.show_root_host("*")
    assert message(world).startswith("ConfigMap cozy-system/cozystack is invalid: root-host: ")
    assert world.events.of(PACKAGE) == []
