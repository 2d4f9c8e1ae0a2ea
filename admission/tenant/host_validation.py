"""What a host may be: canonical when it is set, short enough for a label (FACT-6), and held by one Tenant (ATTACK-08).

A write is judged by what it changes; what stands already passes. Refusals name no other Tenant (ATTACK-15).
"""

from __future__ import annotations

from admission.plugin_rule import TENANTS, WRITES, Rule, name_for_errors
from apiserver.admission import Attributes
from apiserver.meta import errors
from apiserver.meta.errors import FieldError, invalid
from apiserver.meta.resource import Key
from registry.names import MAX_LABEL_VALUE, host_errors
from registry.tenant.summary import TenantFacts, facts_of
from registry.tenant.tree import ChangedTree, TenantTree, effective_host

_FIELD = "spec.host"


def validate_host_change(tree: TenantTree, new: TenantFacts, old: TenantFacts | None) -> list[FieldError]:
    """What is wrong with the hosts that making `old` into `new` leads to; `old` is None on create."""
    if new.host and (old is None or new.host != old.host):
        spelling = [invalid(_FIELD, new.host, problem) for problem in host_errors(new.host)]
        if spelling:
            return spelling
    changes = changed_effective_hosts(tree, new, old)
    own = changes.get(new.key, "")
    if len(own) > MAX_LABEL_VALUE:
        why = f"the effective host has {len(own)} characters, and must have no more than {MAX_LABEL_VALUE}"
        return [invalid(_FIELD, own, why)]
    return _duplicates(tree, changes)


def changed_effective_hosts(tree: TenantTree, new: TenantFacts, old: TenantFacts | None) -> dict[Key, str]:
    """The new effective hosts, of the Tenant and its descendants, that differ from those before."""
    after = ChangedTree(tree, new)
    host = effective_host(after, new)
    before = effective_host(tree, old) if old is not None else None
    if host is None or (before is not None and before.value == host.value):
        return {}
    changes = {new.key: host.value}
    for each in after.descendants(new):
        inherited = effective_host(after, each)
        if inherited is not None and inherited.namespace == host.namespace:
            changes[each.key] = inherited.value
    return changes


def _duplicates(tree: TenantTree, changes: dict[Key, str]) -> list[FieldError]:
    """The changed hosts that Tenants beyond the change hold. Among themselves they differ: each is another chain of
    names before one domain, and no name holds a dot."""
    return [
        FieldError("FieldValueDuplicate", _FIELD, host, "another tenant has this host")
        for host in changes.values()
        if any(each.key not in changes for each in tree.tenants_with_host(host))
    ]


class TenantHosts:
    """Relies on TreeGuard for the tree to hold still."""

    name = "TenantHosts"
    _rule = Rule(TENANTS, WRITES)

    def __init__(self, *, tree: TenantTree) -> None:
        self._tree = tree

    def handles(self, attributes: Attributes) -> bool:
        return self._rule.matches(attributes)

    async def validate(self, attributes: Attributes) -> None:
        assert attributes.object is not None
        old = facts_of(attributes.old_object) if attributes.old_object is not None else None
        new = facts_of(attributes.object)
        if old is not None and old.host == new.host:
            return
        if problems := validate_host_change(self._tree, new, old):
            raise errors.Invalid(attributes.resource.group_kind, name_for_errors(attributes), problems)
