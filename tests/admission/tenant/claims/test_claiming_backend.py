"""A write of a host or a quota is claimed first, and every failure on the way leaves a consistent state."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from typing import Any

import pytest

from admission.tenant.claims import claim_codec
from admission.tenant.claims.claim import EXPIRY_SECONDS, WRITE_SECONDS, Claim, ClaimsDocument, Outcome
from apiserver.meta import errors
from apiserver.meta.resource import GroupResource, Key
from registry.cluster.interface import HELMRELEASES, LEASES, ClusterResource, ClusterUnreachable
from registry.names import CLAIMS_ANNOTATION
from tests.admission.tenant.claims.two_replicas import (
    TRAILING_SECONDS,
    World,
    change,
    create,
    delete,
    failing,
    outcome,
    running,
)
from tests.tenant_objects import release
from tests.virtual_time import virtual

A, B = Key("tenant-root", "a"), Key("tenant-root", "b")
NAMESPACE, LEASE = "cozy-system", "tenant-apiserver-claims"
HOST = {"host": "x.example"}
PARENT = release("p", spec={"resourceQuotas": {"cpu": "20"}})


def lease_writes(world: World) -> int:
    return sum(write.resource == LEASES for write in world.cluster.writes)


def recorded(world: World) -> ClaimsDocument:
    lease = world.cluster.peek(LEASES, NAMESPACE, LEASE)
    assert lease is not None
    return claim_codec.decode(lease["metadata"]["annotations"][CLAIMS_ANNOTATION])


def put_lease(world: World, text: str) -> None:
    metadata = {"name": LEASE, "namespace": NAMESPACE, "annotations": {CLAIMS_ANNOTATION: text}}
    world.cluster.add(LEASES, {"metadata": metadata, "spec": {}})


def claim_of_another(**fields: Any) -> Claim:
    values = {"id": "three-1", "holder": "three", "key": B, "base": 1, "creates": True}
    return Claim(**{**values, "outcomes": (Outcome(host="x.example"),), **fields})


@virtual
async def test_a_plain_create_writes_nothing_else() -> None:
    async with running() as world:
        await create("a").send(world.servers[0])
        await asyncio.sleep(TRAILING_SECONDS)
        assert [write.resource for write in world.cluster.writes] == [HELMRELEASES]


@virtual
async def test_serial_creates_with_hosts_need_one_write_of_the_lease_each() -> None:
    async with running() as world:
        for number in range(10):
            await create(f"t{number}", host=f"t{number}.example").send(world.servers[0])
        assert lease_writes(world) == 10
        await asyncio.sleep(10 * TRAILING_SECONDS)
        assert lease_writes(world) == 10


@virtual
async def test_a_changed_host_needs_another_write_that_ends_its_claim() -> None:
    async with running(release("a")) as world:
        await change("a", **HOST).send(world.servers[0])
        assert lease_writes(world) == 1
        await asyncio.sleep(TRAILING_SECONDS)
        assert lease_writes(world) == 2
        assert recorded(world).claims == ()


@virtual
async def test_a_claim_that_the_lease_still_lists_holds_nobody_once_its_tenant_is_seen() -> None:
    async with running(PARENT) as world:
        one, two = world.servers
        await create("a", "tenant-p", resourceQuotas={"cpu": "15"}).send(one)
        assert await outcome(create("b", "tenant-p", resourceQuotas={"cpu": "5"}).send(two)) == 200
        assert await outcome(create("c", "tenant-p", resourceQuotas={"cpu": "1"}).send(two)) == 422
        assert lease_writes(world) == 2


@virtual
async def test_a_claim_that_the_lease_still_lists_is_removed_when_its_tenant_is_deleted() -> None:
    async with running() as world:
        one, two = world.servers
        await create("a", **HOST).send(one)
        await delete("a").send(one)
        began = asyncio.get_running_loop().time()
        await create("b", **HOST).send_until_decided(two)
        assert asyncio.get_running_loop().time() - began < 3
        assert [claim.key for claim in recorded(world).claims] == [B]


@virtual
async def test_the_claim_of_a_killed_replica_whose_tenant_is_seen_goes_with_the_next_write() -> None:
    async with running(release("b", spec=HOST)) as world:
        server = world.servers[0]
        put_lease(world, claim_codec.encode(ClaimsDocument(claims=(claim_of_another(base=0),))))
        assert await outcome(create("c", host="c.example").send(server)) == 200
        await asyncio.sleep(EXPIRY_SECONDS)
        assert await outcome(create("d", host="d.example").send(server)) == 200
        assert "three" not in {claim.holder for claim in recorded(world).claims}


@virtual
async def test_simultaneous_creates_share_the_writes_of_the_lease() -> None:
    async with running() as world:
        calls = [create(f"t{number}", host=f"t{number}.example").send(world.servers[0]) for number in range(50)]
        await asyncio.gather(*calls)
        assert lease_writes(world) <= 3


@virtual
async def test_fifty_simultaneous_creates_share_a_quota_for_twenty_without_retries() -> None:
    async with running(PARENT) as world:
        calls = [create(f"t{number}", "tenant-p", resourceQuotas={"cpu": 1}) for number in range(50)]
        codes = await asyncio.gather(*(outcome(call.send(world.servers[0])) for call in calls))
        assert Counter(codes) == {200: 20, 422: 30}


@virtual
async def test_the_lease_names_the_version_that_a_judge_must_have_seen() -> None:
    async with running() as world:
        stored = await create("a", **HOST).send(world.servers[0])
        await create("b", host="y.example").send(world.servers[0])
        assert recorded(world).min_version == int(stored["metadata"]["resourceVersion"])
        assert [claim.key for claim in recorded(world).claims] == [B]


@virtual
async def test_a_claim_of_another_replica_holds_a_write_and_tells_nothing() -> None:
    async with running() as world:
        put_lease(world, claim_codec.encode(ClaimsDocument(claims=(claim_of_another(),))))
        with pytest.raises(errors.TooManyRequests) as caught:
            await create("a", **HOST).send(world.servers[0])
        assert caught.value.retry_after == 1
        assert caught.value.message == "writes that may concern the same hosts or quotas are under way, try again"
        assert await outcome(create("a", host="y.example").send(world.servers[0])) == 200


@virtual
async def test_a_claim_of_another_replica_expires_and_is_removed() -> None:
    async with running() as world:
        put_lease(world, claim_codec.encode(ClaimsDocument(claims=(claim_of_another(),))))
        began = asyncio.get_running_loop().time()
        await create("a", **HOST).send_until_decided(world.servers[0])
        assert EXPIRY_SECONDS <= asyncio.get_running_loop().time() - began < EXPIRY_SECONDS + 2
        assert [claim.holder for claim in recorded(world).claims] == ["one"]


@virtual
async def test_an_expired_claim_whose_write_was_stored_counts_after_its_event() -> None:
    async with running() as world:
        put_lease(world, claim_codec.encode(ClaimsDocument(claims=(claim_of_another(),))))
        server = world.servers[0]
        assert await outcome(create("a", **HOST).send(server)) == 429
        await asyncio.sleep(EXPIRY_SECONDS)
        # stored at last, and not in the cache yet
        world.cluster.add(HELMRELEASES, release("b", spec=HOST))
        assert await outcome(create("a", **HOST).send(server)) == 422


@virtual
async def test_a_lease_that_cannot_be_read_holds_hosts_and_quotas_until_it_expires() -> None:
    async with running() as world:
        put_lease(world, '{"version": 2}')
        server = world.servers[0]
        assert await outcome(create("a", **HOST).send(server)) == 429
        assert await outcome(create("b").send(server)) == 200
        await asyncio.sleep(EXPIRY_SECONDS)
        assert await outcome(create("a", **HOST).send(server)) == 200
        assert [claim.key for claim in recorded(world).claims] == [A]


@virtual
async def test_a_lease_of_another_cluster_does_not_block_for_good(caplog: pytest.LogCaptureFixture) -> None:
    async with running() as world:
        put_lease(world, claim_codec.encode(ClaimsDocument(min_version=10**9)))
        assert await outcome(create("a", **HOST).send(world.servers[0])) == 200
        assert "which the cluster has not reached" in caplog.text
        await asyncio.sleep(TRAILING_SECONDS)
        assert recorded(world).min_version < 10**9


@virtual
async def test_the_claims_of_others_survive_the_deletion_of_the_lease() -> None:
    async with running() as world:
        put_lease(world, claim_codec.encode(ClaimsDocument(claims=(claim_of_another(),))))
        one, two = world.servers
        assert await outcome(create("a", **HOST).send(one)) == 429
        await world.cluster.delete(LEASES, NAMESPACE, LEASE)
        assert await outcome(create("a", host="y.example").send(one)) == 200
        assert await outcome(create("c", **HOST).send(two)) == 429


@virtual
async def test_without_the_lease_hosts_and_quotas_are_refused_and_plain_creates_go_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)
    async with running(PARENT) as world:
        forbidden = errors.Forbidden(GroupResource(LEASES.group, LEASES.plural), LEASE, "no rights")
        world.cluster.before = failing("create", LEASES, forbidden)
        server = world.servers[0]
        for _ in range(3):
            assert await outcome(create("a", **HOST).send(server)) == 503
            assert await outcome(change("p", resourceQuotas={"cpu": "10"}).send(server)) == 503
        assert await outcome(create("b").send(server)) == 200
        assert await outcome(delete("b").send(server)) == 200
        assert [record.levelname for record in caplog.records] == ["WARNING"]
        world.cluster.before = None
        assert await outcome(create("a", **HOST).send(server)) == 200


@virtual
async def test_a_write_without_an_answer_blocks_others_until_it_expires_and_its_own_retry_not() -> None:
    async with running() as world:
        one, two = world.servers
        world.cluster.before = failing("create", HELMRELEASES, ClusterUnreachable())
        assert await outcome(create("a", **HOST).send(one)) == 503
        world.cluster.before = None
        assert await outcome(create("b", **HOST).send(one)) == 429
        assert await outcome(create("b", **HOST).send(two)) == 429
        assert await outcome(create("a", **HOST).send(two)) == 200


@virtual
async def test_a_refused_write_blocks_nobody() -> None:
    async with running() as world:
        one, two = world.servers
        world.cluster.before = failing("create", HELMRELEASES, errors.BadRequest("refused by the cluster"))
        assert await outcome(create("a", **HOST).send(one)) == 400
        world.cluster.before = None
        assert await outcome(create("b", **HOST).send(one)) == 200
        await asyncio.sleep(TRAILING_SECONDS)
        assert await outcome(create("c", host="y.example").send(two)) == 200


@virtual
async def test_a_replica_that_was_suspended_does_not_send_its_write() -> None:
    async with running() as world:
        one, loop = world.servers[0], asyncio.get_running_loop()

        async def suspend(verb: str, res: ClusterResource, key: Key) -> None:
            if (verb, res) == ("create", LEASES):
                loop.call_soon(loop.block, WRITE_SECONDS)  # type: ignore[attr-defined]

        world.cluster.before = suspend
        assert await outcome(create("a", **HOST).send(one)) in (429, 503)
        assert world.cluster.peek(HELMRELEASES, "tenant-root", "tenant-a") is None


@virtual
async def test_a_dry_run_is_judged_and_writes_neither_claim_nor_mark() -> None:
    async with running(release("p"), release("b", spec=HOST)) as world:
        server = world.servers[0]
        assert await outcome(server.create(A, HOST, dry_run=True)) == 422
        assert await outcome(server.create(A, {"host": "y.example"}, dry_run=True)) == 200
        assert await outcome(server.delete(Key("tenant-root", "p"), dry_run=True)) == 200
        assert [write.dry_run for write in world.cluster.writes] == [True, True]
        put_lease(
            world,
            claim_codec.encode(
                ClaimsDocument(claims=(claim_of_another(key=A, outcomes=(Outcome(host="y.example"),)),))
            ),
        )
        assert await outcome(server.create(Key("tenant-root", "c"), {"host": "y.example"}, dry_run=True)) == 429


@virtual
async def test_a_create_whose_event_does_not_arrive_is_reported_as_unknown_and_judged_later() -> None:
    async with running() as world:
        one, turns = world.servers[0], world.turns
        world.cluster.add(HELMRELEASES, release("b", spec={"host": "a.example.org"}))
        with turns.events_held("one"):
            assert await outcome(create("a").send(one)) == 504
            assert world.cluster.peek(HELMRELEASES, "tenant-root", "tenant-a") is not None
        await asyncio.sleep(1)
        # the other one was stored first
        assert world.cluster.peek(HELMRELEASES, "tenant-root", "tenant-a") is None


@virtual
async def test_a_withdrawn_update_sets_host_and_quotas_back() -> None:
    before = {"host": "a.example", "resourceQuotas": {"cpu": "1"}}
    async with running(release("a", spec=before)) as world:
        one, turns = world.servers[0], world.turns
        with turns.events_held("one"):
            world.cluster.add(HELMRELEASES, release("c"))
            changing = asyncio.ensure_future(
                outcome(change("a", host="c.example.org", resourceQuotas={"cpu": "2"}).send(one))
            )
            await asyncio.sleep(1)
        assert await changing == 422
        assert [each.host for each in world.stored() if each.key == A] == ["a.example"]
        assert [dict(each.quotas) for each in world.stored() if each.key == A] == [{"cpu": "1"}]


@virtual
async def test_a_withdrawn_host_is_set_back_although_somebody_else_has_changed_the_quotas_since() -> None:
    async with running(release("a", spec={"host": "a.example", "resourceQuotas": {"cpu": "1"}})) as world:
        one, turns = world.servers[0], world.turns
        with turns.events_held("one"):
            world.cluster.add(HELMRELEASES, release("c"))
            changing = asyncio.ensure_future(outcome(change("a", host="c.example.org").send(one)))
            await asyncio.sleep(1)
            await change("a", resourceQuotas={"cpu": "2"}).send(world.servers[1])
        assert await changing == 422
        assert [(each.host, dict(each.quotas)) for each in world.stored() if each.key == A] == [
            ("a.example", {"cpu": "2"})
        ]
