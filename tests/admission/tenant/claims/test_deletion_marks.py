"""A deletion marks its Tenant first, so that no other replica gives it children."""

from __future__ import annotations

import asyncio

from admission.tenant.claims.claim import EXPIRY_SECONDS
from apiserver.meta import errors
from apiserver.meta.resource import Key
from registry.cluster.interface import HELMRELEASES, ClusterResource
from registry.names import DELETION_MARK_ANNOTATION
from tests.admission.tenant.claims.two_replicas import (
    TRAILING_SECONDS,
    World,
    create,
    delete,
    failing,
    outcome,
    running,
)
from tests.tenant_objects import release
from tests.virtual_time import virtual


def mark_of(world: World, name: str) -> str | None:
    found = world.cluster.peek(HELMRELEASES, "tenant-root", f"tenant-{name}")
    assert found is not None
    mark: str | None = (found["metadata"].get("annotations") or {}).get(DELETION_MARK_ANNOTATION)
    return mark


@virtual
async def test_a_deletion_marks_the_tenant_first_and_takes_two_writes() -> None:
    async with running(release("p")) as world:
        await delete("p").send(world.servers[0])
        assert [write.verb for write in world.cluster.writes] == ["patch", "delete"]


@virtual
async def test_a_mark_is_not_shown_to_clients() -> None:
    async with running(release("p", finalizer=True)) as world:
        server = world.servers[0]
        assert (await delete("p").send(server))["metadata"]["deletionTimestamp"]
        assert mark_of(world, "p")
        shown = server.cache.peek(Key("tenant-root", "p"))
        assert shown is not None
        assert DELETION_MARK_ANNOTATION not in str(shown.object())


@virtual
async def test_a_tenant_with_a_mark_gets_no_children_until_the_mark_expires() -> None:
    async with running(release("p")) as world:
        one = world.servers[0]
        marked = world.cluster.peek(HELMRELEASES, "tenant-root", "tenant-p")
        assert marked is not None
        marked["metadata"]["annotations"] = {DELETION_MARK_ANNOTATION: "killed-1"}
        await world.cluster.update(HELMRELEASES, marked)
        assert await outcome(create("a", "tenant-p").send(one)) == 429
        began = asyncio.get_running_loop().time()
        await create("a", "tenant-p").send_until_decided(one)
        assert asyncio.get_running_loop().time() - began < EXPIRY_SECONDS + 2
        assert mark_of(world, "p") is None


@virtual
async def test_a_deletion_that_fails_removes_its_mark() -> None:
    async with running(release("p")) as world:
        server = world.servers[0]
        world.cluster.before = failing("delete", HELMRELEASES, errors.BadRequest("refused by the cluster"))
        assert await outcome(delete("p").send(server)) == 400
        world.cluster.before = None
        await asyncio.sleep(TRAILING_SECONDS)
        assert mark_of(world, "p") is None
        assert await outcome(create("a", "tenant-p").send(server)) == 200


@virtual
async def test_a_child_that_is_found_after_the_mark_keeps_the_tenant_and_removes_the_mark() -> None:
    async with running(release("p")) as world:

        async def add_child(verb: str, res: ClusterResource, key: Key) -> None:
            if verb == "patch" and world.cluster.peek(HELMRELEASES, "tenant-p", "tenant-c") is None:
                world.cluster.add(HELMRELEASES, release("c", "tenant-p"))

        world.cluster.before = add_child
        assert await outcome(delete("p").send(world.servers[0])) == 409
        assert mark_of(world, "p") is None


@virtual
async def test_a_child_that_is_stored_after_the_mark_does_not_keep_the_tenant() -> None:
    async with running(release("p")) as world:
        with world.turns.events_held("one"):
            deleting = asyncio.ensure_future(outcome(delete("p").send(world.servers[0])))
            await asyncio.sleep(1)
            # its replica withdraws it
            world.cluster.add(HELMRELEASES, release("c", "tenant-p"))
        assert await deleting == 200


@virtual
async def test_simultaneous_deletions_of_one_tenant_on_two_replicas_end() -> None:
    async with running(release("p")) as world:
        codes = await asyncio.gather(*(outcome(delete("p").send(server)) for server in world.servers))
        assert sorted(codes) == [200, 404]


@virtual
async def test_a_second_deletion_needs_no_mark() -> None:
    async with running(release("p", finalizer=True)) as world:
        await delete("p").send(world.servers[0])
        world.cluster.clear_writes()
        await delete("p").send(world.servers[0])
        assert [write.verb for write in world.cluster.writes] == ["delete"]
