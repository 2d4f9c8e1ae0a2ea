"""Hierarchical quota: what a Tenant declares is taken from what its nearest declaring ancestor declares (API-18).

For one key of spec.resourceQuotas, a Tenant claims what it declares; one that declares nothing claims what its
children claim. The children of a Tenant that declares may not claim more than it does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from fractions import Fraction
from functools import lru_cache

from admission.plugin_rule import TENANTS, WRITES, Rule, name_in_refusal
from apiserver.admission import Attributes
from apiserver.meta import errors
from apiserver.meta.errors import FieldError, forbidden
from apiserver.meta.resource import Key
from registry import quantity
from registry.tenant.summary import TenantFacts, facts_of
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


class Ledger:
    """What the Tenants of one tree declare and claim, in billionths, by full key. Each is worked out once, and all keys
    in one walk, so that a Tenant with very many keys costs no more than the writing of them (ATTACK-13)."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._declared: dict[Key, Mapping[str, int]] = {}

    def declared(self, facts: TenantFacts) -> Mapping[str, int]:
        """Without the keys that the Tenant does not declare. Of a key and its alias the lesser binds."""
        found = self._declared.get(facts.key)
        if found is None:
            found = self._declared[facts.key] = _declared(facts)
        return found

    def claimed_below(self, facts: TenantFacts, keys: Set[str]) -> Mapping[str, int]:
        """What the children claim; without the keys of which they claim nothing."""
        totals: dict[str, int] = {}
        seen: set[Key] = {facts.key}
        waiting = [(child, keys) for child in self._tree.children(facts.namespace)]
        while waiting:
            each, wanted = waiting.pop()
            if each.key in seen:
                continue
            seen.add(each.key)
            declared = self.declared(each)
            found = wanted & declared.keys()
            for key in found:
                totals[key] = totals.get(key, 0) + declared[key]
            if children := self._tree.children(each.namespace):
                rest = wanted - found if found else wanted
                waiting.extend((child, rest) for child in children if rest)
        return totals

    def bounds(self, facts: TenantFacts, keys: Set[str]) -> Iterator[tuple[TenantFacts, Set[str]]]:
        """The ancestors that bound these keys, nearest first, each with those of which it is the nearest to declare."""
        rest = keys
        for each in self._tree.ancestors(facts):
            if found := rest & self.declared(each).keys():
                yield each, found
                rest = rest - found


def _declared(facts: TenantFacts) -> Mapping[str, int]:
    found: dict[str, int] = {}
    for each, value in facts.quotas.items():
        amount, key = _amount(value), full_key(each)
        if amount is not None:
            found[key] = min(amount, found.get(key, amount))
    return found


def quota_problems(tree: Tree, new: TenantFacts, old: TenantFacts | None) -> list[FieldError]:
    """What is wrong with making `old` into `new`; `old` is None on create, and `tree` is as it was before.

    Only what the write makes worse is refused: an excess of old may shrink in steps.
    """
    before, after = Ledger(tree), Ledger(ChangedTree(tree, new))
    was = before.declared(old) if old is not None else {}
    now = after.declared(new)
    written = {full_key(each): each for facts in (old, new) if facts is not None for each in sorted(facts.quotas)}
    changed = {key for key in written if was.get(key) != now.get(key)}
    claimed = after.claimed_below(new, changed)
    problems: dict[str, str] = {}
    for key in changed & now.keys():
        if claimed.get(key, 0) > now[key] and not (key in was and now[key] > was[key]):
            problems[key] = f"{_text(now[key])} is less than the {_text(claimed[key])} that child tenants declare"
    claimed_before = before.claimed_below(new, changed - was.keys())
    claims = {key: now.get(key, claimed.get(key, 0)) for key in changed - problems.keys()}
    growing = {key for key, claim in claims.items() if claim > was.get(key, claimed_before.get(key, 0))}
    for bound, keys in after.bounds(new, growing):
        total, limits = after.claimed_below(bound, keys), after.declared(bound)
        for key in keys:
            if (excess := total.get(key, 0) - limits[key]) > 0:
                problems[key] = _above(bound, new, claims[key], excess)
    return [forbidden(f"spec.resourceQuotas[{written[key]}]", problems[key]) for key in sorted(problems)]


def _above(bound: TenantFacts, new: TenantFacts, claim: int, excess: int) -> str:
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
