"""Hierarchical quota: a Tenant's quota is part of the quota of its nearest ancestor that declares the key (API-18).

For one key of spec.resourceQuotas, a Tenant claims the amount that it declares; one that declares none claims the sum
of its children's claims. The children of a Tenant that declares an amount may not claim more than it in total.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from admission.tenant.disclosure import MASTERS_ONLY, Disclosure
from admission.tenant.spec_validation import TenantSpecValidation
from apiserver.meta.errors import FieldError, forbidden
from apiserver.meta.resource import Key
from apiserver.request.context import User
from registry import quantity
from registry.tenant.summary import TenantSummary
from registry.tenant.tree import BaseTenantTree, ChangedTree, TenantTree

NANO = 10**9
"""The finest unit of a quantity is a billionth."""
# aliases in a ResourceQuota: Kubernetes counts requests under both names
_ALIASES = {name: f"requests.{name}" for name in ("cpu", "memory", "storage", "ephemeral-storage")}


def _amount(value: str | int) -> int | None:
    """A quantity in billionths, the finest unit of a quantity; None if it is no limit, which counts as not declared."""
    # the cache must not keep texts of any length
    too_long = isinstance(value, str) and len(value) > quantity.MAX_LENGTH
    return _cached_amount(value) if not too_long else None


@lru_cache(maxsize=8192)
def _cached_amount(value: str | int) -> int | None:
    try:
        return int(quantity.parse_limit(value) * NANO)
    except ValueError:
        return None


def canonical_key(key: str) -> str:
    """The name shared by a quota key and its alias."""
    return _ALIASES.get(key, key)


@dataclass(frozen=True, slots=True)
class _Amounts:
    """The amounts that one Tenant declares by key, over all of its alternatives: the greatest and the least ones, and
    the keys for which every alternative declares one."""

    greatest: Mapping[str, int]
    least: Mapping[str, int]
    certain: Set[str]


class Ledger:
    """The amounts that Tenants of one tree declare and claim, in billionths, by canonical key. A Tenant is parsed once
    and all keys are summed in one walk, so that the cost is linear in the number of keys (ATTACK-13).

    Of several alternatives of a Tenant, the one that leaves the least for others counts.
    """

    def __init__(self, tree: BaseTenantTree) -> None:
        self._tree = tree
        self._amounts: dict[Key, _Amounts] = {}

    def least(self, tenant: TenantSummary) -> Mapping[str, int]:
        """The amounts by which the Tenant limits its descendants."""
        return self._of(tenant).least

    def _of(self, tenant: TenantSummary) -> _Amounts:
        found = self._amounts.get(tenant.key)
        if found is None:
            found = self._amounts[tenant.key] = _combined(
                [declared_amounts(each) for each in self._tree.alternatives(tenant)]
            )
        return found

    def claimed_below(self, tenant: TenantSummary, keys: Set[str]) -> Mapping[str, int]:
        """The sums of the children's claims by key; keys without a claim are absent."""
        totals: dict[str, int] = {}
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
                totals[key] = totals.get(key, 0) + amounts.greatest[key]
            if children := self._tree.children(each.namespace):
                # a key that only some alternatives declare counts twice at most
                rest = undeclared - amounts.certain if found else undeclared
                pending.extend((child, rest) for child in children if rest)
        return totals

    def limits(self, tenant: TenantSummary, keys: Set[str]) -> Iterator[tuple[TenantSummary, Set[str]]]:
        """The ancestors that limit these keys, nearest first, each with the keys for which it is the nearest to declare
        an amount."""
        rest = keys
        for each in self._tree.ancestors(tenant):
            amounts = self._of(each)
            if found := rest & amounts.least.keys():
                yield each, found
                rest = rest - amounts.certain


def _combined(alternatives: Sequence[Mapping[str, int]]) -> _Amounts:
    first = alternatives[0]
    if len(alternatives) == 1:
        return _Amounts(first, first, first.keys())
    by_key: dict[str, list[int]] = {}
    for each in alternatives:
        for key, amount in each.items():
            by_key.setdefault(key, []).append(amount)
    certain = {key for key, amounts in by_key.items() if len(amounts) == len(alternatives)}
    return _Amounts(
        {key: max(amounts) for key, amounts in by_key.items()},
        {key: min(amounts) for key, amounts in by_key.items()},
        certain,
    )


