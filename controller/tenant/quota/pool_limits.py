"""Writes ResourceQuota `tenant-pool`: what a Tenant's namespace may use of the pools that it is a member of."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

from apiserver.meta.resource import Key
from controller.tenant.managed_objects import ContentWriter, ObjectDigests
from controller.tenant.planning.context import PlanningContext
from controller.tenant.quota.pool_division import PoolDivision, Pools, write_pool_quota
from controller.tenant.quota.stored_shares import StoredShares
from registry.cluster.interface import ClusterClient
from registry.tenant.pool_balances import PoolBalances
from registry.tenant.pool_quotas import PoolQuotas, Shares, UsesOfOtherPools
from registry.tenant.quota_pools import PoolMode, TenantPools, strict_limit
from registry.tenant.summary import TenantSummary


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
        self._division = PoolDivision(pools=pools, quotas=quotas, mode=mode)
        self._dividing = asyncio.Lock()
        self._stored = StoredShares(cluster, quotas)
        self.waiting: set[Key] = set()
        """The Tenants that are to receive what others have not given yet."""

    def planning(self, context: PlanningContext) -> PlannedPoolLimits:
        division = self._division
        quotas = UsesOfOtherPools(division.quotas)
        planned = PoolDivision(pools=TenantPools(context.tree), quotas=quotas, mode=division.mode)
        return PlannedPoolLimits(contents=context.contents, digests=self._digests, division=planned)

    @property
    def balances(self) -> PoolBalances:
        return self._division.balances

    def governing(self, tenant: TenantSummary) -> Pools:
        return self._division.pools.governing(tenant)

    def exceeded(self, tenant: TenantSummary, pools: Pools) -> Sequence[str]:
        """As PoolDivision.exceeded."""
        return self._division.exceeded(tenant, pools)

    async def ensure(self, tenant: TenantSummary, pools: Pools) -> None:
        """Write the object, or delete it without pools."""
        self.waiting.discard(tenant.key)
        amounts = self._division.amounts(tenant, pools)
        if not pools or self._division.mode() == "shared":
            await self._write(tenant, pools, amounts)
        else:
            await self._ensure_strict(tenant, pools, amounts)

    async def _ensure_strict(self, tenant: TenantSummary, pools: Pools, targets: Mapping[str, int]) -> None:
        shares = self._division.quotas.of(tenant.namespace)
        known = {key: share.hard for key, share in shares.items() if share.hard is not None}
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
        return strict_limit(target, tenant.namespace, shares, tuple(self._division.pools.limiting(tenant, key)))

    async def _write(self, tenant: TenantSummary, pools: Pools, amounts: Mapping[str, int]) -> None:
        await write_pool_quota(self._contents, self._digests, tenant, pools, amounts)


class PlannedPoolLimits:
    """Plans the amounts in the end. It reads no shares of others from the cluster, and follows none."""

    def __init__(self, *, contents: ContentWriter, digests: ObjectDigests, division: PoolDivision) -> None:
        self._contents = contents
        self._digests = digests
        self._division = division

    def governing(self, tenant: TenantSummary) -> Pools:
        return self._division.pools.governing(tenant)

    def exceeded(self, tenant: TenantSummary, pools: Pools) -> Sequence[str]:
        """As PoolDivision.exceeded."""
        return self._division.exceeded(tenant, pools)

    async def ensure(self, tenant: TenantSummary, pools: Pools) -> None:
        amounts = self._division.amounts(tenant, pools)
        await write_pool_quota(self._contents, self._digests, tenant, pools, amounts)
