"""Writes ResourceQuota `tenant-pool`: what a Tenant's namespace may use of the pools that it is a member of."""

from __future__ import annotations

from collections.abc import Sequence

from apiserver.meta.resource import Key
from controller.tenant.managed_objects import ContentWriter
from controller.tenant.planning.context import PlanningContext
from controller.tenant.quota.pool_division import PoolDigests, PoolDivision, Pools, write_pool_quota
from controller.tenant.quota.strict_limits import StrictLimits
from registry.tenant.pool_quotas import POOL_NAME, WITNESS_NAME, UsesOfOtherPools
from registry.tenant.quota_pools import TenantPools
from registry.tenant.summary import TenantSummary


class PoolLimits:
    """Methods raise the cluster's StatusError, and NotLeading."""

    def __init__(
        self, *, contents: ContentWriter, digests: PoolDigests, division: PoolDivision, strict: StrictLimits
    ) -> None:
        self._contents = contents
        self._digests = digests
        self._division = division
        self._strict = strict

    def planning(self, context: PlanningContext) -> PlannedPoolLimits:
        division = self._division
        quotas = UsesOfOtherPools(division.quotas)
        planned = PoolDivision(pools=TenantPools(context.tree), quotas=quotas, mode=division.mode)
        return PlannedPoolLimits(contents=context.contents, digests=self._digests, division=planned)

    @property
    def waiting(self) -> set[Key]:
        """The Tenants that are to receive what others have not given yet."""
        return self._strict.waiting

    def governing(self, tenant: TenantSummary) -> Pools:
        return self._division.pools.governing(tenant)

    def exceeded(self, tenant: TenantSummary, pools: Pools) -> Sequence[str]:
        """As PoolDivision.exceeded."""
        return self._division.exceeded(tenant, pools)

    async def ensure(self, tenant: TenantSummary, pools: Pools) -> None:
        """Write the object and its witness, or delete what is not needed."""
        self.waiting.discard(tenant.key)
        if pools and self._division.mode() == "strict":
            await self._strict.ensure(tenant, pools)
            return
        await self._strict.remove_witness(tenant.namespace)
        amounts = self._division.amounts(tenant, pools)
        await write_pool_quota(self._contents, self._digests[POOL_NAME], tenant, pools, amounts)


class PlannedPoolLimits:
    """Plans the amounts in the end. It reads no shares of others from the cluster, and follows none."""

    def __init__(self, *, contents: ContentWriter, digests: PoolDigests, division: PoolDivision) -> None:
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
        await write_pool_quota(self._contents, self._digests[POOL_NAME], tenant, pools, amounts)
        witnessed = pools if self._division.mode() == "strict" else {}
        await write_pool_quota(
            self._contents, self._digests[WITNESS_NAME], tenant, witnessed, amounts, name=WITNESS_NAME
        )
