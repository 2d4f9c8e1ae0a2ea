"""Admission and the division of pools together: whatever tenants declare, lower and remove, and whenever they use it,
all of them never use more than what is declared at the top. Limits take effect at once here, which a cluster only
approaches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import example, given, settings
from hypothesis import strategies as st

from admission.tenant.quota import validate_quota_change
from registry.tenant.pool_balances import PoolBalances
from registry.tenant.pool_quotas import POOL_NAME, PoolQuotas
from registry.tenant.quota_keys import NANO
from registry.tenant.quota_pools import TenantPools
from registry.tenant.summary import TenantSummary
from registry.tenant.tree import TenantTree
from tests.tenant_objects import root_summary, tenant_summary

TOP = 8
PLACES = (
    ("a", "tenant-root"),
    ("b", "tenant-root"),
    ("c", "tenant-a"),
    ("d", "tenant-a"),
    ("e", "tenant-a-c"),
    ("f", "tenant-a-c-e"),
)


class Cluster:
    """Tenants of which only the root has a quota at first, and the Pods in their namespaces."""

    def __init__(self) -> None:
        self.tenants = [root_summary(resourceQuotas={"pods": TOP}), *(tenant_summary(*each) for each in PLACES)]
        self._tree = TenantTree(self.tenants)
        self._quotas = PoolQuotas()
        self._used = dict.fromkeys((each.namespace for each in self.tenants), 0)

    @property
    def used(self) -> int:
        return sum(self._used.values())

    def declare(self, index: int, pods: int | None) -> None:
        old = self.tenants[index]
        new = replace(old, quotas={} if pods is None else {"pods": pods})
        if not validate_quota_change(self._tree, new, old, self._quotas.used):
            self.tenants[index] = new
            self._tree.put(new)
            # the members of pools may have changed
            self._quotas.forget_totals()

    def use(self, index: int, more: int) -> None:
        """Creates Pods, if the quota of the namespace admits them, or deletes some."""
        tenant = self.tenants[index]
        if more > 0 and more > self._left(tenant):
            return
        used = self._used[tenant.namespace] = max(0, self._used[tenant.namespace] + more)
        metadata = {"name": POOL_NAME, "namespace": tenant.namespace}
        self._quotas.apply("MODIFIED", {"metadata": metadata, "status": {"used": {"pods": str(used)}}}, 1)

    def _left(self, tenant: TenantSummary) -> int:
        pools = TenantPools(self._tree)
        pool = pools.governing(tenant)["pods"]
        capacity = PoolBalances(pools=pools, quotas=self._quotas).capacity(pool)
        return (capacity - self._quotas.used_by_all(pool)) // NANO


INDEXES = st.integers(1, len(PLACES))
DECLARATIONS = st.tuples(st.just("declare"), INDEXES, st.one_of(st.none(), st.integers(0, TOP)))
USES = st.tuples(st.just("use"), st.integers(0, len(PLACES)), st.integers(-TOP, TOP))


@settings(max_examples=300)
@example([("use", 1, 5), ("declare", 1, 0), ("use", 0, 4), ("declare", 1, None), ("use", 0, 4)])
@given(st.lists(st.one_of(DECLARATIONS, USES), max_size=30))
def test_all_tenants_together_never_use_more_than_what_is_declared_at_the_top(
    steps: Sequence[tuple[str, int, int | None]],
) -> None:
    cluster = Cluster()
    for verb, index, amount in steps:
        if verb == "declare":
            cluster.declare(index, amount)
        else:
            cluster.use(index, amount or 0)
        assert cluster.used <= TOP
