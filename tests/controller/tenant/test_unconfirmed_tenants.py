"""No controller acts on a Tenant that may be withdrawn, and the first status of any other one removes the mark."""

from __future__ import annotations

from admission.tenant.claims.unconfirmed_writes import LATE_SECONDS
from registry.application.release_backend import FIELD_MANAGER
from registry.cluster.interface import HELMRELEASES, NAMESPACES
from registry.names import UNCONFIRMED_ANNOTATION, release_name
from tests.controller.tenant.tenant_world import World
from tests.fake_cluster import Write
from tests.tenant_objects import release
from tests.virtual_time import virtual


async def create_marked(world: World, name: str) -> None:
    """Creates a Tenant as a replica does."""
    marked = release(name, finalizer=True)
    marked["metadata"]["annotations"] = {UNCONFIRMED_ANNOTATION: f"killed-{name}"}
    await world.cluster.create(HELMRELEASES, marked, field_manager=FIELD_MANAGER)


def writes_of(world: World, name: str) -> list[Write]:
    """The writes of the HelmRelease of a Tenant."""
    return [each for each in world.cluster.writes if each.key.name == release_name(name)]


@virtual
async def test_a_tenant_that_is_withdrawn_never_had_a_namespace() -> None:
    world = World(has_replicas=True)
    async with world.running():
        await world.create("b", host="a.example.org")
        await create_marked(world, "a")
        await world.settle(LATE_SECONDS - 1)
        assert [each.verb for each in writes_of(world, "a")] == ["create"]
        await world.settle()
        assert world.cluster.peek(HELMRELEASES, "tenant-root", "tenant-a") is None
        assert ("create", "tenant-a") not in [
            (each.verb, each.key.name) for each in world.cluster.writes if each.resource == NAMESPACES
        ]
        assert world.namespace("tenant-b")


@virtual
async def test_a_tenant_whose_history_is_not_known_is_served_after_a_while() -> None:
    world = World(has_replicas=True)
    async with world.running():
        await world.create("b", host="a.example.org")
        await create_marked(world, "a")
        await world.create("c")
        await world.settle(1)
        assert world.cluster.peek(NAMESPACES, "", "tenant-a") is None
        world.cluster.compact()
        await world.settle()
        assert world.namespace("tenant-a")


@virtual
async def test_the_first_status_removes_the_mark_without_another_write() -> None:
    world = World(has_replicas=True)
    async with world.running():
        await world.create("plain")
        await create_marked(world, "marked")
        await world.settle()
        assert (
            UNCONFIRMED_ANNOTATION
            not in world.content(HELMRELEASES, "tenant-root", "tenant-marked")["metadata"]["annotations"]
        )
        assert [each.verb for each in writes_of(world, "marked")] == [each.verb for each in writes_of(world, "plain")]
