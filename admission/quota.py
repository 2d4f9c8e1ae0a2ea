"""Hierarchical quota: what a Tenant declares is taken from what its nearest declaring ancestor declares (T18).

For one key of spec.resourceQuotas, a Tenant claims what it declares; one that declares nothing claims what its
children claim. The children of a Tenant that declares may not claim more than it does.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from admission.rules import TENANTS, WRITES, Rule, name_in_refusal
from apiserver import errors
from apiserver.admission import Attributes
from apiserver.errors import FieldError, forbidden
from apiserver.resource import Key
from registry import quantity
from registry.tenant.facts import TenantFacts, facts_of
from registry.tenant.tree import ChangedTree, Tree

_NANO = 10**9
# Two names of one thing in a ResourceQuota: Kubernetes counts requests under both
_ALIASES = {name: f"requests.{name}" for name in ("cpu", "memory", "storage", "ephemeral-storage")}


@lru_cache(maxsize=8192)
def _amount(value: str | int) -> int | None:
    """A quantity in billionths, which is as fine as quantities are; None for damage, which is as if not declared."""
    try:
        return int(quantity.parse(value) * _NANO)
    except ValueError:
        return None


def full_key(key: str) -> str:
    """The one name of what a quota key and its alias stand for."""
    return _ALIASES.get(key, key)


def declared(facts: TenantFacts, key: str) -> int | None:
    """In billionths; None if the Tenant does not declare `key`, a full key. Of a key and its alias the lesser binds."""
    found = [
        amount for each in facts.quotas if full_key(each) == key and (amount := _amount(facts.quotas[each])) is not None
    ]
    return min(found, default=None)


def claimed_below(tree: Tree, facts: TenantFacts, key: str) -> int:
    """What the children claim of `key`, a full key, in billionths."""
    total = 0
    seen: set[Key] = {facts.key}
    waiting = list(tree.children(facts.namespace))
    while waiting:
        each = waiting.pop()
        if each.key in seen:
            continue
        seen.add(each.key)
        amount = declared(each, key)
        if amount is None:
            waiting.extend(tree.children(each.namespace))
        else:
            total += amount
    return total


def quota_problems(tree: Tree, new: TenantFacts, old: TenantFacts | None) -> list[FieldError]:
    """What is wrong with making `old` into `new`; `old` is None on create, and `tree` is as it was before.

    Only what the write makes worse is refused: an excess of old may shrink in steps.
    """
    after = ChangedTree(tree, new)
    problems = []
    written = {full_key(each): each for facts in (old, new) if facts is not None for each in sorted(facts.quotas)}
    for key in sorted(written):
        before = declared(old, key) if old is not None else None
        if declared(new, key) == before:
            continue
        why = _below_children(after, new, key, before) or _above_ancestor(tree, after, new, key, before)
        if why:
            problems.append(forbidden(f"spec.resourceQuotas[{written[key]}]", why))
    return problems


def _below_children(after: Tree, new: TenantFacts, key: str, before: int | None) -> str:
    amount = declared(new, key)
    if amount is None or (before is not None and amount > before):
        return ""
    claimed = claimed_below(after, new, key)
    if claimed <= amount:
        return ""
    return f"{_text(amount)} is less than the {_text(claimed)} that child tenants declare"


def _above_ancestor(tree: Tree, after: Tree, new: TenantFacts, key: str, before: int | None) -> str:
    amount = declared(new, key)
    claim = amount if amount is not None else claimed_below(after, new, key)
    if claim <= (before if before is not None else claimed_below(tree, new, key)):
        return ""
    bound = next((each for each in after.ancestors(new) if declared(each, key) is not None), None)
    limit = declared(bound, key) if bound is not None else None
    if bound is None or limit is None:
        return ""
    excess = claimed_below(after, bound, key) - limit
    if excess <= 0:
        return ""
    whose = "the parent tenant" if bound.namespace == new.key.namespace else "the nearest ancestor that declares it"
    return f"{_text(claim)} is more than the {_text(max(0, claim - excess))} that is left of the quota of {whose}"


def _text(amount: int) -> str:
    return quantity.text(Fraction(amount, _NANO))


class TenantQuota:
    """Relies on TreeGuard for the tree to hold still."""

    name = "TenantQuota"
    _rule = Rule(TENANTS, WRITES)

    def __init__(self, *, tree: Tree) -> None:
        self._tree = tree

    def handles(self, attributes: Attributes) -> bool:
        return self._rule.matches(attributes)

    async def validate(self, attributes: Attributes) -> None:
        assert attributes.object is not None
        old = facts_of(attributes.old_object) if attributes.old_object is not None else None
        if problems := quota_problems(self._tree, facts_of(attributes.object), old):
            raise errors.Invalid(attributes.resource.group_kind, name_in_refusal(attributes), problems)
