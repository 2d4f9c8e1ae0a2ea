"""A child tenant whose quota is lowered or removed, or that is deleted, while it uses more: its parent's pool gets back
what is not used any more, and nothing before."""

from __future__ import annotations

import pytest

from apiserver.meta import errors
from apiserver.meta.errors import StatusError
from apiserver.meta.resource import GroupResource, Key
from registry.cluster.interface import HELMRELEASES, RESOURCEQUOTAS, ClusterResource
from registry.names import release_name
from tests.controller.tenant.quota.quota_controller import QuotaController
from tests.controller.tenant.tenant_world import World
from tests.virtual_time import virtual

ALPHA, BETA, GAMMA = "tenant-alpha", "tenant-alpha-beta", "tenant-alpha-gamma"
MODES = pytest.mark.parametrize("mode", ["shared", "strict"])


def new_world(mode: str) -> World:
    return World(settings={"quotas": {"pool": mode}})


async def create_tenants(world: World, **children: int | None) -> QuotaController:
    """The tenant alpha with a quota of 16 Pods, and its children with quotas or without."""
    await world.create("alpha", resourceQuotas={"pods": 16})
    for child, pods in children.items():
        await world.create(child, ALPHA, **({} if pods is None else {"resourceQuotas": {"pods": pods}}))
    quotas = QuotaController(world)
    await follow(world, quotas)
    return quotas


async def follow(world: World, quotas: QuotaController, rounds: int = 4) -> None:
    for _ in range(rounds):
        await world.settle()
        await quotas.sync()
    await world.settle()


def may_use(quotas: QuotaController, *namespaces: str) -> list[str]:
    return [quotas.hard(each)["pods"] for each in namespaces]


@MODES
@virtual
async def test_a_quota_that_is_lowered_below_its_use_frees_nothing_before_the_use_falls(mode: str) -> None:
    world = new_world(mode)
    async with world.running():
        quotas = await create_tenants(world, beta=16)
        assert await quotas.use(BETA, 16)
        await world.change("beta", ALPHA, resourceQuotas={"pods": 0})
        await follow(world, quotas)
        # in a shared pool that is exceeded, each namespace may use what it uses
        for used in (16, 6, 0):
            await quotas.set_used(BETA, used)
            await follow(world, quotas)
            assert may_use(quotas, ALPHA, BETA) == [str(16 - used), str(used) if mode == "shared" else "0"]
            assert (world.conditions("beta", ALPHA)["QuotaReady"] == ("False", "PoolExceeded")) is (used > 0)
            assert world.conditions("alpha")["QuotaReady"] != ("False", "PoolExceeded")


@MODES
@virtual
async def test_a_quota_that_is_removed_leaves_its_use_in_the_pool(mode: str) -> None:
    world = new_world(mode)
    async with world.running():
        quotas = await create_tenants(world, beta=16)
        assert await quotas.use(BETA, 12)
        await world.change("beta", ALPHA, resourceQuotas={"pods": None})
        await follow(world, quotas)
        assert sum(int(each) for each in may_use(quotas, ALPHA, BETA)) == (20 if mode == "shared" else 16)
        assert int(quotas.hard(ALPHA)["pods"]) <= 4


@MODES
@virtual
async def test_what_a_grandchild_uses_beyond_its_quota_is_taken_from_all_above(mode: str) -> None:
    world = new_world(mode)
    async with world.running():
        quotas = await create_tenants(world, beta=8)
        await world.create("deep", BETA, resourceQuotas={"pods": 8})
        await follow(world, quotas)
        assert await quotas.use(f"{BETA}-deep", 8)
        await world.change("deep", BETA, resourceQuotas={"pods": 1})
        await follow(world, quotas)
        assert may_use(quotas, ALPHA, BETA) == ["8", "0"]
        await world.change("beta", ALPHA, resourceQuotas={"pods": 2})
        await follow(world, quotas)
        assert may_use(quotas, ALPHA, BETA) == ["8", "0"]
        await quotas.set_used(f"{BETA}-deep", 0)
        await follow(world, quotas)
        assert may_use(quotas, ALPHA, BETA) == ["14", "1"]


