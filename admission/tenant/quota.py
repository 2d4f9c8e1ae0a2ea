"""Hierarchical quota: a Tenant's quota is part of the quota of its nearest ancestor that declares the key (API-18).

For one key of a ResourceQuota, a Tenant claims the amount that it declares; one that declares none claims the sum of
its children's claims. The children of a Tenant that declares an amount may not claim more than it in total, less what
is used already by the Tenant and by those that share its amount because they declare none. A Tenant that uses more than
it declares, because that was lowered, counts with its use.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass

from admission.tenant.disclosure import MASTERS_ONLY, Disclosure
from admission.tenant.quota_ledger import Ledger, NamespaceUsage, no_usage
from admission.tenant.spec_validation import TenantSpecValidation
from apiserver.meta.errors import FieldError, forbidden
from apiserver.request.context import User
from registry.tenant.quota_keys import QuotaLimit, amount_text, comparable_limits
from registry.tenant.summary import TenantSummary
from registry.tenant.tree import BaseTenantTree, ChangedTree, TenantTree


def validate_quota_change(
    tree: BaseTenantTree, new: TenantSummary, old: TenantSummary | None, usage: NamespaceUsage = no_usage
) -> list[QuotaProblem]:
    """The problems of a write, one for each key of `spec.resourceQuotas` at most; `old` is None on create, and `tree`
    is the tree before it.

    Only an excess that the write makes worse is rejected: an existing one may shrink in steps.
    """
    change = _Change(tree, new, old, usage)
    problems: dict[str, _Problem] = {**change.below_children(), **change.above_limits(), **change.while_deleted()}
    found: dict[str, QuotaProblem] = {}
    for key in sorted(problems):
        # limits.cpu comes before requests.cpu, which `cpu` stands for, too
        declared_as = change.declared_as(key)
        found.setdefault(declared_as, QuotaProblem(f"spec.resourceQuotas[{declared_as}]", problems[key]))
    return [found[key] for key in sorted(found)]


class _Change:
    """The changes of a write. Amounts are by canonical key."""

    def __init__(
        self, tree: BaseTenantTree, new: TenantSummary, old: TenantSummary | None, usage: NamespaceUsage
    ) -> None:
        self._new = new
        self._usage = usage
        self._terminating = old is not None and old.terminating
        self._declared_before = comparable_limits(old.quotas, tree.ratios) if old is not None else {}
        self._declared = comparable_limits(new.quotas, tree.ratios)
        self._changed = {
            key
            for key in self._declared.keys() | self._declared_before.keys()
            if _amount(self._declared, key) != _amount(self._declared_before, key)
        }
        self._ledger = Ledger(ChangedTree(tree, new))
        self._claimed = self._ledger.claimed_below(new, self._changed)
        before = Ledger(tree).claimed_below(new, self._changed - self._declared_before.keys())
        self._claims_before = {key: _amount(self._declared_before, key, before.get(key, 0)) for key in self._changed}

    def declared_as(self, key: str) -> str:
        """The key under which the Tenant declares, or has declared, the amount."""
        return (self._declared.get(key) or self._declared_before[key]).key

    def below_children(self) -> Mapping[str, _BelowChildren]:
        problems = {}
        for key in self._changed & self._declared.keys():
            declared, claimed = self._declared[key], self._claimed.get(key, 0)
            raised = key in self._declared_before and declared.amount > self._declared_before[key].amount
            if claimed > declared.amount and not raised:
                problems[key] = _BelowChildren(key, declared, claimed)
        return problems

    def above_limits(self) -> Mapping[str, _AboveLimit]:
        claims = {key: _amount(self._declared, key, self._claimed.get(key, 0)) for key in self._changed}
        growing = {key for key, claim in claims.items() if claim > self._claims_before[key]}
        problems = {}
        for ancestor, keys in self._ledger.limits(self._new, growing - self.below_children().keys()):
            total, limits = self._ledger.claimed_below(ancestor, keys), self._ledger.least(ancestor)
            used = self._used(ancestor, keys)
            for key in keys:
                excess = total.get(key, 0) + used.get(key, 0) - limits[key].amount
                if excess > 0:
                    left = max(0, claims[key] - excess)
                    claim = self._declared.get(key) or _like(self.declared_as(key), limits[key], claims[key])
                    problems[key] = _AboveLimit(key, claim, left, limits[key], ancestor, self._new)
        return problems

    def _used(self, ancestor: TenantSummary, keys: Set[str]) -> Mapping[str, int]:
        """The use besides the claims, also that of the Tenant itself if it declares no amount. Its use beyond its own
        amount is the same with and without the write."""
        if self._usage is no_usage:
            return {}
        return self._ledger.used(ancestor, keys, self._usage, besides=self._new)

    def while_deleted(self) -> Mapping[str, _WhileDeleted]:
        """The amounts that a Tenant in deletion declares: they stay taken until its namespace is gone."""
        if not self._terminating:
            return {}
        before, after = self._declared_before, self._declared
        return {key: _WhileDeleted() for key in before if _amount(after, key) < before[key].amount}


def _like(key: str, limit: QuotaLimit, amount: int) -> QuotaLimit:
    return QuotaLimit(amount, key, amount_text(amount, limit.text))


def _amount(limits: Mapping[str, QuotaLimit], key: str, default: int = -1) -> int:
    return limits[key].amount if key in limits else default


@dataclass(frozen=True, slots=True)
class _BelowChildren:
    """The Tenant declares less than its children do."""

    key: str
    declared: QuotaLimit
    sum_of_children: int

    def text(self, *, tells_amount: bool) -> str:
        total = amount_text(self.sum_of_children, self.declared.text)
        whose = f"the {total} that" if tells_amount else "what"
        return f"{self.declared.describe(self.key, self.declared.key)} is less than {whose} child tenants declare"


@dataclass(frozen=True, slots=True)
class _AboveLimit:
    """The Tenant claims more than is left of the quota of `ancestor`."""

    key: str
    claim: QuotaLimit
    left: int
    limit: QuotaLimit
    ancestor: TenantSummary
    tenant: TenantSummary

    def text(self, *, tells_amount: bool) -> str:
        is_parent = self.ancestor.namespace == self.tenant.key.namespace
        claim = self.claim.describe(self.key, self.claim.key)
        if not tells_amount:
            whose = "the parent tenant" if is_parent else "the nearest ancestor that declares it"
            return f"{claim} is more than what is left of the quota of {whose}"
        left, limit = amount_text(self.left, self._unit()), self.limit.describe(self.key, self.claim.key)
        whole = f"the parent's {limit}" if is_parent else f"the {limit} of the nearest ancestor that declares it"
        return f"{claim} is more than the {left} that are left of {whole}"

    def _unit(self) -> str:
        """The text whose unit the user knows: the claim's if it has a binary suffix."""
        return self.claim.text if self.claim.text.endswith("i") else self.limit.text


