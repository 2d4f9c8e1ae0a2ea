"""The step of a Tenant's quotas: ResourceQuota `tenant-quota` has exactly the declared keys (R-313, PEER-13), and
`tenant-pool` the namespace's part of each pool that it is a member of.

With a quota, also LimitRange `tenant-range-limits`: without its defaults, containers that declare no requests and
limits could not start.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Key
from controller.runtime.conditions import Finding, join_limited
from controller.tenant.helm_ownership import tenant_release
from controller.tenant.managed_objects import ContentWriter, ObjectDigests
from controller.tenant.observe import ObservedTenant
from controller.tenant.planning.context import PlanningContext
from controller.tenant.quota.first_limits import NOT_ENFORCED, QUOTA_READY, FirstLimits
from controller.tenant.quota.pool_division import Pools
from controller.tenant.quota.pool_limits import PlannedPoolLimits, PoolLimits
from controller.tenant.quota.rendering import (
    LIMIT_RANGE_NAME,
    QUOTA_NAME,
    ContainerLimits,
    hard_limits,
    render_limit_range,
    render_quota,
)
from registry.tenant.quota_keys import AllocationRatios, QuotaLimit, rendered_limits
from registry.tenant.spec import unreadable_quotas
from registry.tenant.summary import TenantSummary

_ONLY_STORED = Finding(
    QUOTA_READY,
    "False",
    NOT_ENFORCED,
    "this cluster enforces no ResourceQuotas: the declared limits bind what child tenants may declare, and are stored "
    "in ResourceQuotas without an effect",
)


class QuotaStep:
    """Findings: QuotaReady while a quantity is invalid, a pool is exceeded or the limits are not in effect, and
    ChartConflict. It must be the last step: a quota may count objects that the other steps create."""

    name = "quota"
    condition = QUOTA_READY

    def __init__(
        self,
        *,
        contents: ContentWriter,
        quotas: ObjectDigests,
        ranges: ObjectDigests,
        pools: PoolLimits | PlannedPoolLimits,
        first_limits: FirstLimits | None,
        limits: Callable[[], ContainerLimits],
        ratios: Callable[[], AllocationRatios],
    ) -> None:
        """`first_limits` is None if the cluster is known to enforce no ResourceQuotas."""
        self._contents = contents
        self._quotas = quotas
        self._ranges = ranges
        self._pools = pools
        self._first_limits = first_limits
        self._limits = limits
        self._ratios = ratios

    def planning(self, context: PlanningContext) -> QuotaStep:
        """Does not look at the limits that are in effect."""
        pools = self._pools
        return QuotaStep(
            contents=context.contents,
            quotas=self._quotas,
            ranges=self._ranges,
            pools=pools.planning(context) if isinstance(pools, PoolLimits) else pools,
            first_limits=None,
            limits=self._limits,
            ratios=self._ratios,
        )

    async def run(self, observed: ObservedTenant) -> Sequence[Finding]:
        tenant = observed.tenant
        declared = rendered_limits(tenant.quotas, self._ratios())
        pools = self._pools.governing(tenant)
        invalid = [*unreadable_quotas(observed.release), *declared.problems]
        problems = _problems(invalid, self._pools.exceeded(tenant, pools))
        conflicts = await self._write(tenant, declared.valid, pools)
        # the chart's ResourceQuota may have less than what is declared
        left = [each for each in conflicts if each.type == QUOTA_READY]
        others = [each for each in conflicts if each.type != QUOTA_READY]
        return [*(problems or left or self._without_effect(observed)), *others]

    async def _write(
        self, tenant: TenantSummary, declared: Mapping[str, QuotaLimit], pools: Pools
    ) -> Sequence[Finding]:
        """Each object is written, also if the cluster rejects another one: then nobody has more than the rest."""
        # of a Tenant without quotas, the chart has no such objects
        release = tenant_release(tenant) if declared else None
        conflicts: list[Finding] = []
        rejected: list[StatusError] = []
        writes: Sequence[Callable[[], Awaitable[Sequence[Finding]]]] = (
            lambda: self._write_limit_range(tenant, release, wanted=bool(pools)),
            lambda: self._write_quota(tenant, declared, release),
            lambda: self._write_pools(tenant, pools),
        )
        for write in writes:
            try:
                conflicts += await write()
            except StatusError as e:
                rejected.append(e)
        if rejected:
            raise rejected[0]
        return conflicts

    async def _write_pools(self, tenant: TenantSummary, pools: Pools) -> Sequence[Finding]:
        """The findings are always empty: no chart has this object."""
        await self._pools.ensure(tenant, pools)
        return ()

    async def _write_limit_range(
        self, tenant: TenantSummary, release: Key | None, *, wanted: bool
    ) -> Sequence[Finding]:
        if not wanted:
            return await self._contents.remove(self._ranges, tenant.namespace, LIMIT_RANGE_NAME)
        limits = self._limits()
        return await self._contents.ensure(
            self._ranges, lambda current: render_limit_range(tenant, limits, current), release
        )

    async def _write_quota(
        self, tenant: TenantSummary, declared: Mapping[str, QuotaLimit], release: Key | None
    ) -> Sequence[Finding]:
        if not declared:
            return await self._contents.remove(self._quotas, tenant.namespace, QUOTA_NAME)
        hard = hard_limits(declared)
        return await self._contents.ensure(
            self._quotas, lambda current: render_quota(tenant.namespace, QUOTA_NAME, hard, current), release
        )

    def _without_effect(self, observed: ObservedTenant) -> Sequence[Finding]:
        """Why declared limits have no effect now, although nothing is wrong with them."""
        if self._first_limits is None:
            return [_ONLY_STORED] if observed.tenant.quotas else []
        pending = self._first_limits.finding(observed)
        return [pending] if pending is not None else []


def _problems(invalid: Sequence[str], exceeded: Sequence[str]) -> list[Finding]:
    messages = [f"not limited until they are corrected: {join_limited(invalid)}"] if invalid else []
    if exceeded:
        messages.append(
            f"more is used than what is declared and left to the tenant and to child tenants without quotas of their "
            f"own: {join_limited(exceeded)}; nothing more is admitted until less is used or more is declared"
        )
    if not messages:
        return []
    return [Finding(QUOTA_READY, "False", "InvalidQuantity" if invalid else "PoolExceeded", "; ".join(messages))]
