"""Judges a write against a tree and the claims of others, each of which may or may not be stored. Pure.

A claim that frees something frees nothing yet: of what a Tenant is and may become, the greater counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass

from admission.tenant.claims.claim import Claim, ProposedWrite
from admission.tenant.host_validation import validate_host_change
from admission.tenant.placement import placement_denial
from admission.tenant.quota import validate_quota_change
from admission.tenant.quota_ledger import NamespaceUsage, no_usage
from apiserver.meta.resource import Key
from registry.tenant.quota_keys import AllocationRatios
from registry.tenant.summary import TenantSummary
from registry.tenant.tree import BaseTenantTree, ChangedTree, TenantTree, possible_hosts


class PossibleTree(BaseTenantTree):
    """`tree` with the Tenants that claims create, and with the alternatives that claims make possible."""

    def __init__(self, tree: TenantTree, claims: Iterable[Claim]) -> None:
        self._tree = tree
        self._claims: dict[Key, list[Claim]] = {}
        self._created: dict[str, TenantSummary] = {}
        self._children: dict[str, dict[Key, TenantSummary]] = {}
        for claim in claims:
            self._claims.setdefault(claim.key, []).append(claim)
            if claim.creates and tree.get(claim.key) is None:
                tenant = claim.applied_to(None)[0]
                self._created[tenant.namespace] = tenant
                self._children.setdefault(claim.key.namespace, {})[claim.key] = tenant

    @property
    def root_host(self) -> str:
        return self._tree.root_host

    @property
    def ratios(self) -> AllocationRatios:
        return self._tree.ratios

    def get(self, key: Key) -> TenantSummary | None:
        found = self._tree.get(key)
        return found if found is not None else self._children.get(key.namespace, {}).get(key)

    def by_namespace(self, namespace: str) -> TenantSummary | None:
        found = self._tree.by_namespace(namespace)
        return found if found is not None else self._created.get(namespace)

    def children(self, namespace: str) -> Sequence[TenantSummary]:
        stored, created = self._tree.children(namespace), self._children.get(namespace)
        if not created:
            return stored
        return sorted((*stored, *created.values()), key=lambda each: each.key)

    def alternatives(self, tenant: TenantSummary) -> Sequence[TenantSummary]:
        claims = self._claims.get(tenant.key, ())
        return (tenant, *(each for claim in claims for each in claim.applied_to(tenant)))


def conflicts_with_tree(tree: TenantTree, write: ProposedWrite, usage: NamespaceUsage = no_usage) -> bool:
    """True if admission rejects the write because of other Tenants of the tree."""
    if write.creates and placement_denial(write.key.namespace, tree.by_namespace(write.key.namespace)):
        return True
    if write.sets_host and validate_host_change(tree, write.new, write.old):
        return True
    return write.sets_quotas and bool(validate_quota_change(tree, write.new, write.old, usage))


def conflicts_with_claims(
    tree: TenantTree, claims: Sequence[Claim], write: ProposedWrite, usage: NamespaceUsage = no_usage
) -> bool:
    """True if admission would reject the write after some of the claims have been stored. The tree alone allows it."""
    others = [each for each in claims if each.key != write.key]
    if not others:
        return False
    if write.needs_record and any(each.wide for each in others):
        return True
    possible = PossibleTree(tree, claims)
    if write.sets_quotas and validate_quota_change(possible, write.new, write.old, usage):
        return True
    return write.sets_host and _host_may_be_taken(possible, others, write)


def _host_may_be_taken(possible: PossibleTree, others: Iterable[Claim], write: ProposedWrite) -> bool:
    """True if the write and one of the claims may lead to equal effective hosts. A Tenant with children, as an ancestor
    of the written one is, may have descendants with all names below its own hosts."""
    after = ChangedTree(possible, write.new)
    mine = _Hosts.of(write.new, after)
    for claim in others:
        # two inherited hosts of new Tenants differ in their name or in the host of their parent
        both_inherit = claim.creates and write.creates and not write.new.host and not claim.outcomes[0].host
        tenant = possible.get(claim.key)
        if claim.sets_host and not both_inherit and tenant is not None and mine.may_meet(_Hosts.of(tenant, after)):
            return True
    return False


@dataclass(frozen=True, slots=True)
class _Hosts:
    """The effective hosts that a Tenant may have. Unless it `is_leaf`, its descendants may have all names below."""

    values: Set[str]
    is_leaf: bool

    @staticmethod
    def of(tenant: TenantSummary, tree: BaseTenantTree) -> _Hosts:
        return _Hosts(possible_hosts(tree, tenant), is_leaf=not tree.children(tenant.namespace))

    def may_meet(self, other: _Hosts) -> bool:
        return any(
            mine == theirs
            or (not other.is_leaf and mine.endswith(f".{theirs}"))
            or (not self.is_leaf and theirs.endswith(f".{mine}"))
            for mine in self.values
            for theirs in other.values
        )