@MODES
@virtual
async def test_a_tenant_that_is_being_deleted_keeps_what_it_uses_until_its_namespace_is_gone(mode: str) -> None:
    """Also when the ResourceQuota, which tells it, has been deleted with the namespace."""
    world = new_world(mode)
    async with world.running():
        quotas = await create_tenants(world, beta=16)
        assert await quotas.use(BETA, 16)
        await world.change("beta", ALPHA, resourceQuotas={"pods": 1})
        await world.edit_namespace(BETA, {"finalizers": ["example.org/slow"]})
        await world.delete("beta", ALPHA)
        await follow(world, quotas)
        assert may_use(quotas, ALPHA) == ["0"]
        await world.cluster.delete(RESOURCEQUOTAS, BETA, "tenant-pool")
        await follow(world, quotas)
        assert may_use(quotas, ALPHA) == ["0"]
        await quotas.set_used(BETA, 0)
        await world.edit_namespace(BETA, {"finalizers": None})
        await follow(world, quotas)
        assert world.cluster.peek(HELMRELEASES, ALPHA, release_name("beta")) is None
        assert may_use(quotas, ALPHA) == ["16"]
        await world.create("beta", ALPHA, resourceQuotas={"pods": 4})
        await follow(world, quotas)
        assert may_use(quotas, ALPHA, BETA) == ["12", "4"]


@MODES
@virtual
async def test_a_limit_that_cannot_be_lowered_stays_taken_from_the_pool(mode: str) -> None:
    """The cluster refuses to change the ResourceQuotas of the namespace: the last limits are still in effect."""
    world, refused = new_world(mode), set[str]()

    async def refuse(verb: str, res: ClusterResource, key: Key) -> None:
        if verb == "patch" and res == RESOURCEQUOTAS and key.namespace in refused:
            raise errors.Forbidden(GroupResource("", "resourcequotas"), key.name, "a policy of the cluster")

    world.cluster.before = refuse
    async with world.running():
        quotas = await create_tenants(world, beta=12)
        refused.add(BETA)
        await world.change("beta", ALPHA, resourceQuotas={"pods": 2})
        for _ in range(3):
            await world.settle()
            await quotas.sync(ALPHA)
        assert may_use(quotas, ALPHA, BETA) == ["4", "12"]
        refused.clear()
        await world.reconcile_all()
        await follow(world, quotas)
        assert may_use(quotas, ALPHA, BETA) == ["14", "2"]


@virtual
async def test_the_mode_can_be_changed_while_a_child_uses_more_than_it_declares() -> None:
    world = new_world("shared")
    async with world.running():
        quotas = await create_tenants(world, beta=16, gamma=None)
        assert await quotas.use(BETA, 12)
        await world.change("beta", ALPHA, resourceQuotas={"pods": 2})
        await follow(world, quotas)
        assert may_use(quotas, ALPHA, GAMMA) == ["4", "4"]
        world.configure(quotas={"pool": "strict"})
        await follow(world, quotas)
        assert may_use(quotas, ALPHA, BETA, GAMMA) == ["2", "2", "2"]
        await quotas.set_used(BETA, 1)
        await follow(world, quotas)
        assert may_use(quotas, ALPHA, BETA, GAMMA) == ["7", "2", "7"]
        world.configure(quotas={"pool": "shared"})
        await follow(world, quotas)
        assert may_use(quotas, ALPHA, BETA, GAMMA) == ["14", "2", "14"]


@virtual
async def test_what_the_cluster_refuses_in_one_resourcequota_does_not_keep_the_pool_from_being_limited() -> None:
    world = World()
    why = "spec.hard[pods]: Invalid value: 1: must be an integer"

    async def refuse(verb: str, res: ClusterResource, key: Key) -> None:
        if verb == "create" and res == RESOURCEQUOTAS and key.name == "tenant-quota":
            raise StatusError(422, "Invalid", f'ResourceQuota "tenant-quota" is invalid: {why}')

    world.cluster.before = refuse
    async with world.running():
        quotas = await create_tenants(world, beta=None)
        assert may_use(quotas, ALPHA, BETA) == ["16", "16"]
        assert await quotas.use(BETA, 10)
        await follow(world, quotas)
        assert may_use(quotas, ALPHA, BETA) == ["6", "16"]
        [found] = [each for each in world.tenant("alpha")["status"]["conditions"] if each["type"] == "QuotaReady"]
        assert (found["status"], found["reason"]) == ("False", "Refused")
        assert why in found["message"]
