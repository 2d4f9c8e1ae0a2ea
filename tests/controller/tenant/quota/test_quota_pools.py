"""ResourceQuota `tenant-pool` in every namespace of a pool, with the part of the pool that the namespace may use."""

from __future__ import annotations

import random

import pytest

from apiserver.meta.resource import Key
from registry.cluster.interface import CONFIGMAPS, LIMITRANGES, RESOURCEQUOTAS, ClusterResource
from registry.tenant.pool_quotas import WITNESS_NAME
from tests.controller.tenant.quota.quota_controller import QuotaController
from tests.controller.tenant.tenant_world import World
from tests.virtual_time import virtual

ALPHA, BETA = "tenant-alpha", "tenant-alpha-beta"
STRICT = {"quotas": {"pool": "strict"}}


async def _create_pool(world: World, pods: int = 10) -> QuotaController:
    """The tenant alpha with a quota of Pods, and its child beta without one."""
    await world.create("alpha", resourceQuotas={"pods": pods})
    await world.create("beta", "tenant-alpha")
    await world.settle()
    quotas = QuotaController(world)
    for _ in range(4):
        await quotas.sync()
        await world.settle()
    return quotas


@virtual
async def test_a_child_without_quotas_shares_those_of_its_parent() -> None:
    world = World()
    async with world.running():
        quotas = await _create_pool(world)
        assert (quotas.hard(ALPHA), quotas.hard(BETA)) == ({"pods": "10"}, {"pods": "10"})
        assert await quotas.use(BETA, 6)
        await world.settle()
        assert (quotas.hard(ALPHA), quotas.hard(BETA)) == ({"pods": "4"}, {"pods": "10"})
        await quotas.sync()
        assert not await quotas.use(ALPHA, 5)
    # a container of the child can start without limits of its own
    assert world.content(LIMITRANGES, BETA, "tenant-range-limits")
    assert world.cluster.peek(RESOURCEQUOTAS, BETA, "tenant-quota") is None


@virtual
async def test_what_children_declare_is_no_longer_part_of_the_pool() -> None:
    world = World()
    async with world.running():
        quotas = await _create_pool(world)
        await world.create("gamma", "tenant-alpha", resourceQuotas={"pods": 4})
        await world.settle()
        assert (quotas.hard(ALPHA), quotas.hard(BETA)) == ({"pods": "6"}, {"pods": "6"})
        assert quotas.hard("tenant-alpha-gamma") == {"pods": "4"}
        await world.change("beta", "tenant-alpha", resourceQuotas={"pods": 1, "secrets": 7})
        await world.settle()
        assert (quotas.hard(ALPHA), quotas.hard(BETA)) == ({"pods": "5"}, {"pods": "1", "secrets": "7"})
        await world.change("alpha", resourceQuotas={"pods": None})
        await world.change("beta", "tenant-alpha", resourceQuotas={"pods": None, "secrets": None})
    for namespace in (ALPHA, BETA):
        assert world.cluster.peek(RESOURCEQUOTAS, namespace, "tenant-pool") is None
        assert world.cluster.peek(LIMITRANGES, namespace, "tenant-range-limits") is None


@virtual
async def test_if_more_is_used_than_there_is_nothing_more_is_admitted_and_a_condition_says_so() -> None:
    """Two namespaces that use at one instant can use what is left twice."""
    world = World()
    async with world.running():
        quotas = await _create_pool(world)
        assert await quotas.use(ALPHA, 8)
        assert await quotas.use(BETA, 8)
        await world.settle()
        assert (quotas.hard(ALPHA), quotas.hard(BETA)) == ({"pods": "8"}, {"pods": "8"})
        for condition in ("QuotaReady", "Ready"):
            assert world.conditions("alpha")[condition] == ("False", "PoolExceeded")
        [said] = [each for each in world.tenant("alpha")["status"]["conditions"] if each["type"] == "QuotaReady"]
        assert ": 16 of 10 pods; nothing more is admitted" in said["message"]
        assert "QuotaReady" not in world.conditions("beta", "tenant-alpha")
        await quotas.set_used(BETA, 1)
        await world.settle()
        assert (quotas.hard(ALPHA), quotas.hard(BETA)) == ({"pods": "9"}, {"pods": "2"})
    assert world.conditions("alpha")["QuotaReady"] == ("False", "NotEnforced")
    assert world.conditions("alpha")["Ready"] == ("True", "Reconciled")


