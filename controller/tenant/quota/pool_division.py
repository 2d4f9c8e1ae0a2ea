"""The amount that a Tenant's namespace may use of each pool that it is a member of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from apiserver.meta.resource import Object
from controller.tenant.managed_objects import ContentWriter, ObjectDigests
from controller.tenant.quota.rendering import render_quota
from registry.tenant.pool_balances import PoolBalances
from registry.tenant.pool_quotas import POOL_NAME, PoolUses
from registry.tenant.quota_keys import amount_text
from registry.tenant.quota_pools import NOTHING, Pool, PoolMode, TenantPools, shared_limit, strict_targets
from registry.tenant.summary import TenantSummary

Pools = Mapping[str, Pool]
PoolDigests = Mapping[str, ObjectDigests]
"""Of `tenant-pool` and `tenant-pool-witness`, by their names."""


class PoolDivision:
    """`mode` returns the current setting. Amounts are in billionths, by canonical key."""

    def __init__(self, *, pools: TenantPools, quotas: PoolUses, mode: Callable[[], PoolMode]) -> None:
        self.pools = pools
        self.quotas = quotas
        self.mode = mode
        self.balances = PoolBalances(pools=pools, quotas=quotas)

    def exceeded(self, tenant: TenantSummary, pools: Pools) -> Sequence[str]:
        """The pools of the Tenant itself whose members use more than the capacity, such as `25 of 10 limits.cpu`."""
        own = [pool for _, pool in sorted(pools.items()) if pool.owner.key == tenant.key]
        balances = [(pool, self.quotas.used_by_all(pool), self.balances.capacity(pool)) for pool in own]
        return [_usage(pool, used, capacity) for pool, used, capacity in balances if used > capacity]

    def strict_amounts(self, pool: Pool) -> Mapping[str, int]:
        """The amounts of all members of a strict pool in the end: some may have to wait until others have given
        theirs."""
        return strict_targets(pool.key, self.balances.capacity(pool), self.quotas.shares(pool))

    def shared_amount(self, tenant: TenantSummary, pool: Pool) -> int:
        used = self.quotas.of(tenant.namespace).get(pool.key, NOTHING).used
        return shared_limit(self.balances.capacity(pool), used, self.quotas.used_by_all(pool))


async def write_pool_quota(
    contents: ContentWriter,
    digests: ObjectDigests,
    tenant: TenantSummary,
    pools: Pools,
    amounts: Mapping[str, int],
    *,
    name: str = POOL_NAME,
) -> None:
    """Writes the ResourceQuota `name`, or deletes that of a Tenant without pools. Raises the cluster's StatusError,
    and NotLeading."""
    if not pools:
        await contents.remove(digests, tenant.namespace, name)
        return
    hard = {key: amount_text(amount, pools[key].declared.text) for key, amount in amounts.items()}

    def render(current: Object | None) -> Object:
        return render_quota(tenant.namespace, name, hard, current)

    await contents.ensure(digests, render, None)


def _usage(pool: Pool, used: int, capacity: int) -> str:
    text = pool.declared.text
    origin = pool.declared.origin(pool.key)
    return f"{amount_text(used, text)} of {amount_text(capacity, text)} {pool.key}{origin}"
