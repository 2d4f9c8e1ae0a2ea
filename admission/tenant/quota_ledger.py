"""The sums that hierarchical quota compares: what Tenants declare, claim and use. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field

from apiserver.meta.resource import Key
from registry.tenant.quota_keys import QuotaLimit, comparable_limits
from registry.tenant.summary import TenantSummary
from registry.tenant.tree import BaseTenantTree

NamespaceUsage = Callable[[str], Mapping[str, int]]
"""Returns the usage of a namespace, in billionths by canonical key, as far as the cluster has counted it."""

_Sums = dict[str, int]


def no_usage(namespace: str) -> Mapping[str, int]:
    return {}


@dataclass(frozen=True, slots=True)
class _Amounts:
    """The amounts that one Tenant declares by key, over all of its alternatives: the greatest and the least ones, and
    the keys for which every alternative declares one."""

    greatest: Mapping[str, QuotaLimit]
    least: Mapping[str, QuotaLimit]
    certain: Set[str]


@dataclass(slots=True, eq=False)
class _Node:
    """A Tenant in a walk, with what it and its descendants use beyond what those declare that declare an amount, and
    the sums that these declare."""

    tenant: TenantSummary
    above: _Node | None
    used: _Sums = field(default_factory=dict)
    claimed: _Sums = field(default_factory=dict)


class Ledger:
    """The amounts that Tenants of one tree declare, claim and use, in billionths, by canonical key. A Tenant is parsed
    once and all keys are summed in one walk, so that the cost is linear in the number of keys (ATTACK-13).

    Of several alternatives of a Tenant, the one that leaves the least for others counts.
    """

    def __init__(self, tree: BaseTenantTree) -> None:
        self._tree = tree
        self._amounts: dict[Key, _Amounts] = {}

    def least(self, tenant: TenantSummary) -> Mapping[str, QuotaLimit]:
        """The amounts by which the Tenant limits its descendants."""
        return self._of(tenant).least

    def _of(self, tenant: TenantSummary) -> _Amounts:
        found = self._amounts.get(tenant.key)
        if found is None:
            found = self._amounts[tenant.key] = _combined(
                [comparable_limits(each.quotas, self._tree.ratios) for each in self._tree.alternatives(tenant)]
            )
        return found

    def claimed_below(self, tenant: TenantSummary, keys: Set[str]) -> Mapping[str, int]:
        """The sums of the children's claims by key; keys without a claim are absent."""
        totals: _Sums = {}
        visited: set[Key] = {tenant.key}
        pending = [(child, keys) for child in self._tree.children(tenant.namespace)]
        while pending:
            each, undeclared = pending.pop()
            if each.key in visited:
                continue
            visited.add(each.key)
            amounts = self._of(each)
            found = undeclared & amounts.greatest.keys()
            for key in found:
                totals[key] = totals.get(key, 0) + amounts.greatest[key].amount
            if children := self._tree.children(each.namespace):
                # a key that only some alternatives declare counts twice at most
                rest = undeclared - amounts.certain if found else undeclared
                pending.extend((child, rest) for child in children if rest)
        return totals

    def used(
        self, tenant: TenantSummary, keys: Set[str], usage: NamespaceUsage, *, besides: TenantSummary | None = None
    ) -> Mapping[str, int]:
        """The usage of the Tenant and of its descendants that share its amounts of these keys, and what those that
        declare an amount of their own use beyond it: an amount that is lowered below its use frees nothing. The
        use of the Tenant `besides` beyond its own amount is left out."""
        top = _Node(tenant, None)
        nodes, visited = [top], {tenant.key}
        for node in nodes:
            for child in self._tree.children(node.tenant.namespace):
                if child.key in visited:
                    continue
                visited.add(child.key)
                if self._tree.children(child.namespace):
                    nodes.append(_Node(child, node))
                else:
                    in_use = self._usage_besides(child, usage, besides)
                    _add_leaf(self._of(child).greatest, keys, in_use, node)
        for node in reversed(nodes):
            _add(node.used, keys, self._usage_besides(node.tenant, usage, besides))
            if node.above is not None:
                counts_use = besides is None or node.tenant.key != besides.key
                _hand_up(self._of(node.tenant), keys, node, node.above, counts_use=counts_use)
        return top.used

    def _usage_besides(
        self, tenant: TenantSummary, usage: NamespaceUsage, besides: TenantSummary | None
    ) -> Mapping[str, int]:
        in_use = usage(tenant.namespace)
        if besides is None or tenant.key != besides.key:
            return in_use
        declared = self._of(tenant).greatest
        return {key: amount for key, amount in in_use.items() if key not in declared}

    def limits(self, tenant: TenantSummary, keys: Set[str]) -> Iterator[tuple[TenantSummary, Set[str]]]:
        """The ancestors that limit these keys, nearest first, each with the keys for which it is the nearest to declare
        an amount."""
        rest = keys
        for each in self._tree.ancestors(tenant):
            amounts = self._of(each)
            if found := rest & amounts.least.keys():
                yield each, found
                rest = rest - amounts.certain


def _add(sums: _Sums, keys: Set[str], amounts: Mapping[str, int]) -> None:
    for key, amount in amounts.items():
        if key in keys:
            sums[key] = sums.get(key, 0) + amount


def _add_leaf(declared: Mapping[str, QuotaLimit], keys: Set[str], in_use: Mapping[str, int], above: _Node) -> None:
    """Adds what a Tenant without children uses and claims to the sums of its parent."""
    for key in keys:
        taken, limit = in_use.get(key, 0), declared.get(key)
        if limit is not None:
            above.claimed[key] = above.claimed.get(key, 0) + limit.amount
            taken -= limit.amount
        if taken > 0:
            above.used[key] = above.used.get(key, 0) + taken


def _hand_up(amounts: _Amounts, keys: Set[str], node: _Node, above: _Node, *, counts_use: bool) -> None:
    """Adds what a Tenant and its descendants use, and what they claim, to the sums of its parent. Without use, what the
    Tenant declares counts, also if its descendants declare more."""
    for key in keys:
        in_use, claimed = node.used.get(key, 0), node.claimed.get(key, 0)
        limit = amounts.greatest.get(key)
        if limit is not None:
            in_use = max(0, in_use + claimed - limit.amount) if in_use and counts_use else 0
            # a key that only some alternatives declare counts twice at most
            claimed = limit.amount + (0 if key in amounts.certain else claimed)
        if in_use:
            above.used[key] = above.used.get(key, 0) + in_use
        if claimed:
            above.claimed[key] = above.claimed.get(key, 0) + claimed


def _combined(alternatives: Sequence[Mapping[str, QuotaLimit]]) -> _Amounts:
    first = alternatives[0]
    if len(alternatives) == 1:
        return _Amounts(first, first, first.keys())
    by_key: dict[str, list[QuotaLimit]] = {}
    for each in alternatives:
        for key, amount in each.items():
            by_key.setdefault(key, []).append(amount)
    certain = {key for key, amounts in by_key.items() if len(amounts) == len(alternatives)}
    return _Amounts(
        {key: max(amounts) for key, amounts in by_key.items()},
        {key: min(amounts) for key, amounts in by_key.items()},
        certain,
    )
