"""Pools of quota: the amount of one key that a Tenant declares, and that it shares with those of its descendants that
declare none. The amounts that other descendants declare are no longer part of it. Pure.

Kubernetes limits each namespace on its own, so that the amount of a pool has to be divided among its namespaces:

* shared: a namespace may use what it uses, and all that is left. The namespaces of a pool that use at one instant can
  use what is left once each, until the division follows.
* strict: what is left is divided as well, in equal parts, so that the sum is never more than the capacity. A namespace
  may be refused what others have left.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from registry.quota_names import is_whole
from registry.tenant.quota_keys import NANO, QuotaLimit, comparable_limits
from registry.tenant.summary import TenantSummary
from registry.tenant.tree import BaseTenantTree

PoolMode = Literal["shared", "strict"]
"""The setting `quotas.pool`."""


class Claimant(NamedTuple):
    """The namespace of a Tenant that declares an amount of its own, in billionths, and takes it out of a pool."""

    namespace: str
    amount: int


@dataclass(frozen=True, slots=True)
class Pool:
    """The pool of one key: what the owner declares, shared by the `members`, namespaces, that of the owner first. The
    `claimants` are the nearest descendants that declare an amount of their own."""

    owner: TenantSummary
    key: str
    declared: QuotaLimit
    rest: int
    """The amount that the claimants leave; negative if they declare too much."""
    members: Sequence[str]
    claimants: Sequence[Claimant] = ()

    @property
    def capacity(self) -> int:
        """The amount that the members share, if no claimant uses more than it declares. Never negative."""
        return max(0, self.rest)


def pools_of(tree: BaseTenantTree, owner: TenantSummary) -> Mapping[str, Pool]:
    """The pools of the keys that the Tenant declares, by canonical key."""
    declared = comparable_limits(owner.quotas, tree.ratios)
    claimants: dict[str, list[Claimant]] = {key: [] for key in declared}
    members: dict[str, list[str]] = {key: [owner.namespace] for key in declared}
    visited = {owner.key}
    pending = [(child, set(declared)) for child in reversed(tree.children(owner.namespace))] if declared else []
    while pending:
        each, shared = pending.pop()
        if each.key in visited or not shared:
            continue
        visited.add(each.key)
        own = comparable_limits(each.quotas, tree.ratios)
        for key in shared & own.keys():
            claimants[key].append(Claimant(each.namespace, own[key].amount))
        rest = shared - own.keys()
        for key in rest:
            members[key].append(each.namespace)
        pending.extend((child, rest) for child in reversed(tree.children(each.namespace)))
    return {
        key: Pool(
            owner,
            key,
            limit,
            limit.amount - sum(each.amount for each in claimants[key]),
            tuple(members[key]),
            tuple(claimants[key]),
        )
        for key, limit in declared.items()
    }


class TenantPools:
    """The pools of a tree. They are computed on demand, and kept until `forget`, which has to be called after each
    change of quotas, of parents or of the ratios."""

    def __init__(self, tree: BaseTenantTree) -> None:
        self._tree = tree
        self._pools: dict[str, Mapping[str, Pool]] = {}

    def forget(self) -> None:
        self._pools.clear()

    def add_member(self, tenant: TenantSummary) -> None:
        """Adds a new Tenant without quotas and without children."""
        taken: set[str] = set()
        for each in self._tree.ancestors(tenant):
            known = self._pools.get(each.namespace)
            if known is not None:
                self._pools[each.namespace] = {
                    key: pool if key in taken else replace(pool, members=(*pool.members, tenant.namespace))
                    for key, pool in known.items()
                }
            taken |= comparable_limits(each.quotas, self._tree.ratios).keys()

    def governing(self, tenant: TenantSummary) -> Mapping[str, Pool]:
        """The pools that the Tenant's namespace is a member of, by canonical key: each is that of the nearest one that
        declares the key, of the Tenant and its ancestors."""
        found: dict[str, Pool] = {}
        for each in (tenant, *self._tree.ancestors(tenant)):
            for key, pool in self._owned(each).items():
                found.setdefault(key, pool)
        return found

    def enclosing(self, pool: Pool) -> Iterator[Pool]:
        """The pool that the amount of this one is taken out of, the one that this is taken out of, and so on."""
        for each in self._tree.ancestors(pool.owner):
            if found := self._owned(each).get(pool.key):
                yield found

    def of_claimant(self, claimant: Claimant, key: str) -> Pool | None:
        """The claimant's own pool; None if its namespace is the only member, and takes part in no other."""
        if not self._tree.children(claimant.namespace):
            return None
        tenant = self._tree.by_namespace(claimant.namespace)
        return self._owned(tenant).get(key) if tenant is not None else None

    def limiting(self, tenant: TenantSummary, key: str) -> Iterator[tuple[int, Sequence[str]]]:
        """The amounts that the Tenant and its ancestors declare for a key, each with all namespaces that it limits:
        those of the owner and of all its descendants. The sum of what these may use must not exceed it."""
        for each in (tenant, *self._tree.ancestors(tenant)):
            declared = comparable_limits(each.quotas, self._tree.ratios)
            if key in declared:
                descendants = (below.namespace for below in self._tree.descendants(each))
                yield declared[key].amount, (each.namespace, *descendants)

    def neighbours(self, tenant: TenantSummary) -> Sequence[str]:
        """The namespaces that share a pool with that of the Tenant, and its own if it is in one."""
        pools = self.governing(tenant).values()
        return tuple(dict.fromkeys(namespace for pool in pools for namespace in pool.members))

    def _owned(self, tenant: TenantSummary) -> Mapping[str, Pool]:
        if not tenant.quotas:
            return {}
        found = self._pools.get(tenant.namespace)
        if found is None:
            found = self._pools[tenant.namespace] = pools_of(self._tree, tenant)
        return found


