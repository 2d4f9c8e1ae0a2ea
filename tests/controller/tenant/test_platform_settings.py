"""Wrong settings of the platform's Package are reported on the root Tenant, and as Events about the Package."""

from __future__ import annotations

from typing import Any

from apiserver.meta.resource import Object
from controller.platform.package import PACKAGE
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
async def test_a_wrong_configmap_is_a_condition_without_an_event_about_the_package() -> None:
    world = World()
    async with world.running():
        world.sources.show_package(package("dns01"))
        world.sources.show_root_host("*")
    assert message(world).startswith("ConfigMap cozy-system/cozystack is invalid: root-host: ")
    assert world.events.of(PACKAGE) == []
