"""The subjects of RoleBindings: the groups of a Tenant's people, one for each level, and its ServiceAccount. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from apiserver.meta.resource import Object
from registry.rbac import role_index as rbac
from registry.tenant.summary import TenantSummary

LEVELS = ("view", "use", "admin", "super-admin")
"""Each level includes the permissions of the levels before it."""


def groups(tenant: TenantSummary, levels: Sequence[str] = LEVELS) -> Sequence[Object]:
    return [{"kind": "Group", "name": f"{tenant.namespace}-{level}", "apiGroup": rbac.GROUP} for level in levels]


def account(tenant: TenantSummary) -> Object:
    return {"kind": "ServiceAccount", "name": tenant.namespace, "namespace": tenant.namespace}


def normalize_subjects(binding: Object) -> object:
    """Equal for equal sets of subjects: their order has no meaning."""
    subjects = {
        (str(each.get("kind")), str(each.get("namespace") or ""), str(each.get("name")))
        for each in binding.get("subjects") or ()
    }
    return sorted(subjects)


def role_reference(binding: Object) -> list[object]:
    reference = binding.get("roleRef") or {}
    return [reference.get("kind"), reference.get("name")]
