"""Validates spec.host: canonical when set, short enough for a label (FACT-6), and unique among Tenants (ATTACK-08).

Only changed values are validated; a value that is already stored passes. Error messages do not name the Tenant that has
a host. They name a descendant, whose host begins with its name, only to callers that may get it (ATTACK-15).
"""

from __future__ import annotations

from dataclasses import dataclass

from admission.tenant.disclosure import MASTERS_ONLY, Disclosure
from admission.tenant.host_policy import host_change_denial
from admission.tenant.spec_validation import TenantSpecValidation
from apiserver.meta.errors import FieldError, forbidden, invalid
from apiserver.meta.resource import Key
from apiserver.request.context import User
from registry.names import MAX_LABEL_VALUE, host_errors
from registry.tenant.summary import TenantSummary
from registry.tenant.tree import ChangedTree, TenantTree, effective_host

_FIELD = "spec.host"


@dataclass(frozen=True, slots=True)
class HostProblem:
    """A problem of the effective host of `tenant`, which is the written one or a descendant."""

    tenant: Key
    error: FieldError


def validate_host_change(
    tree: TenantTree, new: TenantSummary, old: TenantSummary | None, *, may_set_host: bool = True
) -> list[HostProblem]:
    """Problems of the effective hosts that result from the write; `old` is None on create. `may_set_host` is whether
    the user can follow the advice to set another host."""
    if new.host and (old is None or new.host != old.host):
        spelling_errors = [
            HostProblem(new.key, invalid(_FIELD, new.host, problem)) for problem in host_errors(new.host)
        ]
        if spelling_errors:
            return spelling_errors
    changes = changed_effective_hosts(tree, new, old)
    own = changes.get(new.key, "")
    if len(own) > MAX_LABEL_VALUE:
        why = (
            f"the effective host has {len(own)} characters, and must have no more than {MAX_LABEL_VALUE}; "
            f"{_remedy(new, may_set_host=may_set_host)}"
        )
        return [HostProblem(new.key, invalid(_FIELD, own, why))]
    return _duplicates(tree, changes)


def _remedy(new: TenantSummary, *, may_set_host: bool) -> str:
    if new.host:
        return "set a shorter spec.host"
    if may_set_host:
        return "choose a shorter name, or set a shorter spec.host"
    return "choose a shorter name, or ask a platform administrator to set a shorter spec.host"


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


def _duplicates(tree: TenantTree, changes: dict[Key, str]) -> list[HostProblem]:
    """A problem for each changed host that already belongs to a Tenant whose host does not change. The changed hosts
    cannot collide: each is a different chain of names before the same domain, and no name contains a dot."""
    return [
        HostProblem(
            key, FieldError("FieldValueDuplicate", _FIELD, host, "another tenant has this host; choose another one")
        )
        for key, host in changes.items()
        if any(each.key not in changes for each in tree.tenants_with_host(host))
    ]


class TenantHosts(TenantSpecValidation):
    name = "TenantHosts"

    def __init__(self, *, tree: TenantTree, disclosure: Disclosure = MASTERS_ONLY) -> None:
        super().__init__(tree=tree)
        self._disclosure = disclosure

    async def _field_errors(self, new: TenantSummary, old: TenantSummary | None, user: User) -> list[FieldError]:
        if old is not None and old.host == new.host:
            return []
        may_set_host = not host_change_denial("", "other", user.name, user.groups)
        problems = validate_host_change(self._tree, new, old, may_set_host=may_set_host)
        inherited = [each.tenant for each in problems if each.tenant != new.key]
        told = {new.key, *(await self._disclosure.names(user, inherited) if inherited else ())}
        found = [each.error for each in problems if each.tenant in told]
        if len(found) < len(problems):
            found.append(
                forbidden(_FIELD, "another tenant has a host that a sub-tenant would inherit; choose another one")
            )
        return found
