"""The ResourceQuotas `tenant-pool` and `tenant-pool-witness` of all namespaces, as far as quota pools depend on them:
limits and use."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from apiserver.cooperative import iterate_cooperatively
from apiserver.meta.resource import Key, Object
from registry.cluster.event_handlers import NoOpEventHandler, ProjectionStore
from registry.names import POOL_QUOTA_NAME
from registry.tenant.quota_amounts import amounts
from registry.tenant.quota_pools import NOTHING, Pool, Share

POOL_NAME = POOL_QUOTA_NAME
WITNESS_NAME = "tenant-pool-witness"
"""Has the limits of `tenant-pool`, in strict pools only. The two are never changed at one time: what the quota
controller forgets while it counts for one of them, the other one remembers."""

Shares = Mapping[str, Share]
"""The shares of a namespace by canonical key."""

ChangeListener = Callable[[str, Shares, Shares], None]
"""Called with a namespace, and its shares before and after a change."""

_NO_SHARES: Shares = {}


def shares_of(quota: Object) -> Shares:
    """The limits and the use that a ResourceQuota has. An amount that is greater than a Tenant can declare, as the use
    of a few Pods together can be, or that cannot be read, counts as the most that one can declare: then nothing of it
    is free, however large a pool is."""
    status = quota.get("status") or {}
    hard, admitted, used = amounts(quota.get("spec")), amounts(status), amounts(status, "used")
    return {key: Share(used.get(key, 0), hard.get(key), admitted.get(key)) for key in {*hard, *admitted, *used}}


def joined(first: Shares, second: Shares) -> Shares:
    """Of each key, the greater amounts of two ResourceQuotas of one namespace."""
    return {key: first.get(key, NOTHING).joined(second.get(key, NOTHING)) for key in {*first, *second}}


class _PoolQuota(NamedTuple):
    shares: Shares
    created: str


class PoolQuotas(ProjectionStore[_PoolQuota]):
    """A handler of the informer of the ResourceQuotas `name`. Their use is what the cluster has counted; without a
    quota controller, none.

    The namespaces for which `keeps` is true are being deleted, perhaps before everything in them: what was in use when
    their ResourceQuota went stays in use until `forget`.
    """

    def __init__(self, *, name: str = POOL_NAME, keeps: Callable[[str], bool] = lambda namespace: False) -> None:
        super().__init__(project=self._pool_quota, on_change=self._changed)
        self._name = name
        self._keeps = keeps
        self._kept: set[str] = set()
        self._listeners: list[ChangeListener] = []
        self._totals: dict[tuple[str, str], int] = {}
        self.generation = 0
        """Is greater after each `forget_totals`."""

    def subscribe(self, listener: ChangeListener) -> None:
        self._listeners.append(listener)

    def of(self, namespace: str) -> Shares:
        known = self.get(Key(namespace, self._name))
        return known.shares if known is not None else _NO_SHARES

    def created(self, namespace: str) -> str:
        """The time of creation of the namespace's ResourceQuota, empty if there is none."""
        known = self.get(Key(namespace, self._name))
        return known.created if known is not None else ""

    def used(self, namespace: str) -> Mapping[str, int]:
        """The usage of the namespace, in billionths by canonical key."""
        return {key: share.used for key, share in self.of(namespace).items() if share.used}

    def kept(self) -> Mapping[str, Shares]:
        """The amounts still in use in namespaces whose ResourceQuota is gone."""
        return {namespace: self.of(namespace) for namespace in self._kept}

    def forget(self, namespace: str) -> None:
        """Has to be called when a namespace is gone."""
        if namespace in self._kept:
            self._kept.discard(namespace)
            super()._sync(Key(namespace, self._name), None)

    def shares(self, pool: Pool) -> Mapping[str, Share]:
        """The shares of all members of a pool."""
        return {namespace: self.of(namespace).get(pool.key, NOTHING) for namespace in pool.members}

    def used_by_all(self, pool: Pool) -> int:
        """The total usage of the members of a pool."""
        known = self._totals.get((pool.owner.namespace, pool.key))
        if known is None:
            known = used_by(self, pool)
            self._totals[pool.owner.namespace, pool.key] = known
        return known

    def forget_totals(self) -> None:
        """Has to be called when the members of pools change."""
        self._totals.clear()
        self.generation += 1

    def _sync(self, key: Key, obj: Object | None) -> None:
        known = self.get(key)
        if known is None or obj is not None or not self._keeps(key.namespace):
            if key.name == self._name:
                self._kept.discard(key.namespace)
            super()._sync(key, obj)
            return
        self._kept.add(key.namespace)
        self._values_by_key[key] = _in_use(known)
        self._changed(key, known, self._values_by_key[key])

    def _pool_quota(self, quota: Object) -> _PoolQuota | None:
        metadata = quota["metadata"]
        if metadata["name"] != self._name:
            return None
        return _PoolQuota(shares_of(quota), str(metadata.get("creationTimestamp") or ""))

    def _changed(self, key: Key, before: _PoolQuota | None, after: _PoolQuota | None) -> None:
        self._totals.clear()
        for listener in self._listeners:
            listener(key.namespace, _shares(before), _shares(after))


