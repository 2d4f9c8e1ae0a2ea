"""Reads what the user may know of the quota of a Tenant: what visible children declare, and from whom it lives."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence, Set
from itertools import takewhile
from typing import Final, NamedTuple

from apiserver.meta.resource import Object
from registry.explain.known import KnownQuota
from registry.explain.sight import MOST_REVIEWS, Sight
from registry.tenant.quota_keys import comparable_limits
from registry.tenant.quota_pools import pools_of
from registry.tenant.summary import TenantSummary, summarize
from registry.tenant.tree import BaseTenantTree, DerivedTree, TenantTree

_MOST_QUANTITIES: Final = 2_000


async def read_quota(tree: TenantTree, sight: Sight, obj: Object) -> KnownQuota:
    """`obj` is a Tenant that the user may get."""
    tenant = summarize(obj)
    above = tree.ancestors(tenant)
    visible, seen = await asyncio.gather(sight.tenants(each.key for each in above), _seen(tree, sight, tenant))
    counted = tree if seen.namespaces is None else _SeenTree(tree, seen.namespaces)
    ancestors = tuple(takewhile(lambda each: each.key in visible, above))
    return KnownQuota(
        ratios=tree.ratios,
        allocated=_allocated(counted, tenant) if seen.is_countable else None,
        sees_all=seen.namespaces is None,
        ancestors=ancestors,
        reaches_root=(ancestors[-1] if ancestors else tenant).is_root,
    )


class _SeenTree(DerivedTree):
    """A tree in which only some namespaces have Tenants."""

    def __init__(self, tree: TenantTree, namespaces: Set[str]) -> None:
        super().__init__(tree)
        self._namespaces = namespaces

    def children(self, namespace: str) -> Sequence[TenantSummary]:
        return self._tree.children(namespace) if namespace in self._namespaces else ()


class _Seen(NamedTuple):
    """The namespaces whose Tenants are counted, None for all; not countable if these Tenants are too many."""

    namespaces: Set[str] | None
    is_countable: bool = True


async def _seen(tree: TenantTree, sight: Sight, tenant: TenantSummary) -> _Seen:
    """The namespaces at and below the Tenant all of whose Tenants the user may get. Below a child that declares what
    the Tenant does, nothing is counted.

    Twenty are considered, chosen by what the user may get, so that hidden Tenants do not decide which.
    """
    keys = comparable_limits(tenant.quotas, tree.ratios).keys()
    if not keys:
        return _Seen(frozenset())
    if await sight.may_get_tenants_in([""]):
        return _Seen(None, _is_countable(tree, [tenant.namespace]))
    seen: dict[str, None] = {}
    waiting, considered = [tenant.namespace], 0
    while waiting and considered < MOST_REVIEWS:
        some = [each for each in waiting if each not in seen][: MOST_REVIEWS - considered]
        considered += len(some)
        allowed = await sight.may_get_tenants_in(some)
        seen |= dict.fromkeys(allowed)
        if not _is_countable(_SeenTree(tree, seen.keys()), [tenant.namespace]):
            return _Seen(seen.keys(), is_countable=False)
        below = (each for namespace in allowed for each in tree.children(namespace))
        waiting = [each.namespace for each in below if not keys <= comparable_limits(each.quotas, tree.ratios).keys()]
    return _Seen(seen.keys())


def _is_countable(tree: BaseTenantTree, namespaces: Sequence[str]) -> bool:
    """False if the sums of what the Tenants at and below the namespaces declare would keep all other requests waiting:
    a quantity that no other Tenant has takes some 50 microseconds."""
    rest, visited, waiting = _MOST_QUANTITIES, set[str](), list(namespaces)
    while waiting:
        namespace = waiting.pop()
        if namespace in visited:
            continue
        visited.add(namespace)
        for each in tree.children(namespace):
            rest -= max(1, len(each.quotas))
            if rest < 0:
                return False
            waiting.append(each.namespace)
    return True


def _allocated(tree: BaseTenantTree, tenant: TenantSummary) -> Mapping[str, int]:
    return {key: pool.declared.amount - pool.rest for key, pool in pools_of(tree, tenant).items()}
