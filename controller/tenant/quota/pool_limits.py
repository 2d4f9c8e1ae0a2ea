"""Writes ResourceQuota `tenant-pool`: what a Tenant's namespace may use of the pools that it is a member of."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

from apiserver.meta.resource import Key
from controller.runtime.conditions import Finding
from controller.tenant.managed_objects import ContentWriter, ObjectDigests
from controller.tenant.quota.rendering import render_quota
from controller.tenant.quota.stored_shares import StoredShares
from registry.cluster.interface import ClusterClient
from registry.tenant.pool_balances import PoolBalances
from registry.tenant.pool_quotas import POOL_NAME, PoolQuotas, Shares
from registry.tenant.quota_keys import amount_text
from registry.tenant.quota_pools import (
    NOTHING,
    Pool,
    PoolMode,
    TenantPools,
    shared_limit,
    strict_limit,
    strict_targets,
)
from registry.tenant.summary import TenantSummary

Pools = Mapping[str, Pool]


class PoolLimits:
    """`mode` returns the current setting. Methods raise the cluster's StatusError, and NotLeading.

    In a strict pool, the limits of one namespace at a time are written, after those of all others and their use have
    been read from the cluster. A limit that was lowered counts as it was until the quota controller has seen it.
    """

    def __init__(
        self,
        *,
        contents: ContentWriter,
        digests: ObjectDigests,
        pools: TenantPools,
        quotas: PoolQuotas,
        cluster: ClusterClient,
        mode: Callable[[], PoolMode],
    ) -> None:
        self._contents = contents
        self._digests = digests
        self._pools = pools
        self._quotas = quotas
        self._mode = mode
        self._dividing = asyncio.Lock()
        self._stored = StoredShares(cluster, quotas)
        self.balances = PoolBalances(pools=pools, quotas=quotas)
        self.waiting: set[Key] = set()
        """The Tenants that are to receive what others have not given yet."""

    def governing(self, tenant: TenantSummary) -> Pools:
        return self._pools.governing(tenant)

    def exceeded(self, tenant: TenantSummary, pools: Pools) -> Sequence[str]:
        """The pools of the Tenant itself whose members use more than the capacity, such as `25 of 10 limits.cpu`."""
        own = [pool for _, pool in sorted(pools.items()) if pool.owner.key == tenant.key]
        balances = [(pool, self._quotas.used_by_all(pool), self.balances.capacity(pool)) for pool in own]
        return [_usage(pool, used, capacity) for pool, used, capacity in balances if used > capacity]

    async def ensure(self, tenant: TenantSummary, pools: Pools) -> Sequence[Finding]:
        """The findings are always empty: no chart has this object."""
        self.waiting.discard(tenant.key)
        if not pools:
            await self._contents.remove(self._digests, tenant.namespace, POOL_NAME)
        elif self._mode() == "shared":
            await self._write(tenant, pools, {key: self._shared(tenant, pool) for key, pool in pools.items()})
        else:
            await self._ensure_strict(tenant, pools)
        return ()

    def _shared(self, tenant: TenantSummary, pool: Pool) -> int:
        used = self._quotas.of(tenant.namespace).get(pool.key, NOTHING).used
        return shared_limit(self.balances.capacity(pool), used, self._quotas.used_by_all(pool))

    async def _ensure_strict(self, tenant: TenantSummary, pools: Pools) -> None:
        targets = {
            key: strict_targets(key, self.balances.capacity(pool), self._quotas.shares(pool))[tenant.namespace]
            for key, pool in pools.items()
        }
        known = {key: share.hard for key, share in self._quotas.of(tenant.namespace).items() if share.hard is not None}
        if known == targets:
            return
        # before the read, because others may give something after it
        self.waiting.add(tenant.key)
        # what is known may be late, so that even a lower limit could be more than the stored one
        async with self._dividing:
            current = await self._stored.read()
            limits = {key: self._allowed(tenant, key, target, current) for key, target in targets.items()}
            self._stored.note(tenant.namespace, limits)
            await self._write(tenant, pools, limits)
        if limits == targets:
            self.waiting.discard(tenant.key)
        else:
            self.waiting.add(tenant.key)

    def _allowed(self, tenant: TenantSummary, key: str, target: int, current: Mapping[str, Shares]) -> int:
        shares = {namespace: found[key] for namespace, found in current.items() if key in found}
        return strict_limit(target, tenant.namespace, shares, tuple(self._pools.limiting(tenant, key)))

    async def _write(self, tenant: TenantSummary, pools: Pools, amounts: Mapping[str, int]) -> None:
        hard = {key: amount_text(amount, pools[key].declared.text) for key, amount in amounts.items()}
        await self._contents.ensure(
            self._digests, lambda current: render_quota(tenant.namespace, POOL_NAME, hard, current), None
        )


def _usage(pool: Pool, used: int, capacity: int) -> str:
    text = pool.declared.text
    origin = pool.declared.origin(pool.key)
    return f"{amount_text(used, text)} of {amount_text(capacity, text)} {pool.key}{origin}"
