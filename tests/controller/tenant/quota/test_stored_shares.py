from __future__ import annotations

import asyncio

from apiserver.meta.resource import Object
from controller.tenant.quota.stored_shares import StoredShares
from registry.cluster.interface import RESOURCEQUOTAS
from registry.tenant.pool_quotas import WITNESS_NAME, PoolQuotas
from registry.tenant.quota_keys import NANO
from tests.fake_cluster import FakeCluster
from tests.virtual_time import virtual

ALPHA = "tenant-alpha"


def pool_quota(hard: int, admitted: int, used: int = 0) -> Object:
    return {
        "metadata": {"name": "tenant-pool", "namespace": ALPHA},
        "spec": {"hard": {"pods": str(hard)}},
        "status": {"hard": {"pods": str(admitted)}, "used": {"pods": str(used)}},
    }


class Shares:
    """StoredShares of one namespace, which has a limit of 8 Pods of which 5 are in effect. `lists` counts requests, one
    for each of the two names."""

    def __init__(self) -> None:
        self.cluster, self.quotas, self.lists = FakeCluster(), PoolQuotas(), 0
        self.cluster.add(RESOURCEQUOTAS, pool_quota(8, 5))
        self.cluster.before = self._count
        self.stored = StoredShares(self.cluster, self.quotas, PoolQuotas(name=WITNESS_NAME))

    async def _count(self, verb: str, *_: object) -> None:
        self.lists += verb == "list"

    async def ceiling(self) -> int:
        return (await self.stored.read())[ALPHA]["pods"].ceiling // NANO

    def see(self, quota: Object) -> None:
        self.quotas.apply("MODIFIED", quota, 1)


@virtual
async def test_one_list_serves_the_reads_of_a_second() -> None:
    shares = Shares()
    assert await shares.ceiling() == await shares.ceiling() == 8
    assert shares.lists == 2
    await asyncio.sleep(2)
    await shares.ceiling()
    assert shares.lists == 4


@virtual
async def test_a_list_during_which_something_was_given_serves_one_read() -> None:
    """It may be older than what was given, and no further event would tell."""
    shares = Shares()

    async def give(verb: str, *_: object) -> None:
        shares.lists += 1
        shares.see(pool_quota(5, 5))

    shares.cluster.before = give
    await shares.ceiling()
    await shares.ceiling()
    assert shares.lists == 4


@virtual
async def test_a_limit_that_is_raised_counts_at_once() -> None:
    shares = Shares()
    await shares.ceiling()
    shares.stored.note(ALPHA, {"pods": 9 * NANO})
    assert (await shares.ceiling(), shares.lists) == (9, 2)


@virtual
async def test_a_limit_that_is_lowered_counts_as_it_was_until_the_cluster_is_read_again() -> None:
    """The quota controller may have put the limit before into effect since the list."""
    shares = Shares()
    await shares.ceiling()
    shares.stored.note(ALPHA, {"pods": 6 * NANO})
    shares.see(pool_quota(8, 8))
    shares.see(pool_quota(6, 8))
    assert (await shares.ceiling(), shares.lists) == (8, 2)


@virtual
async def test_the_cluster_is_read_again_once_something_was_given() -> None:
    shares = Shares()
    await shares.ceiling()
    shares.stored.note(ALPHA, {"pods": 6 * NANO})
    await shares.cluster.delete(RESOURCEQUOTAS, ALPHA, "tenant-pool")
    shares.cluster.add(RESOURCEQUOTAS, pool_quota(6, 6))
    shares.see(pool_quota(6, 6))
    assert (await shares.ceiling(), shares.lists) == (6, 4)


@virtual
async def test_the_greater_limit_of_the_two_quotas_of_a_namespace_counts() -> None:
    shares = Shares()
    witness = pool_quota(11, 9)
    shares.cluster.add(RESOURCEQUOTAS, {**witness, "metadata": {**witness["metadata"], "name": WITNESS_NAME}})
    assert await shares.ceiling() == 11
