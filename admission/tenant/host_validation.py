"""Validates spec.host: canonical when set, short enough for a label (FACT-6), and unique among Tenants (ATTACK-08).

Only what the write changes is validated; a value that is already stored passes. Error messages name no other Tenant
(ATTACK-15).
"""

from __future__ import annotations

from admission.tenant.spec_validation import TenantSpecValidation
from apiserver.meta.errors import FieldError, invalid
from apiserver.meta.resource import Key
from registry.names import MAX_LABEL_VALUE, host_errors
from registry.tenant.summary import TenantSummary
from registry.tenant.tree import ChangedTree, TenantTree, effective_host

_FIELD = "spec.host"


def validate_host_change(tree: TenantTree, new: TenantSummary, old: TenantSummary | None) -> list[FieldError]:
    """Errors of the effective hosts that result from the write; `old` is None on create."""
    if new.host and (old is None or new.host != old.host):
        spelling_errors = [invalid(_FIELD, new.host, problem) for problem in host_errors(new.host)]
        if spelling_errors:
            return spelling_errors
    changes = changed_effective_hosts(tree, new, old)
    own = changes.get(new.key, "")
    if len(own) > MAX_LABEL_VALUE:
        why = f"the effective host has {len(own)} characters, and must have no more than {MAX_LABEL_VALUE}"
        return [invalid(_FIELD, own, why)]
    return _duplicates(tree, changes)


def changed_effective_hosts(tree: TenantTree, new: TenantSummary, old: TenantSummary | None) -> dict[Key, str]:
    """The effective hosts that the write changes, of the Tenant and of its descendants."""
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
    """An error for each changed host that already belongs to a Tenant whose host does not change. The changed hosts
    cannot collide: each is a different chain of names before the same domain, and no name contains a dot."""
    return [
        FieldError("FieldValueDuplicate", _FIELD, host, "another tenant has this host")
        for host in changes.values()
        if any(each.key not in changes for each in tree.tenants_with_host(host))
    ]


class TenantHosts(TenantSpecValidation):
    name = "TenantHosts"

    def _field_errors(self, new: TenantSummary, old: TenantSummary | None) -> list[FieldError]:
        if old is not None and old.host == new.host:
            return []
        return validate_host_change(self._tree, new, old)
