"""The step of the permissions in a Tenant's Namespace: its ServiceAccount, and RoleBindings of the ClusterRoles
cozy:tenant* to the user groups and the service accounts of the Tenant and its ancestors (R-024 to R-026)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain

from apiserver.meta.resource import Object
from controller.runtime.conditions import Finding
from controller.runtime.parallel import run_all
from controller.tenant.bound_roles import ACCESS_READY, missing_role_findings
from controller.tenant.helm_ownership import ObjectManager, tenant_release
from controller.tenant.managed_objects import ContentWriter, ManagedKind, ObjectDigests
from controller.tenant.observe import ObservedTenant
from controller.tenant.planning.context import PlanningContext
from controller.tenant.quota.first_limits import WAITS_FOR_QUOTA
from controller.tenant.rbac_subjects import LEVELS, account, groups, normalize_subjects, role_reference
from controller.tenant.self_access import SelfAccess
from registry.cluster.interface import ROLEBINDINGS, SERVICEACCOUNTS
from registry.rbac import role_index as rbac
from registry.tenant.summary import TenantSummary

_WAITS_FOR_ISOLATION = Finding(
    ACCESS_READY, "False", "WaitsForIsolation", "nobody gets access to the namespace before it is isolated"
)
_WAITS_FOR_QUOTA = Finding(
    ACCESS_READY,
    "Unknown",
    WAITS_FOR_QUOTA,
    "nobody gets access to the namespace before the quota controller (of kube-controller-manager) has put its limits "
    "into effect",
)
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
    """Findings: ChartConflict, and AccessReady if a role is missing or the Namespace is not isolated or limited yet.

    `isolated` and `limited` return whether RoleBindings may be created in a Namespace: their subjects can start Pods.
    Those that exist are kept and updated.
    """

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
        isolated: Callable[[str], bool],
        limited: Callable[[ObservedTenant], bool],
    ) -> None:
        """`missing_roles` returns those of ROLES that do not exist."""
        self._contents = contents
        self._accounts = accounts
        self._bindings = bindings
        self._self_access = self_access
        self._missing_roles = missing_roles
        self._isolated = isolated
        self._limited = limited

    def planning(self, context: PlanningContext) -> RbacStep:
        """Waits for nothing: the policies and limits that come first are planned with it."""
        return RbacStep(
            contents=context.contents,
            accounts=self._accounts,
            bindings=self._bindings,
            self_access=self._self_access.planning(context),
            missing_roles=self._missing_roles,
            isolated=lambda namespace: True,
            limited=lambda observed: True,
        )

    async def run(self, observed: ObservedTenant) -> Sequence[Finding]:
        tenant, release = observed.tenant, tenant_release(observed.tenant)
        service_account = render_service_account(tenant)
        obstacle = self._obstacle(observed)
        roles = [role for role in ROLES if obstacle is None or self._is_bound(tenant, role)]
        bindings = [render_role_binding(role, tenant, observed.ancestors) for role in roles]
        writes = [
            self._contents.ensure(digests, partial(_ignore_current, each), release)
            for digests, each in ((self._accounts, service_account), *((self._bindings, each) for each in bindings))
            if not self._contents.is_current(digests, each, release)
        ]
        found = await run_all([*writes, self._self_access.ensure(tenant)])
        return [*chain(*found), *([obstacle] if obstacle is not None else missing_role_findings(self._missing_roles()))]

    def _obstacle(self, observed: ObservedTenant) -> Finding | None:
        if not self._isolated(observed.tenant.namespace):
            return _WAITS_FOR_ISOLATION
        had_access = any(self._is_bound(observed.tenant, role) for role in ROLES)
        return None if had_access or self._limited(observed) else _WAITS_FOR_QUOTA

    def _is_bound(self, tenant: TenantSummary, role: str) -> bool:
        """True if people were given access. A RoleBinding of somebody else is none that was given."""
        known = self._bindings.get(tenant.namespace, role)
        return known is not None and known.manager is not ObjectManager.OTHER


def _ignore_current(desired: Object, current: Object | None) -> Object:
    return desired