def declared_amounts(tenant: TenantSummary) -> Mapping[str, int]:
    """The amounts that the Tenant declares; if both a key and its alias are declared, the lesser one counts."""
    found: dict[str, int] = {}
    for each, value in tenant.quotas.items():
        amount, key = _amount(value), canonical_key(each)
        if amount is not None:
            found[key] = min(amount, found.get(key, amount))
    return found


def validate_quota_change(tree: BaseTenantTree, new: TenantSummary, old: TenantSummary | None) -> list[QuotaProblem]:
    """The problems of a write; `old` is None on create, and `tree` is the tree before it.

    Only an excess that the write makes worse is rejected: an existing one may shrink in steps.
    """
    before, after = Ledger(tree), Ledger(ChangedTree(tree, new))
    declared_before = declared_amounts(old) if old is not None else {}
    declared = declared_amounts(new)
    spelled_keys: dict[str, str] = {}
    for tenant in (old, new):
        spelled_keys.update({canonical_key(key): key for key in sorted(tenant.quotas if tenant is not None else ())})
    changed = {key for key in spelled_keys if declared_before.get(key) != declared.get(key)}
    claimed = after.claimed_below(new, changed)
    problems: dict[str, _BelowChildren | _AboveLimit] = {}
    for key in changed & declared.keys():
        raised = key in declared_before and declared[key] > declared_before[key]
        if claimed.get(key, 0) > declared[key] and not raised:
            problems[key] = _BelowChildren(declared[key], claimed[key])
    claimed_before = before.claimed_below(new, changed - declared_before.keys())
    claims = {key: declared.get(key, claimed.get(key, 0)) for key in changed - problems.keys()}
    growing = {key for key, claim in claims.items() if claim > declared_before.get(key, claimed_before.get(key, 0))}
    for ancestor, keys in after.limits(new, growing):
        total, limits = after.claimed_below(ancestor, keys), after.least(ancestor)
        for key in keys:
            if (excess := total.get(key, 0) - limits[key]) > 0:
                problems[key] = _AboveLimit(claims[key], max(0, claims[key] - excess), ancestor, new)
    return [QuotaProblem(f"spec.resourceQuotas[{spelled_keys[key]}]", problems[key]) for key in sorted(problems)]


@dataclass(frozen=True, slots=True)
class _BelowChildren:
    """The Tenant declares less than its children do."""

    declared: int
    sum_of_children: int

    def text(self, *, tells_amount: bool) -> str:
        whose = f"the {_amount_text(self.sum_of_children)} that" if tells_amount else "what"
        return f"{_amount_text(self.declared)} is less than {whose} child tenants declare"


@dataclass(frozen=True, slots=True)
class _AboveLimit:
    """The Tenant claims more than is left of the quota of `ancestor`."""

    claim: int
    left: int
    ancestor: TenantSummary
    tenant: TenantSummary

    def text(self, *, tells_amount: bool) -> str:
        is_parent = self.ancestor.namespace == self.tenant.key.namespace
        whose = "the parent tenant" if is_parent else "the nearest ancestor that declares it"
        left = f"the {_amount_text(self.left)} that" if tells_amount else "what"
        return f"{_amount_text(self.claim)} is more than {left} is left of the quota of {whose}"


@dataclass(frozen=True, slots=True)
class QuotaProblem:
    """A quota that does not fit."""

    field: str
    problem: _BelowChildren | _AboveLimit

    def __str__(self) -> str:
        return str(self.error(tells_amount=True))

    def error(self, *, tells_amount: bool) -> FieldError:
        """The amount that is left, or declared by others, is told only to who may know it."""
        return forbidden(self.field, self.problem.text(tells_amount=tells_amount))


def _amount_text(amount: int) -> str:
    return quantity.to_text(Fraction(amount, NANO))


class TenantQuota(TenantSpecValidation):
    name = "TenantQuota"

    def __init__(self, *, tree: TenantTree, disclosure: Disclosure = MASTERS_ONLY) -> None:
        super().__init__(tree=tree)
        self._disclosure = disclosure

    async def _field_errors(self, new: TenantSummary, old: TenantSummary | None, user: User) -> list[FieldError]:
        return [
            each.error(tells_amount=await self._tells_amount(each, new, user))
            for each in validate_quota_change(self._tree, new, old)
        ]

    async def _tells_amount(self, found: QuotaProblem, new: TenantSummary, user: User) -> bool:
        match found.problem:
            case _AboveLimit(ancestor=ancestor):
                return await self._disclosure.tells_amount_of(user, ancestor)
            case _:
                namespaces = {each.key.namespace for each in self._tree.descendants(new)}
                return await self._disclosure.tells_amounts_in(user, sorted(namespaces))
