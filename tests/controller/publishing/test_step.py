"""The publishing Tenant has the condition; the Package has Events about changes."""

from __future__ import annotations

from typing import Any

from apiserver.meta.errors import Conflict
from apiserver.meta.resource import GroupResource, Key, Object
from controller.platform.package import PACKAGE
from registry.cluster.interface import HELMRELEASES, ClusterResource
from tests.controller.tenant.tenant_world import World
from tests.virtual_time import virtual

EVENTS = ("NotServed", "Served", "NoPublishingTenant")


def message(world: World, tenant: str = "root") -> str:
    conditions = world.tenant(tenant)["status"]["conditions"]
    return next((str(each["message"]) for each in conditions if each["type"] == "PublishingReady"), "")


def package() -> Object:
    return {"metadata": {"name": PACKAGE, "uid": "p"}, "spec": {}}


def settings(publisher: str = "tenant-root", *exposed: str) -> dict[str, Any]:
    return {"publishing": {"ingressName": publisher, "exposedServices": list(exposed)}, "gateway": {"enabled": True}}


@virtual
async def test_only_the_publishing_tenant_has_the_condition() -> None:
    world = World(settings=settings("tenant-alpha", "api"))
    async with world.running():
        await world.create("alpha")
    assert message(world, "alpha") == "api: GatewayMissing (Gateway tenant-alpha/cozystack)"
    assert "PublishingReady" not in world.conditions("root")
    assert world.conditions("alpha")["Ready"] == ("True", "Reconciled")


@virtual
async def test_without_services_there_is_no_condition() -> None:
    world = World()
    async with world.running():
        pass
    assert "PublishingReady" not in world.conditions("root")


@virtual
async def test_a_publisher_that_is_no_tenant_is_reported_on_the_root_until_it_is_one() -> None:
    world = World(settings=settings("tenant-later", "api"))
    async with world.running():
        assert world.conditions("root")["PublishingReady"] == ("False", "NoPublishingTenant")
        assert "tenant-later" in message(world)
        await world.create("later")
    assert "PublishingReady" not in world.conditions("root")
    assert world.conditions("later")["PublishingReady"] == ("False", "NotServed")


@virtual
async def test_an_admin_publisher_that_is_no_tenant_is_reported_on_the_root_until_it_is_one() -> None:
    """Also if no service is exposed: charts read it, `expose-ingress-admin`."""
    said = "publishing.ingressNameAdmin is tenant-later, which is the namespace of no tenant"
    world = World(settings={"publishing": {"ingressNameAdmin": "tenant-later"}})
    async with world.running():
        assert world.conditions("root")["PublishingReady"] == ("False", "NoPublishingTenant")
        assert message(world) == said
        assert world.conditions("root")["Ready"] == ("True", "Reconciled")
        await world.create("later")
        await world.settle()
        assert "PublishingReady" not in world.conditions("root")
        assert "PublishingReady" not in world.conditions("later")
        await world.delete("later")
    assert message(world) == said


@virtual
async def test_a_wrong_admin_publisher_hides_no_service_that_is_not_served() -> None:
    publishing = {"ingressNameAdmin": "tenant-later", "exposedServices": ["api"]}
    world = World(settings={"publishing": publishing, "gateway": {"enabled": True}})
    async with world.running():
        pass
    assert world.conditions("root")["PublishingReady"] == ("False", "NoPublishingTenant")
    assert message(world).endswith("of no tenant; api: GatewayMissing (Gateway tenant-root/cozystack)")


@virtual
async def test_both_publishers_that_are_no_tenants_are_reported() -> None:
    publishing = {"ingressName": "tenant-one", "ingressNameAdmin": "tenant-two", "exposedServices": ["api"]}
    world = World(settings={"publishing": publishing, "gateway": {"enabled": True}})
    async with world.running():
        pass
    assert "tenant-one" in message(world)
    assert "tenant-two" in message(world)


@virtual
async def test_a_status_that_is_written_at_the_third_attempt_is_an_event_about_the_package_once() -> None:
    world = World(settings=settings("tenant-root", "nosuch"))
    world.sources.show_package(package())
    rejected = 0

    async def reject(verb: str, res: ClusterResource, key: Key) -> None:
        nonlocal rejected
        if (verb, res) == ("patch", HELMRELEASES) and rejected < 2:
            rejected += 1
            raise Conflict(GroupResource(res.group, res.plural), key.name)

    world.cluster.before = reject
    async with world.running():
        pass
    assert (rejected, world.events.of(PACKAGE)) == (2, [("Warning", "NotServed")])


@virtual
async def test_a_long_message_is_reported_once() -> None:
    services = [f"nosuch{number:03}" for number in range(300)]
    world = World(settings=settings("tenant-root", *services))
    world.sources.show_package(package())
    async with world.running():
        await world.reconcile_all()
    assert world.events.of(PACKAGE) == [("Warning", "NotServed")]


@virtual
async def test_events_about_the_package_tell_changes_only() -> None:
    world = World(settings=settings("tenant-root", "nosuch"))
    world.sources.show_package(package())
    async with world.running():
        await world.reconcile_all()
        assert world.events.of(PACKAGE) == [("Warning", "NotServed")]
        world.configure(**settings("tenant-root", "nosuch", "other"))
        await world.settle()
        assert world.events.of(PACKAGE) == [("Warning", "NotServed")] * 2
    later = World(world.cluster, settings=settings("tenant-root", "nosuch", "other"))
    later.sources.show_package(package())
    async with later.running():
        pass
    assert later.events.of(PACKAGE) == []