@virtual
async def test_the_only_namespace_of_a_pool_is_not_written_to_with_each_use() -> None:
    world = World()
    async with world.running():
        await world.create("alpha", resourceQuotas={"pods": 10})
        await world.settle()
        quotas = QuotaController(world)
        await quotas.sync()
        await world.settle()
        writes = world.writer.writes
        assert await quotas.use(ALPHA, 3)
        await world.settle()
        assert world.writer.writes == writes


@virtual
async def test_a_strict_pool_is_divided_and_moves_what_is_left_to_who_needs_it() -> None:
    world = World(settings=STRICT)
    async with world.running():
        quotas = await _create_pool(world)
        assert (quotas.hard(ALPHA), quotas.hard(BETA)) == ({"pods": "5"}, {"pods": "5"})
        assert await quotas.use(ALPHA, 5)
        await world.settle()
        # beta gives, and alpha gets it only after the quota controller has seen that in both quotas of beta
        assert (quotas.hard(ALPHA), quotas.hard(BETA)) == ({"pods": "5"}, {"pods": "2"})
        assert quotas.hard(BETA, WITNESS_NAME) == {"pods": "5"}
        await quotas.sync(BETA)
        await world.settle()
        assert quotas.hard(BETA, WITNESS_NAME) == {"pods": "2"}
        assert quotas.hard(ALPHA) == {"pods": "5"}
        await quotas.sync(BETA)
        await world.settle()
        assert (quotas.hard(ALPHA), quotas.hard(BETA)) == ({"pods": "8"}, {"pods": "2"})
        await quotas.sync(ALPHA)
        await world.settle()
        assert quotas.hard(ALPHA, WITNESS_NAME) == {"pods": "8"}
        await quotas.sync(ALPHA)
        await world.settle()
        writes = world.writer.writes
        await world.reconcile_all()
        assert world.writer.writes == writes


@virtual
async def test_a_tenant_that_begins_to_declare_gets_only_what_its_parents_pool_has_given() -> None:
    world = World(settings=STRICT)
    async with world.running():
        quotas = await _create_pool(world)
        await world.create("gamma", "tenant-alpha", resourceQuotas={"pods": 8})
        await world.settle()
        assert quotas.may_be_used() <= 10
        for _ in range(3):
            await quotas.sync()
            await world.settle()
            assert quotas.may_be_used() <= 10
        assert quotas.hard("tenant-alpha-gamma") == {"pods": "8"}
        await world.change("gamma", "tenant-alpha", resourceQuotas={"pods": 2})
        await world.settle()
        for _ in range(3):
            assert quotas.may_be_used() <= 10
            await quotas.sync()
            await world.settle()
        found = [quotas.hard(each)["pods"] for each in (ALPHA, BETA, "tenant-alpha-gamma")]
        assert found == ["4", "4", "2"]


@pytest.mark.parametrize("seed", range(3))
@virtual
async def test_a_strict_pool_never_allows_more_than_its_capacity(seed: int) -> None:
    """Pods come and go in four namespaces, and the quota controller sees changes late."""
    world, chance = World(settings=STRICT), random.Random(seed)
    namespaces = [ALPHA, BETA, f"{BETA}-deep", "tenant-alpha-aside"]
    async with world.running():
        quotas = await _create_pool(world, 20)
        await world.create("deep", BETA)
        await world.create("aside", "tenant-alpha")
        for _ in range(3):
            await world.settle()
            await quotas.sync()
        for _ in range(150):
            namespace = chance.choice(namespaces)
            match chance.randrange(4):
                case 0:
                    await quotas.set_used(namespace, 0) if chance.random() < 0.3 else None
                case 1 | 2:
                    await quotas.use(namespace, chance.randrange(1, 4))
                case _:
                    await quotas.sync(namespace)
            await world.settle(chance.choice([0.0, 0.01, 1.0]))
            assert quotas.may_be_used() <= 20
        for _ in range(6):
            await quotas.sync()
            await world.settle()
        assert quotas.may_be_used() == 20


@virtual
async def test_a_late_write_of_the_leader_before_is_not_overlooked() -> None:
    """Caches may be out of date: before a namespace gets more, the others are read again."""
    world = World(settings=STRICT)
    async with world.running():
        quotas = await _create_pool(world)
        assert await quotas.use(ALPHA, 5)
        await world.settle()
        assert (quotas.hard(ALPHA), quotas.hard(BETA)) == ({"pods": "5"}, {"pods": "2"})

        late: list[Key] = []

        async def write_late(verb: str, res: ClusterResource, key: Key) -> None:
            if (verb, res) == ("list", RESOURCEQUOTAS) and not late:
                late.append(key)
                await world.edit(RESOURCEQUOTAS, BETA, "tenant-pool", {"spec": {"hard": {"pods": "4"}}})
                assert quotas.may_be_used() <= 10

        world.cluster.before = write_late
        await quotas.sync(BETA)
        await world.settle(1)
        assert late
        assert quotas.may_be_used() <= 10


