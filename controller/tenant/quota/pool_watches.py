"""Event handlers that enqueue the Tenants whose part of a quota pool may have changed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping

from apiserver.meta.resource import Key
from apiserver.storage.event_history import CacheEvent
from controller.runtime.workqueue import Enqueue
from registry.tenant.pool_balances import PoolBalances
from registry.tenant.pool_quotas import PoolQuotas, Shares
from registry.tenant.quota_pools import NOTHING, Pool, PoolMode, Share, TenantPools
from registry.tenant.summary import TenantSummary
from registry.tenant.tree import TenantTree

Quotas = Mapping[str, str | int]


class PoolTreeHandler:
    """A listener of the Tenants' watch cache. It must be subscribed after the tree: when quotas change, or who has a
    part of them, it updates the pools and enqueues their members, once for all events that arrive together."""

    def __init__(
        self,
        *,
        tree: TenantTree,
        pools: TenantPools,
        quotas: PoolQuotas,
        mode: Callable[[], PoolMode],
        enqueue: Enqueue,
    ) -> None:
        self._tree = tree
        self._pools = pools
        self._quotas = quotas
        self._mode = mode
        self._enqueue = enqueue
        self._known: dict[Key, tuple[str, Quotas]] = {}
        self._changed: set[Key] = set()

    def on_event(self, event: CacheEvent) -> None:
        key = event.object.key
        tenant = self._tree.get(key)
        before = self._known.pop(key, None)
        after = (tenant.namespace, tenant.quotas) if tenant is not None else None
        if after is not None:
            self._known[key] = after
        if before == after:
            return
        has_quotas = any(each is not None and each[1] for each in (before, after))
        is_leaf = tenant is not None and not self._tree.children(tenant.namespace)
        if tenant is not None and before is None and not has_quotas and is_leaf:
            self._pools.add_member(tenant)
            self._quotas.forget_totals()
        else:
            self.forget()
        # in a shared pool, a member that uses nothing changes nothing for others
        if has_quotas or self._mode() == "strict":
            self._enqueue_soon(key)

    def forget(self) -> None:
        """Has to be called when the ratios change."""
        self._pools.forget()
        self._quotas.forget_totals()

    def _enqueue_soon(self, key: Key) -> None:
        if not self._changed:
            asyncio.get_running_loop().call_soon(self._enqueue_changed)
        self._changed.add(key)

    def _enqueue_changed(self) -> None:
        changed, self._changed = self._changed, set()
        tops = (self._top(key) for key in changed)
        for top in {each.key: each for each in tops if each is not None}.values():
            for tenant in (top, *self._tree.descendants(top)):
                self._enqueue(tenant.key)

    def _top(self, key: Key) -> TenantSummary | None:
        """The farthest of the Tenant and its ancestors that declares a quota, or else the Tenant; None for one that is
        gone and shared no quota."""
        top = self._tree.get(key)
        start = top or self._tree.by_namespace(key.namespace)
        for each in (start, *self._tree.ancestors(start)) if start is not None else ():
            top = each if each.quotas else top
        return top


class PoolUseHandler:
    """A listener of PoolQuotas: a change of the use, and in strict pools of the limits, concerns all members of the
    namespace's pools. If that is more than what is declared, it also concerns the pools that this is taken out of."""

    def __init__(
        self,
        *,
        tree: TenantTree,
        pools: TenantPools,
        balances: PoolBalances,
        mode: Callable[[], PoolMode],
        waiting: set[Key],
        enqueue: Enqueue,
    ) -> None:
        self._tree = tree
        self._pools = pools
        self._balances = balances
        self._mode = mode
        self._waiting = waiting
        self._enqueue = enqueue

    def on_change(self, namespace: str, before: Shares, after: Shares) -> None:
        tenant = self._tree.by_namespace(namespace)
        if self._mode() == "strict":
            self._enqueue_waiting()
        if tenant is None:
            return
        for member in self._concerned(tenant, before, after):
            owner = self._tree.by_namespace(member)
            if owner is not None:
                self._enqueue(owner.key)

    def on_witness_change(self, namespace: str, before: Shares, after: Shares) -> None:
        """A listener of the PoolQuotas of the witnesses."""
        self._enqueue_waiting()
        tenant = self._tree.by_namespace(namespace)
        if tenant is not None:
            self._enqueue(tenant.key)

    def _enqueue_waiting(self) -> None:
        while self._waiting:
            self._enqueue(self._waiting.pop())

    def _concerned(self, tenant: TenantSummary, before: Shares, after: Shares) -> Iterable[str]:
        found: dict[str, None] = {}
        is_strict = self._mode() == "strict"
        for key, pool in self._pools.governing(tenant).items():
            shares = before.get(key, NOTHING), after.get(key, NOTHING)
            if is_strict or self._changes_shared(pool, *shares):
                found.update(dict.fromkeys(pool.members))
            for each in self._balances.change(pool, *shares):
                found.update(dict.fromkeys(each.members))
        return found

    def _changes_shared(self, pool: Pool, before: Share, after: Share) -> bool:
        """The only member of a pool may use all of it, whatever it uses, unless that is more."""
        if before.used == after.used:
            return False
        return len(pool.members) > 1 or max(before.used, after.used) > self._balances.capacity(pool)
