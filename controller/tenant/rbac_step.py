"""The step of the permissions in a Tenant's Namespace: its ServiceAccount, and RoleBindings of the ClusterRoles
cozy:tenant* to the user groups and the service accounts of the Tenant and its ancestors (R-024 to R-026)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from apiserver.meta.resource import Object
from controller.runtime.conditions import Finding
from controller.tenant.bound_roles import ACCESS_READY, missing_role_findings
from controller.tenant.helm_ownership import tenant_release
from controller.tenant.managed_objects import ContentWriter, ManagedKind, ObjectDigests
from controller.tenant.observe import ObservedTenant
from controller.tenant.rbac_subjects import LEVELS, account, groups, normalize_subjects, role_reference
from controller.tenant.self_access import SelfAccess
from registry.cluster.interface import ROLEBINDINGS, SERVICEACCOUNTS
from registry.rbac import role_index as rbac
from registry.tenant.summary import TenantSummary

ROLE = "cozy:tenant"
ROLES = (ROLE, *(f"{ROLE}:{level}" for level in LEVELS))


def render_service_account(tenant: TenantSummary) -> Object:
    return {"metadata": {"name": tenant.namespace, "namespace": tenant.namespace}}


def render_role_binding(role: str, tenant: TenantSummary, ancestors: Sequence[TenantSummary]) -> Object:
    """The RoleBinding of one of ROLES, which has the name of the role. People of an ancestor have in every descendant
    the level that they have at home."""
    level = role.removeprefix(ROLE).removeprefix(":")
    levels = LEVELS[LEVELS.index(level) :] if level else LEVELS
    family = (tenant, *ancestors)
    return {
        "metadata": {"name": role, "namespace": tenant.namespace},
        "roleRef": {"apiGroup": rbac.GROUP, "kind": "ClusterRole", "name": role},
        "subjects": [*(group for each in family for group in groups(each, levels)), *map(account, family)],
    }


def _normalize_role_binding(obj: Object) -> object:
    return [role_reference(obj), normalize_subjects(obj)]


MANAGED_SERVICE_ACCOUNT = ManagedKind(
    resource=SERVICEACCOUNTS, normalize=lambda obj: "", selects=lambda namespace, name: name == namespace
)
MANAGED_ROLE_BINDING = ManagedKind(
    resource=ROLEBINDINGS,
    normalize=_normalize_role_binding,
    selects=lambda namespace, name: name in ROLES,
    must_be_replaced=lambda current, desired: role_reference(current) != role_reference(desired),
)


class RbacStep:
    """Findings: ChartConflict, and AccessReady if a role is missing."""

    name = "access"
    condition = ACCESS_READY

    def __init__(
        self,
        *,
        contents: ContentWriter,
        accounts: ObjectDigests,
        bindings: ObjectDigests,
        self_access: SelfAccess,
        missing_roles: Callable[[], Sequence[str]],
    ) -> None:
        """`missing_roles` returns those of ROLES that do not exist."""
        self._contents = contents
        self._accounts = accounts
        self._bindings = bindings
        self._self_access = self_access
        self._missing_roles = missing_roles

    async def run(self, observed: ObservedTenant) -> Sequence[Finding]:
        tenant, release = observed.tenant, tenant_release(observed.tenant)
        service_account = render_service_account(tenant)
        findings = [*await self._contents.ensure(self._accounts, lambda current: service_account, release)]
        for role in ROLES:
            binding = render_role_binding(role, tenant, observed.ancestors)
            findings += await self._contents.ensure(self._bindings, partial(_ignore_current, binding), release)
        findings += await self._self_access.ensure(tenant)
        return [*findings, *missing_role_findings(self._missing_roles())]


def _ignore_current(desired: Object, current: Object | None) -> Object:
    return desired
