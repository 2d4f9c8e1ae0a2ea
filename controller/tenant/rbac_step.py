"""The step of who may do what in a Tenant's Namespace: its ServiceAccount, and RoleBindings to the ClusterRoles
cozy:tenant* for its people and for the service accounts of the Tenant and its ancestors (R-024 to R-026)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from apiserver.meta.resource import Object
from controller.runtime.conditions import Finding
from controller.tenant.helm_ownership import tenant_release
from controller.tenant.managed_objects import ContentWriter, Marks, Part
from controller.tenant.observe import Observed
from registry.cluster.interface import ROLEBINDINGS, SERVICEACCOUNTS
from registry.rbac import role_index as rbac
from registry.tenant.summary import TenantFacts

LEVELS = ("view", "use", "admin", "super-admin")
"""Each may what those before it may."""
ROLE = "cozy:tenant"
ROLES = (ROLE, *(f"{ROLE}:{level}" for level in LEVELS))


def render_account(facts: TenantFacts) -> Object:
    return {"metadata": {"name": facts.namespace, "namespace": facts.namespace}}


def render_binding(role: str, facts: TenantFacts, ancestors: Sequence[TenantFacts]) -> Object:
    """The RoleBinding of one of ROLES, and of that name."""
    level = role.removeprefix(ROLE).removeprefix(":")
    levels = LEVELS[LEVELS.index(level) :] if level else LEVELS
    groups = [{"kind": "Group", "name": f"{facts.namespace}-{each}", "apiGroup": rbac.GROUP} for each in levels]
    accounts = [
        {"kind": "ServiceAccount", "name": each.namespace, "namespace": each.namespace} for each in (facts, *ancestors)
    ]
    return {
        "metadata": {"name": role, "namespace": facts.namespace},
        "roleRef": {"apiGroup": rbac.GROUP, "kind": "ClusterRole", "name": role},
        "subjects": [*groups, *accounts],
    }


def _binding(obj: Object) -> object:
    # in which order they stand is nobody's business
    subjects = {
        (str(each.get("kind")), str(each.get("namespace") or ""), str(each.get("name")))
        for each in obj.get("subjects") or ()
    }
    return [_role(obj), sorted(subjects)]


def _role(binding: Object) -> list[object]:
    reference = binding.get("roleRef") or {}
    return [reference.get("kind"), reference.get("name")]


ACCOUNT_PART = Part(resource=SERVICEACCOUNTS, essence=lambda obj: "", belongs=lambda namespace, name: name == namespace)
BINDING_PART = Part(
    resource=ROLEBINDINGS,
    essence=_binding,
    belongs=lambda namespace, name: name in ROLES,
    must_be_replaced=lambda current, desired: _role(current) != _role(desired),
)


class AccessStep:
    """Findings: ChartConflict."""

    name = "access"
    condition = "AccessReady"

    def __init__(self, *, writer: ContentWriter, accounts: Marks, bindings: Marks) -> None:
        self._writer = writer
        self._accounts = accounts
        self._bindings = bindings

    async def run(self, observed: Observed) -> Sequence[Finding]:
        facts, release = observed.facts, tenant_release(observed.facts)
        account = render_account(facts)
        findings = [*await self._writer.ensure(self._accounts, lambda current: account, release)]
        for role in ROLES:
            binding = render_binding(role, facts, observed.ancestors)
            findings += await self._writer.ensure(self._bindings, partial(_whatever_is_there, binding), release)
        return findings


def _whatever_is_there(desired: Object, current: Object | None) -> Object:
    return desired
