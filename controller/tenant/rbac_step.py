"""The step of the permissions in a Tenant's Namespace: its ServiceAccount, and RoleBindings of the ClusterRoles
cozy:tenant* to the Tenant's user groups and to the service accounts of the Tenant and its ancestors (R-024 to
R-026)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from apiserver.meta.resource import Object
from controller.runtime.conditions import Finding
from controller.tenant.helm_ownership import tenant_release
from controller.tenant.managed_objects import ContentWriter, ManagedKind, ObjectDigests
from controller.tenant.observe import ObservedTenant
from registry.cluster.interface import ROLEBINDINGS, SERVICEACCOUNTS
from registry.rbac import role_index as rbac
from registry.tenant.summary import TenantSummary

LEVELS = ("view", "use", "admin", "super-admin")
"""Each level includes the permissions of the levels before it."""
ROLE = "cozy:tenant"
ROLES = (ROLE, *(f"{ROLE}:{level}" for level in LEVELS))


def render_service_account(tenant: TenantSummary) -> Object:
    return {"metadata": {"name": tenant.namespace, "namespace": tenant.namespace}}


def render_role_binding(role: str, tenant: TenantSummary, ancestors: Sequence[TenantSummary]) -> Object:
    """The RoleBinding of one of ROLES, which has the name of the role."""
    level = role.removeprefix(ROLE).removeprefix(":")
    levels = LEVELS[LEVELS.index(level) :] if level else LEVELS
    groups = [{"kind": "Group", "name": f"{tenant.namespace}-{each}", "apiGroup": rbac.GROUP} for each in levels]
    accounts = [
        {"kind": "ServiceAccount", "name": each.namespace, "namespace": each.namespace} for each in (tenant, *ancestors)
    ]
    return {
        "metadata": {"name": role, "namespace": tenant.namespace},
        "roleRef": {"apiGroup": rbac.GROUP, "kind": "ClusterRole", "name": role},
        "subjects": [*groups, *accounts],
    }


def _normalize_role_binding(obj: Object) -> object:
    # the order of subjects has no meaning
    subjects = {
        (str(each.get("kind")), str(each.get("namespace") or ""), str(each.get("name")))
        for each in obj.get("subjects") or ()
    }
    return [_role(obj), sorted(subjects)]


def _role(binding: Object) -> list[object]:
    reference = binding.get("roleRef") or {}
    return [reference.get("kind"), reference.get("name")]


MANAGED_SERVICE_ACCOUNT = ManagedKind(
    resource=SERVICEACCOUNTS, normalize=lambda obj: "", selects=lambda namespace, name: name == namespace
)
MANAGED_ROLE_BINDING = ManagedKind(
    resource=ROLEBINDINGS,
    normalize=_normalize_role_binding,
    selects=lambda namespace, name: name in ROLES,
    must_be_replaced=lambda current, desired: _role(current) != _role(desired),
)


class RbacStep:
    """Findings: ChartConflict."""

    name = "access"
    condition = "AccessReady"

    def __init__(self, *, contents: ContentWriter, accounts: ObjectDigests, bindings: ObjectDigests) -> None:
        self._contents = contents
        self._accounts = accounts
        self._bindings = bindings

    async def run(self, observed: ObservedTenant) -> Sequence[Finding]:
        tenant, release = observed.tenant, tenant_release(observed.tenant)
        account = render_service_account(tenant)
        findings = [*await self._contents.ensure(self._accounts, lambda current: account, release)]
        for role in ROLES:
            binding = render_role_binding(role, tenant, observed.ancestors)
            findings += await self._contents.ensure(self._bindings, partial(_ignore_current, binding), release)
        return findings


def _ignore_current(desired: Object, current: Object | None) -> Object:
    return desired