class PoolUses(Protocol):
    """The amounts that namespaces may use of pools, and use."""

    @property
    def generation(self) -> int:
        """Changes with the members of pools."""
        ...

    def of(self, namespace: str) -> Shares: ...

    def shares(self, pool: Pool) -> Mapping[str, Share]:
        """The shares of all members of a pool."""
        ...

    def used_by_all(self, pool: Pool) -> int:
        """The total usage of the members of a pool."""
        ...


def used_by(quotas: PoolUses, pool: Pool) -> int:
    """The total usage of the members of a pool, added up."""
    key, total = pool.key, 0
    for namespace in pool.members:
        share = quotas.of(namespace).get(key)
        if share is not None:
            total += share.used
    return total


class UsesOfOtherPools(PoolUses):
    """The known shares for the pools of one plan, which are not those of the tree: their totals must not be kept with
    those of the tree, which have the same owners and keys. The totals are those of the first look."""

    def __init__(self, quotas: PoolUses) -> None:
        self._quotas = quotas
        self._totals: dict[tuple[str, str], int] = {}

    @property
    def generation(self) -> int:
        return self._quotas.generation

    def of(self, namespace: str) -> Shares:
        return self._quotas.of(namespace)

    def shares(self, pool: Pool) -> Mapping[str, Share]:
        return self._quotas.shares(pool)

    def used_by_all(self, pool: Pool) -> int:
        place = pool.owner.namespace, pool.key
        if place not in self._totals:
            self._totals[place] = used_by(self._quotas, pool)
        return self._totals[place]


class KeptUntilGone(NoOpEventHandler):
    """A handler of the informer of Namespaces: what was in use in one is forgotten when it is gone."""

    def __init__(self, quotas: PoolQuotas) -> None:
        self._quotas = quotas

    async def replace(self, items: Sequence[Object], rv: int) -> None:
        kept = self._quotas.kept()
        if not kept:
            return
        existing = {obj["metadata"]["name"] async for obj in iterate_cooperatively(items)}
        for namespace in kept.keys() - existing:
            self._quotas.forget(namespace)

    def apply(self, type: str, obj: Object, rv: int) -> None:
        if type == "DELETED":
            self._quotas.forget(obj["metadata"]["name"])


def _in_use(quota: _PoolQuota) -> _PoolQuota:
    """Nothing more can be created in a namespace that is being deleted."""
    return quota._replace(shares={key: Share(share.used) for key, share in quota.shares.items() if share.used})


def _shares(quota: _PoolQuota | None) -> Shares:
    return quota.shares if quota is not None else _NO_SHARES
