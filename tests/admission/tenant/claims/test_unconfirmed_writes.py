"""A write that was stored, and whose replica was killed before its own event, is judged late by every replica that
runs: the later one of two that exclude each other is withdrawn, and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from admission.tenant.claims.unconfirmed_writes import LATE_SECONDS
from apiserver.meta.resource import Key, Object
from apiserver.patch.media_types import MERGE_PATCH
from registry.cluster.interface import HELMRELEASES
from registry.names import UNCONFIRMED_ANNOTATION
from tests.admission.tenant.claims.two_replicas import Call, World, change, create, delete, outcome, running
from tests.tenant_objects import release
from tests.virtual_time import virtual

A, B = Key("tenant-root", "a"), Key("tenant-root", "b")
INHERITED = "a.example.org"
LATE = LATE_SECONDS + 1


def stored(world: World, name: str, namespace: str = "tenant-root") -> Object | None:
    return world.cluster.peek(HELMRELEASES, namespace, f"tenant-{name}")


def names(world: World) -> Sequence[str]:
    return sorted(each.key.name for each in world.stored() if not each.is_root)


async def excluded(world: World, first: Call, second: Call) -> None:
    """Replica two stores the first write, and then replica one the second one, without having seen the first. Replica
    one is killed before it sees its own."""
    one, two = world.servers
    with world.turns.events_held("one"):
        assert await outcome(first.send(two)) == 200
        sending = asyncio.ensure_future(outcome(second.send(one)))
        await asyncio.sleep(1)
        world.turns.kill("one")
    assert not sending.done()


PAIRS = [
    pytest.param([], create("b", host=INHERITED), create("a"), ["b"], id="a create that inherits a host"),
    pytest.param([], create("a"), create("b", host=INHERITED), ["a"], id="a create with a host that another inherits"),
    pytest.param([release("p")], delete("p"), create("a", "tenant-p"), [], id="a child of a deleted tenant"),
]


@pytest.mark.parametrize(("before", "first", "second", "left"), PAIRS)
@virtual
async def test_the_later_of_two_creates_is_withdrawn(
    before: Sequence[Object], first: Call, second: Call, left: Sequence[str]
) -> None:
    async with running(*before) as world:
        await excluded(world, first, second)
        assert len(names(world)) == len(left) + 1
        assert world.servers[1].may_be_withdrawn(second.key)
        await asyncio.sleep(LATE)
        assert names(world) == left
        assert not world.servers[1].may_be_withdrawn(second.key)


@virtual
async def test_the_later_host_is_set_back() -> None:
    async with running(release("b", spec={"host": "b.example", "resourceQuotas": {"cpu": "1"}})) as world:
        await excluded(world, create("a"), change("b", host=INHERITED))
        assert world.hosts().count(INHERITED) == 2
        await asyncio.sleep(LATE)
        assert [(each.host, dict(each.quotas)) for each in world.stored() if each.key == B] == [
            ("b.example", {"cpu": "1"})
        ]
        assert names(world) == ["a", "b"]


@virtual
async def test_the_order_is_known_after_a_restart_of_all_replicas_and_after_other_writes() -> None:
    async with running() as world:
        await excluded(world, create("b", host=INHERITED), create("a"))
        world.turns.kill("two")
        for number in range(5):
            for name in ("a", "b"):
                body = {"status": {"observedGeneration": number}}
                await world.cluster.patch(
                    HELMRELEASES, "tenant-root", f"tenant-{name}", body, content_type=MERGE_PATCH, subresource="status"
                )
        await world.start("three")
        assert world.servers[2].may_be_withdrawn(A)
        await asyncio.sleep(LATE)
        assert names(world) == ["b"]


@virtual
async def test_a_replica_that_cannot_reach_the_cluster_judges_later() -> None:
    async with running() as world:
        await excluded(world, create("b", host=INHERITED), create("a"))
        world.cluster.unreachable = True
        await asyncio.sleep(2 * LATE)
        world.cluster.unreachable = False
        await asyncio.sleep(LATE)
        assert names(world) == ["b"]


@virtual
async def test_without_history_nothing_is_withdrawn(caplog: pytest.LogCaptureFixture) -> None:
    async with running() as world:
        await excluded(world, create("b", host=INHERITED), create("a"))
        world.cluster.compact()
        world.cluster.add(HELMRELEASES, release("c"))
        await world.cluster.patch(
            HELMRELEASES, "tenant-root", "tenant-a", {"status": {"a": 1}}, content_type=MERGE_PATCH
        )
        world.cluster.compact()
        await asyncio.sleep(LATE)
        assert names(world) == ["a", "b", "c"]
        assert not world.servers[1].may_be_withdrawn(A)
        assert "the history of tenant tenant-root/a is not known" in caplog.text


@virtual
async def test_a_mark_that_another_program_restored_is_ignored() -> None:
    async with running(release("b", spec={"host": INHERITED})) as world:
        restored = release("a")
        restored["metadata"]["annotations"] = {UNCONFIRMED_ANNOTATION: "killed-1"}
        await world.cluster.create(HELMRELEASES, restored, field_manager="kubectl")
        await asyncio.sleep(LATE)
        assert names(world) == ["a", "b"]


@virtual
async def test_a_confirmed_create_stays_whatever_others_write_to_the_cluster() -> None:
    async with running() as world:
        assert await outcome(create("a").send(world.servers[0])) == 200
        world.cluster.add(HELMRELEASES, release("b", spec={"host": INHERITED}))
        await asyncio.sleep(1)
        assert not any(server.may_be_withdrawn(A) for server in world.servers)
        await world.start("three")
        await asyncio.sleep(LATE)
        assert names(world) == ["a", "b"]


@virtual
async def test_the_host_of_a_tenant_that_may_be_withdrawn_cannot_be_changed() -> None:
    async with running() as world:
        await excluded(world, create("b", host=INHERITED), create("a"))
        assert await outcome(change("a", host="x.example").send(world.servers[1])) == 429
        await asyncio.sleep(LATE)
        assert await outcome(create("a", host="x.example").send(world.servers[1])) == 200


@virtual
async def test_the_mark_is_part_of_the_write_and_not_shown_to_clients() -> None:
    async with running() as world:
        server = world.servers[0]
        shown = await create("a").send(server)
        marked = stored(world, "a")
        assert marked is not None
        assert UNCONFIRMED_ANNOTATION in marked["metadata"]["annotations"]
        cached = server.cache.peek(A)
        assert cached is not None
        assert UNCONFIRMED_ANNOTATION not in f"{shown} {cached.object()}"
        assert [(write.verb, write.resource) for write in world.cluster.writes] == [("create", HELMRELEASES)]


@virtual
async def test_a_dry_run_and_a_change_of_other_fields_set_no_mark() -> None:
    async with running(release("b")) as world:
        server = world.servers[0]
        await server.create(A, {}, dry_run=True)
        await change("b", resourceQuotas={"cpu": "1"}).send(server)
        found = stored(world, "b")
        assert found is not None
        assert UNCONFIRMED_ANNOTATION not in str(found)
