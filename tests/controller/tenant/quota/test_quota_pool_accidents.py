"""Pools of quota when processes, Tenants and Namespaces come and go in the middle of a change, and large pools."""

from __future__ import annotations

from collections import Counter

import pytest

from apiserver.patch.media_types import MERGE_PATCH
from registry.cluster.interface import HELMRELEASES, NAMESPACES, RESOURCEQUOTAS
from registry.names import release_name
from registry.tenant.pool_quotas import POOL_NAME, WITNESS_NAME
from tests.controller.tenant.quota.quota_controller import QuotaController
from tests.controller.tenant.tenant_world import World
from tests.virtual_time import virtual

ALPHA, BETA = "tenant-alpha", "tenant-alpha-beta"
STRICT = {"quotas": {"pool": "strict"}}
MANY = 100


async def _create_pool(world: World, *children: str, pods: int = 10) -> QuotaController:
    """The tenant alpha with a quota of Pods, and its children without one."""
    await world.create("alpha", resourceQuotas={"pods": pods})
    for child in children:
        await world.create(child, ALPHA)
    quotas = QuotaController(world)
    await _follow(world, quotas)
    return quotas


async def _follow(world: World, quotas: QuotaController, rounds: int = 4, capacity: int = 10) -> None:
    """The quota controller and ours follow each other, and at no time may more be used than a strict pool has."""
    is_strict = world.settings.current.quotas.pool == "strict"
    for _ in range(rounds):
        await world.settle()
        assert not is_strict or quotas.may_be_used() <= capacity
        await quotas.sync()
        assert not is_strict or quotas.may_be_used() <= capacity
    await world.settle()


@virtual
async def test_another_replica_finishes_a_transfer() -> None:
    before = World(settings=STRICT)
    async with before.running():
        quotas = await _create_pool(before, "beta")
        assert await quotas.use(ALPHA, 5)
        await before.settle()
        assert (quotas.hard(ALPHA), quotas.hard(BETA)) == ({"pods": "5"}, {"pods": "2"})
    after = World(before.cluster, settings=STRICT)
    async with after.running():
        assert (quotas.hard(ALPHA), quotas.hard(BETA)) == ({"pods": "5"}, {"pods": "2"})
        assert quotas.may_be_used() <= 10
        await _follow(after, quotas)
        assert (quotas.hard(ALPHA), quotas.hard(BETA)) == ({"pods": "8"}, {"pods": "2"})


@pytest.mark.parametrize("edited", ["10", None], ids=["raised", "removed"])
@pytest.mark.parametrize("name", [POOL_NAME, WITNESS_NAME])
@virtual
async def test_a_limit_that_somebody_edits_is_restored_and_the_other_one_holds(name: str, edited: str | None) -> None:
    world = World(settings=STRICT)
    async with world.running():
        quotas = await _create_pool(world, "beta")
        body = {"spec": {"hard": {"pods": edited}}}
        await world.cluster.patch(RESOURCEQUOTAS, BETA, name, body, content_type=MERGE_PATCH)
        for _ in range(4):
            await quotas.sync()
            assert not await quotas.use(BETA, 6)
            await world.settle()
        assert quotas.hard(BETA) == quotas.hard(BETA, WITNESS_NAME) == {"pods": "5"}


@virtual
async def test_the_share_of_a_deleted_tenant_returns_once_its_namespace_is_gone() -> None:
    world = World(settings=STRICT)
    async with world.running():
        quotas = await _create_pool(world, "beta")
        assert await quotas.use(BETA, 5)
        await world.edit_namespace(BETA, {"finalizers": ["example.org/slow"]})
        await world.delete("beta", ALPHA)
        await _follow(world, quotas)
        assert (quotas.hard(ALPHA), quotas.hard(BETA)) == ({"pods": "3"}, {"pods": "5"})
        await world.cluster.delete(RESOURCEQUOTAS, BETA, "tenant-pool")
        await world.edit_namespace(BETA, {"finalizers": None})
        await world.settle()
        assert world.cluster.peek(HELMRELEASES, ALPHA, release_name("beta")) is None
        assert quotas.hard(ALPHA) == {"pods": "10"}


