"""Lets the people of a Tenant see their own Tenant, which is stored in the parent's namespace.

There, a Role `cozy:tenant-self:<name>` grants reading this one Tenant, and a RoleBinding of the same name binds it to
the Tenant's groups and ServiceAccount. Both are owned by the HelmRelease: the finalizer deletes them, or the garbage
collector if there was no finalizer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from apiserver.meta.resource import Key, Object
from controller.runtime.conditions import Finding
from controller.tenant.managed_objects import ContentWriter, ManagedKind, ObjectDigests
from controller.tenant.planning.context import PlanningContext
from controller.tenant.rbac_subjects import account, groups, normalize_subjects, role_reference
from registry.cluster.interface import HELMRELEASES, ROLEBINDINGS, ROLES
from registry.names import GROUP, SELF_ROLE_PREFIX, release_name
from registry.rbac import role_index as rbac
from registry.tenant.summary import TenantSummary

VERBS = ("get", "list", "watch")
RESOURCES = ("tenants", "tenants/diff", "tenants/explain")


def self_role_name(tenant: str) -> str:
    return f"{SELF_ROLE_PREFIX}{tenant}"


def render_self_role(tenant: TenantSummary) -> Object:
    rule = {
        "apiGroups": [GROUP],
        "resources": list(RESOURCES),
        "resourceNames": [tenant.key.name],
        "verbs": list(VERBS),
    }
    return {"metadata": _metadata(tenant), "rules": [rule]}


def render_self_role_binding(tenant: TenantSummary) -> Object:
    name = self_role_name(tenant.key.name)
    return {
        "metadata": _metadata(tenant),
        "roleRef": {"apiGroup": rbac.GROUP, "kind": "Role", "name": name},
        "subjects": [*groups(tenant), account(tenant)],
    }


def _metadata(tenant: TenantSummary) -> Object:
    """The owner does not wait for these objects when it is deleted, so no right to its finalizers is needed."""
    owner = {
        "apiVersion": HELMRELEASES.api_version,
        "kind": HELMRELEASES.kind,
        "name": release_name(tenant.key.name),
        "uid": tenant.uid,
    }
    return {"name": self_role_name(tenant.key.name), "namespace": tenant.key.namespace, "ownerReferences": [owner]}


def _owners(obj: Object) -> list[str]:
    """The uids of the HelmReleases that own the object."""
    references = obj["metadata"].get("ownerReferences") or ()
    return sorted(each.get("uid", "") for each in references if each.get("kind") == HELMRELEASES.kind)


def _normalize_role(obj: Object) -> object:
    # the order within a rule has no meaning
    rules = [{field: sorted(values) for field, values in rule.items()} for rule in obj.get("rules") or ()]
    return [rules, _owners(obj)]


def _normalize_binding(obj: Object) -> object:
    return [role_reference(obj), normalize_subjects(obj), _owners(obj)]


def _selects(namespace: str, name: str) -> bool:
    return name.startswith(SELF_ROLE_PREFIX)


MANAGED_SELF_ROLE = ManagedKind(resource=ROLES, normalize=_normalize_role, selects=_selects)
MANAGED_SELF_ROLE_BINDING = ManagedKind(
    resource=ROLEBINDINGS,
    normalize=_normalize_binding,
    selects=_selects,
    must_be_replaced=lambda current, desired: role_reference(current) != role_reference(desired),
)


def enqueue_tenant_of(enqueue: Callable[[Key], None]) -> Callable[[Key], None]:
    """Returns a handler that enqueues the Tenant of a changed Role or RoleBinding."""
    return lambda key: enqueue(Key(key.namespace, key.name.removeprefix(SELF_ROLE_PREFIX)))


class SelfAccess:
    """Methods raise the cluster's StatusError, and NotLeading."""

    def __init__(self, *, contents: ContentWriter, roles: ObjectDigests, bindings: ObjectDigests) -> None:
        self._contents = contents
        self._roles = roles
        self._bindings = bindings

    def planning(self, context: PlanningContext) -> SelfAccess:
        return SelfAccess(contents=context.contents, roles=self._roles, bindings=self._bindings)

    async def ensure(self, tenant: TenantSummary) -> Sequence[Finding]:
        """Nobody has to see the root beside those who see all."""
        if tenant.is_root:
            return []
        role, binding = render_self_role(tenant), render_self_role_binding(tenant)
        return [
            *await self._contents.ensure(self._roles, lambda current: role, None),
            *await self._contents.ensure(self._bindings, lambda current: binding, None),
        ]

    async def remove(self, tenant: Key) -> None:
        """Delete what was created for a Tenant, which need not exist. No request is sent if there is nothing."""
        for digests in (self._bindings, self._roles):
            await self._contents.remove(digests, tenant.namespace, self_role_name(tenant.name))
