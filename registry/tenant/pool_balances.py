"""The balances of the pools of quota. An amount that was declared once and is in use is not free, although less is
declared now."""

from __future__ import annotations

from collections.abc import Sequence

from registry.tenant.pool_quotas import PoolUses
from registry.tenant.quota_pools import NOTHING, Claimant, Pool, Share, TenantPools


class PoolBalances:
    """Amounts are in billionths. Only the use that the cluster has counted is known: without it, what is declared
    counts.

    Sums are kept until `change`, which has to be called for each change of a share, or until pools or their members
    change.
    """

    def __init__(self, *, pools: TenantPools, quotas: PoolUses) -> None:
        self._pools = pools
        self._quotas = quotas
        self._generation = -1
        self._excesses: dict[tuple[str, str], int] = {}
        self._claimed: dict[tuple[str, str], int] = {}

    def capacity(self, pool: Pool) -> int:
        """The amount that the members of a pool may use together. Never negative."""
        return max(0, pool.rest - self._claimed_beyond(pool))

    def change(self, pool: Pool, before: Share, after: Share) -> Sequence[Pool]:
        """The share of a member has changed. Returns the pools whose capacity may have changed with it: those that the
        amount of this one is taken out of, if more is or was taken."""
        self._excesses.pop(_place(pool), None)
        if not (self._exceeds_by_limit(pool, before, after) or self._exceeds_by_use(pool, before, after)):
            return ()
        concerned = tuple(self._pools.enclosing(pool))
        for each in concerned:
            self._claimed.pop(_place(each), None)
            self._excesses.pop(_place(each), None)
        return concerned

    def _exceeds_by_limit(self, pool: Pool, before: Share, after: Share) -> bool:
        return before.hard != after.hard and max(before.hard or 0, after.hard or 0) > pool.declared.amount

    def _exceeds_by_use(self, pool: Pool, before: Share, after: Share) -> bool:
        if before.used == after.used:
            return False
        # the use of all others is the same
        return self._in_use(pool) + max(0, before.used - after.used) > pool.rest

    def _claimed_beyond(self, pool: Pool) -> int:
        """The amount that the claimants of a pool take beyond their declarations."""
        self._forget_former_pools()
        place = _place(pool)
        known = self._claimed.get(place)
        if known is None:
            known = self._claimed[place] = sum(self._excess_of(each, pool.key) for each in pool.claimants)
        return known

    def _excess(self, pool: Pool) -> int:
        """The amount that is used of the pool, or taken by its claimants, beyond the declaration of its owner; or that
        may be used, because the cluster does not let us write a lower limit."""
        self._forget_former_pools()
        place = _place(pool)
        known = self._excesses.get(place)
        if known is None:
            # a cycle of damaged data ends here
            self._excesses[place] = 0
            known = self._excesses[place] = self._computed_excess(pool)
        return known

    def _in_use(self, pool: Pool) -> int:
        """The use of the members, and the amount that the claimants take beyond their declarations."""
        return self._quotas.used_by_all(pool) + self._claimed_beyond(pool)

    def _computed_excess(self, pool: Pool) -> int:
        in_use = self._in_use(pool)
        written = max(self._quotas.of(each).get(pool.key, NOTHING).hard or 0 for each in pool.members)
        return max(0, in_use - pool.rest if in_use else 0, written - pool.declared.amount)

    def _forget_former_pools(self) -> None:
        if self._generation != self._quotas.generation:
            self._generation = self._quotas.generation
            self._excesses.clear()
            self._claimed.clear()

    def _excess_of(self, claimant: Claimant, key: str) -> int:
        pool = self._pools.of_claimant(claimant, key)
        if pool is not None:
            return self._excess(pool)
        share = self._quotas.of(claimant.namespace).get(key, NOTHING)
        return max(0, share.used - claimant.amount, (share.hard or 0) - claimant.amount)


def _place(pool: Pool) -> tuple[str, str]:
    return pool.owner.namespace, pool.key
