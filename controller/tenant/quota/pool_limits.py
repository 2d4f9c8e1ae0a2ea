"""Writes ResourceQuota `tenant-pool`: what a Tenant's namespace may use of the pools that it is a member of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from apiserver.cooperative import iterate_cooperatively
from apiserver.meta.resource import Key
from controller.tenant.managed_objects import ContentWriter
from controller.tenant.planning.context import PlanningContext
from controller.tenant.quota.pool_division import PoolDigests, PoolDivision, Pools, write_pool_quota
from controller.tenant.quota.strict_limits import StrictLimits
from registry.tenant.pool_quotas import POOL_NAME, WITNESS_NAME, UsesOfOtherPools
from registry.tenant.quota_pools import Pool, TenantPools
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
        return PlannedPoolLimits(
            contents=context.contents, digests=self._digests, division=planned, namespaces=context.namespaces
        )

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
        amounts = {key: self._division.shared_amount(tenant, pool) for key, pool in pools.items()}
        await write_pool_quota(self._contents, self._digests[POOL_NAME], tenant, pools, amounts)


class PlannedPoolLimits:
    """Plans the amounts in the end. It reads no shares of others from the cluster, and follows none."""

    def __init__(
        self, *, contents: ContentWriter, digests: PoolDigests, division: PoolDivision, namespaces: Set[str]
    ) -> None:
        """`namespaces` are those that amounts are planned for."""
        self._contents = contents
        self._digests = digests
        self._division = division
        self._namespaces = namespaces
        self._strict: dict[tuple[str, str], Mapping[str, int]] = {}

    def governing(self, tenant: TenantSummary) -> Pools:
        return self._division.pools.governing(tenant)

    def exceeded(self, tenant: TenantSummary, pools: Pools) -> Sequence[str]:
        """As PoolDivision.exceeded."""
        return self._division.exceeded(tenant, pools)

    async def ensure(self, tenant: TenantSummary, pools: Pools) -> None:
        is_strict = self._division.mode() == "strict"
        amount = self._strict_amount if is_strict else self._division.shared_amount
        amounts = {key: amount(tenant, pool) async for key, pool in iterate_cooperatively(pools.items())}
        await write_pool_quota(self._contents, self._digests[POOL_NAME], tenant, pools, amounts)
        witnessed = pools if is_strict else {}
        await write_pool_quota(
            self._contents, self._digests[WITNESS_NAME], tenant, witnessed, amounts, name=WITNESS_NAME
        )

    def _strict_amount(self, tenant: TenantSummary, pool: Pool) -> int:
        """A pool is divided once for the whole plan: it may have thousands of members."""
        place = pool.owner.namespace, pool.key
        if place not in self._strict:
            divided = self._division.strict_amounts(pool)
            self._strict[place] = {each: divided[each] for each in self._namespaces & divided.keys()}
        return self._strict[place][tenant.namespace]