@virtual
async def test_a_namespace_that_was_deleted_gets_its_share_again() -> None:
    world = World(settings=STRICT)
    async with world.running():
        quotas = await _create_pool(world, "beta", "gamma")
        await world.cluster.delete(NAMESPACES, "", BETA)
        await _follow(world, quotas)
        assert sorted(quotas.hard(each)["pods"] for each in (ALPHA, BETA, f"{ALPHA}-gamma")) == ["3", "3", "4"]


@virtual
async def test_a_key_that_limits_nothing_takes_no_others_out_of_the_pool() -> None:
    """Stored by an earlier version, or written to the HelmRelease."""
    world = World()
    async with world.running():
        quotas = await _create_pool(world, "beta")
        await world.change("alpha", resourceQuotas={"memry": "1Gi", "count/secrets": "10Pi", "count/pods": 7})
        await world.settle()
        both = {"count/pods": "7", "pods": "10"}
        assert (quotas.hard(ALPHA), quotas.hard(BETA)) == (both, both)
        assert world.conditions("alpha")["QuotaReady"] == ("False", "InvalidQuantity")
        assert world.content(RESOURCEQUOTAS, ALPHA, "tenant-quota")["spec"]["hard"] == {"count/pods": "7", "pods": "10"}


@pytest.mark.parametrize("mode", ["shared", "strict"])
@virtual
async def test_a_use_beyond_64_bits_is_not_given_again(mode: str) -> None:
    """Kubernetes adds up what no single quantity of a ResourceQuota may be."""
    world = World(settings={"quotas": {"pool": mode}})
    async with world.running():
        quotas = await _create_pool(world, "beta")
        await quotas.set_used(BETA, 18 * 10**18 + 64)
        for _ in range(3):
            await world.settle()
            await quotas.sync()
        assert quotas.hard(ALPHA) == {"pods": "0"}
        assert world.conditions("alpha")["QuotaReady"] == ("False", "PoolExceeded")


@virtual
async def test_each_limit_of_a_large_pool_is_written_once_for_each_change() -> None:
    world = World()
    async with world.running():
        quotas = await _create_large_pool(world)
        world.cluster.clear_writes()
        assert await quotas.use(f"{ALPHA}-c7", 5)
        await world.settle()
        assert quotas.hard(ALPHA) == {"pods": "995"}
        assert quotas.hard(f"{ALPHA}-c7") == {"pods": "1k"}
        assert _limits_written(world) == dict.fromkeys([ALPHA, *_children(but="c7")], 1)
        world.cluster.clear_writes()
        await quotas.sync()
        await world.reconcile_all()
        assert _limits_written(world) == {}


@virtual
async def test_each_limit_of_a_large_strict_pool_is_written_once_for_each_change() -> None:
    world = World(settings=STRICT)
    async with world.running():
        quotas = await _create_large_pool(world)
        assert quotas.may_be_used() == 10 * MANY
        world.cluster.clear_writes()
        await world.change("alpha", resourceQuotas={"pods": 20 * (MANY + 1)})
        await world.settle()
        assert _limits_written(world) == dict.fromkeys([ALPHA, *_children()], 1)
        assert quotas.hard(f"{ALPHA}-c7") == {"pods": "20"}
        world.cluster.clear_writes()
        await quotas.sync()
        await world.reconcile_all()
        assert _limits_written(world) == {}


async def _create_large_pool(world: World) -> QuotaController:
    await world.create("alpha", resourceQuotas={"pods": 10 * MANY})
    for number in range(MANY):
        await world.create(f"c{number}", ALPHA)
    quotas = QuotaController(world)
    for _ in range(3):
        await world.settle()
        await quotas.sync()
    await world.settle()
    return quotas


def _children(but: str = "") -> list[str]:
    return [f"{ALPHA}-c{number}" for number in range(MANY) if f"c{number}" != but]


def _limits_written(world: World) -> Counter[str]:
    """The number of writes of the part of each namespace; the quota controller writes only the status."""
    return Counter(
        write.key.namespace
        for write in world.cluster.writes
        if write.resource == RESOURCEQUOTAS and write.key.name == "tenant-pool" and not write.subresource
    )