@virtual
async def test_the_mode_can_be_changed() -> None:
    world = World()
    async with world.running():
        quotas = await _create_pool(world)
        world.configure(**STRICT)
        for _ in range(3):
            await world.settle()
            await quotas.sync()
        await world.settle()
        assert (quotas.hard(ALPHA), quotas.hard(BETA)) == ({"pods": "5"}, {"pods": "5"})
        assert quotas.hard(BETA, WITNESS_NAME) == {"pods": "5"}
        world.configure()
        await world.settle()
        assert (quotas.hard(ALPHA), quotas.hard(BETA)) == ({"pods": "10"}, {"pods": "10"})
        assert world.cluster.peek(RESOURCEQUOTAS, BETA, WITNESS_NAME) is None


@virtual
async def test_the_configmap_of_older_versions_of_cozystack_has_ratios_as_well() -> None:
    world = World()
    async with world.running():
        await world.create("alpha", resourceQuotas={"cpu": 2})
        await world.settle()
        data = {"cpu-allocation-ratio": "5"}
        world.cluster.add(CONFIGMAPS, {"metadata": {"name": "cozystack", "namespace": "cozy-system"}, "data": data})
        await world.settle()
        hard = world.content(RESOURCEQUOTAS, ALPHA, "tenant-quota")["spec"]["hard"]
        assert hard == {"limits.cpu": "2", "requests.cpu": "400m"}


@virtual
async def test_wrong_ratios_in_the_configmap_are_told_and_change_nothing() -> None:
    """Also if only one of them is wrong: all of before stay."""
    world = World()
    configmap = {"name": "cozystack", "namespace": "cozy-system"}
    async with world.running():
        await world.create("alpha", resourceQuotas={"cpu": 2})
        world.cluster.add(CONFIGMAPS, {"metadata": configmap, "data": {"cpu-allocation-ratio": "5"}})
        await world.settle()
        world.cluster.clear_writes()
        data = {"cpu-allocation-ratio": "2", "memory-allocation-ratio": "a lot"}
        await world.edit(CONFIGMAPS, "cozy-system", "cozystack", {"data": data})
        await world.settle()
        assert world.content(RESOURCEQUOTAS, ALPHA, "tenant-quota")["spec"]["hard"]["requests.cpu"] == "400m"
        assert world.conditions("root")["PlatformSettingsInvalid"] == ("True", "WrongValue")
        said = "ConfigMap cozy-system/cozystack is invalid: memory-allocation-ratio: must be a number from 1 to 1000"
        [found] = [
            each["message"]
            for each in world.tenant("root")["status"]["conditions"]
            if each["type"] == "PlatformSettingsInvalid"
        ]
        assert found == f"{said}; the previous settings stay in force"
        assert said in world.sources.describe()
        assert world.events.of("cozystack") == [("Warning", "InvalidSettings")]
        assert world.conditions("root")["Ready"] == ("True", "Reconciled")
        await world.edit(CONFIGMAPS, "cozy-system", "cozystack", {"data": {"memory-allocation-ratio": "2"}})
        await world.settle()
        assert world.content(RESOURCEQUOTAS, ALPHA, "tenant-quota")["spec"]["hard"]["requests.cpu"] == "1"
        assert "PlatformSettingsInvalid" not in world.conditions("root")
    assert world.events.of("cozystack")[-1] == ("Normal", "SettingsInForce")


@virtual
async def test_the_ratios_of_the_platform_divide_requests() -> None:
    world = World(settings={"resources": {"cpuAllocationRatio": 4}})
    async with world.running():
        await world.create("alpha", resourceQuotas={"cpu": 2})
        await world.settle()
        assert world.content(RESOURCEQUOTAS, ALPHA, "tenant-quota")["spec"]["hard"] == {
            "limits.cpu": "2",
            "requests.cpu": "500m",
        }
        world.configure(resources={"cpuAllocationRatio": 1})
        await world.settle()
        for name in ("tenant-quota", "tenant-pool"):
            hard = world.content(RESOURCEQUOTAS, ALPHA, name)["spec"]["hard"]
            assert hard == {"limits.cpu": "2", "requests.cpu": "2"}