class Share(NamedTuple):
    """The share of a namespace in a pool: its usage, the limit that was written for it, and the one that kube-apiserver
    admits by until the quota controller has followed. None is no limit."""

    used: int = 0
    hard: int | None = None
    admitted: int | None = None

    @property
    def ceiling(self) -> int:
        """The amount that the namespace uses or may use, now or once the latest write takes effect."""
        return max(self.used, self.hard or 0, self.admitted or 0)

    def joined(self, other: Share) -> Share:
        """The greater amounts of the two, of those that there are."""
        return Share(
            max(self.used, other.used), _greater(self.hard, other.hard), _greater(self.admitted, other.admitted)
        )


def _greater(first: int | None, second: int | None) -> int | None:
    return second if first is None or (second is not None and second > first) else first


NOTHING = Share()


def shared_limit(capacity: int, used: int, used_by_all: int) -> int:
    """The limit of one namespace of a shared pool: what it uses and what is left. If the namespaces use more than the
    capacity, each may use what it uses."""
    return used + max(0, capacity - used_by_all)


def strict_targets(key: str, capacity: int, shares: Mapping[str, Share]) -> Mapping[str, int]:
    """The limits that the namespaces of a strict pool are to have; their sum is never more than the capacity.

    They are those that they have, as long as each namespace has at least half of an equal part of what is left: a
    division that followed each use would refuse more than it allows.
    """
    left = capacity - sum(share.used for share in shares.values())
    if left < 0:
        return _in_proportion(key, capacity, shares)
    if _is_balanced(key, capacity, left, shares):
        return {namespace: share.hard or 0 for namespace, share in shares.items()}
    grain = grain_of(key)
    part, rest = divmod(left // grain, len(shares))
    remainder = left - (part * len(shares) + rest) * grain
    targets = {
        namespace: share.used + (part + (1 if index < rest else 0)) * grain
        for index, (namespace, share) in enumerate(sorted(shares.items()))
    }
    targets[min(shares)] += remainder
    return targets


def _is_balanced(key: str, capacity: int, left: int, shares: Mapping[str, Share]) -> bool:
    if sum(share.hard or 0 for share in shares.values()) != capacity:
        return False
    part, grain = left // len(shares), grain_of(key)
    enough = part // 2 if part >= 2 * grain else part // grain * grain
    return all(share.hard is not None and share.hard - share.used >= enough for share in shares.values())


def _in_proportion(key: str, capacity: int, shares: Mapping[str, Share]) -> Mapping[str, int]:
    """Limits below what is used, which is more than the capacity: nothing is admitted until the use has fallen."""
    used, grain = sum(share.used for share in shares.values()), grain_of(key)
    return {namespace: share.used * capacity // used // grain * grain for namespace, share in shares.items()}


def grain_of(key: str) -> int:
    """The least amount of a key that is divided: an object, a byte, or a thousandth of a core."""
    return NANO // 1000 if key.endswith(".cpu") and not is_whole(key) else NANO


def strict_limit(
    target: int, namespace: str, shares: Mapping[str, Share], limits: Sequence[tuple[int, Sequence[str]]]
) -> int:
    """The limit that may be written for one namespace of a strict pool at this instant: its target, unless that is more
    than it has, and others have not given yet what it is to receive.

    `limits` are what the owner of the pool and its ancestors declare, each with the namespaces that it limits, and
    `shares` those of all these namespaces, read from the cluster.
    """
    present = shares.get(namespace, NOTHING).hard
    if present is not None and target <= present:
        return target
    allowed = target
    for declared, namespaces in limits:
        others = sum(shares.get(each, NOTHING).ceiling for each in namespaces if each != namespace)
        allowed = min(allowed, declared - others)
    return max(present or 0, allowed)
