"""In a strict pool, no more Pods are admitted than it has, although the quota controller forgets what was just admitted
when limits change."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.controller.tenant.quota.forgetful_kubernetes import ForgetfulKubernetes
from tests.controller.tenant.tenant_world import World
from tests.fake_cluster import FakeCluster
from tests.virtual_time import virtual

ALPHA = "tenant-alpha"
NAMESPACES = (ALPHA, f"{ALPHA}-beta", f"{ALPHA}-gamma", f"{ALPHA}-beta-deep")
CAPACITY, STEPS, SEEDS = 16, 250, 6
STRICT = {"quotas": {"pool": "strict"}}


class Pool:
    """A pool of four namespaces. `leader` is the process that divides it."""

    def __init__(self, chance: random.Random) -> None:
        self.cluster = FakeCluster()
        self.kubernetes = ForgetfulKubernetes(self.cluster, chance)
        self.leader = World(self.cluster, settings=STRICT)

    async def create(self) -> None:
        await self.leader.create("alpha", resourceQuotas={"pods": CAPACITY})
        for name, parent in (("beta", ALPHA), ("gamma", ALPHA), ("deep", f"{ALPHA}-beta")):
            await self.leader.create(name, parent)
        await self.settle()

    async def settle(self) -> None:
        """All that was admitted is stored and counted, and all limits are in effect."""
        for _ in range(12):
            self.kubernetes.store_all()
            for each in self.kubernetes.namespaces:
                await self.kubernetes.count_changed(each)
            await asyncio.sleep(1.5)

    async def use_up(self, namespace: str) -> None:
        """The rest goes to the namespace that needs it."""
        await self.settle()
        # a Pod that one quota refused stays counted in another one until then
        await self.kubernetes.count_all()
        for _ in range(CAPACITY):
            while await self.kubernetes.create_pod(namespace):
                assert self.admitted() <= CAPACITY
            await self.settle()
        # less than one Pod for each namespace is not moved
        assert self.admitted() > CAPACITY - len(NAMESPACES)
        for each in NAMESPACES:
            await self.kubernetes.create_pod(each)
        assert self.admitted() == CAPACITY

    def admitted(self) -> int:
        return sum(self.kubernetes.admitted.values())

    @asynccontextmanager
    async def clients(self, favourite: str, chance: random.Random) -> AsyncIterator[None]:
        """Clients that create Pods all the time, most of them in one namespace."""

        async def create() -> None:
            while True:
                await self.kubernetes.create_pod(favourite if chance.random() < 0.7 else chance.choice(NAMESPACES))
                await asyncio.sleep(chance.random() * 0.6)

        tasks = [asyncio.create_task(create()) for _ in range(4)]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    async def run(self, chance: random.Random, steps: int) -> None:
        """Kubernetes goes on in some namespace, again and again."""
        for _ in range(steps):
            namespace = chance.choice(NAMESPACES)
            if chance.random() < 0.5:
                self.kubernetes.store_some(namespace)
            else:
                await self.kubernetes.count_changed(namespace)
            await asyncio.sleep(chance.choice([0.0, 0.05, 0.3]))
            assert self.admitted() <= CAPACITY, self.kubernetes.admitted


@pytest.mark.parametrize("seed", range(SEEDS))
@virtual
async def test_no_more_is_admitted_than_the_pool_has_although_kubernetes_forgets(seed: int) -> None:
    chance = random.Random(seed)
    pool = Pool(chance)
    favourite = chance.choice(NAMESPACES)
    async with pool.leader.running():
        await pool.create()
        async with pool.clients(favourite, chance):
            await pool.run(chance, STEPS)
        await pool.use_up(favourite)


@pytest.mark.parametrize("seed", range(SEEDS))
@virtual
async def test_no_more_is_admitted_whenever_the_leader_is_killed(seed: int) -> None:
    """The leader ends at any step, with whatever it was about to write, and the next one goes on."""
    chance = random.Random(seed)
    pool = Pool(chance)
    async with pool.leader.running():
        await pool.create()
    favourite = chance.choice(NAMESPACES)
    async with pool.clients(favourite, chance):
        for _ in range(4):
            pool.leader = World(pool.cluster, settings=STRICT)
            await _run_and_kill(pool, chance)
    pool.leader = World(pool.cluster, settings=STRICT)
    async with pool.leader.running():
        await pool.use_up(favourite)


async def _run_and_kill(pool: Pool, chance: random.Random) -> None:
    """The leader never gets to the end of `running`, which would let everything settle."""

    async def lead() -> None:
        async with pool.leader.running():
            await asyncio.Event().wait()

    task = asyncio.create_task(lead())
    await pool.run(chance, chance.randrange(STEPS))
    task.cancel()
    await asyncio.wait([task])