@dataclass(frozen=True, slots=True)
class _WhileDeleted:
    """The Tenant is being deleted, and declares less than before."""

    def text(self, *, tells_amount: bool) -> str:
        return "cannot be lowered or removed while the tenant is being deleted"


_Problem = _BelowChildren | _AboveLimit | _WhileDeleted


@dataclass(frozen=True, slots=True)
class QuotaProblem:
    """A quota that does not fit."""

    field: str
    problem: _Problem

    def __str__(self) -> str:
        return str(self.error(tells_amount=True))

    def error(self, *, tells_amount: bool) -> FieldError:
        """The message contains the amount that is left, or declared by others, only if `tells_amount` is true."""
        return forbidden(self.field, self.problem.text(tells_amount=tells_amount))


class TenantQuota(TenantSpecValidation):
    name = "TenantQuota"

    def __init__(
        self, *, tree: TenantTree, disclosure: Disclosure = MASTERS_ONLY, usage: NamespaceUsage = no_usage
    ) -> None:
        super().__init__(tree=tree)
        self._disclosure = disclosure
        self._usage = usage

    async def _field_errors(self, new: TenantSummary, old: TenantSummary | None, user: User) -> list[FieldError]:
        return [
            each.error(tells_amount=await self._tells_amount(each, new, user))
            for each in validate_quota_change(self._tree, new, old, self._usage)
        ]

    async def _tells_amount(self, found: QuotaProblem, new: TenantSummary, user: User) -> bool:
        match found.problem:
            case _AboveLimit(ancestor=ancestor):
                return await self._disclosure.tells_amount_of(user, ancestor)
            case _WhileDeleted():
                return False
            case _:
                namespaces = {each.key.namespace for each in self._tree.descendants(new)}
                return await self._disclosure.tells_amounts_in(user, sorted(namespaces))
