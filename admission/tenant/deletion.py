"""Decides whether a Tenant may be deleted. A deletion that is part of another one in progress is always allowed, so
that this plugin cannot block it."""

from __future__ import annotations

from collections.abc import Sequence

from admission.namespace_source import NamespaceSource
from admission.plugin_rule import TENANTS, PluginRule
from apiserver.admission import Attributes
from apiserver.meta import errors
from apiserver.meta.errors import StatusError
from registry.cluster.interface import is_terminating
from registry.names import CASCADE_ANNOTATION
from registry.tenant.summary import TenantSummary, summarize
from registry.tenant.tree import BaseTenantTree

_CONTROLLERS = frozenset(
    (
        "system:serviceaccount:kube-system:namespace-controller",
        "system:serviceaccount:kube-system:generic-garbage-collector",
    )
)
_NAMED_CHILDREN = 10


def belongs_to_running_deletion(user: str, parent: TenantSummary | None) -> bool:
    """Reports whether the deletion is part of the deletion of a namespace or a parent Tenant that is already in
    progress."""
    return user in _CONTROLLERS or (parent is not None and parent.terminating)


def deletion_error(
    tenant: TenantSummary, children: Sequence[TenantSummary], propagation_policy: str
) -> StatusError | None:
    """403 for the root Tenant; 409 with the names of the children for a Tenant that has some, unless a cascading
    deletion is requested."""
    if tenant.is_root:
        return errors.Forbidden(TENANTS, tenant.key.name, "the root tenant cannot be deleted")
    if not children or propagation_policy == "Foreground" or tenant.allow_cascade:
        return None
    return errors.Conflict(
        TENANTS,
        tenant.key.name,
        f"the tenant has child tenants: {_names(children)}; delete them first, or delete with "
        f'propagationPolicy=Foreground or the annotation {CASCADE_ANNOTATION}: "true" on the tenant',
    )


def _names(children: Sequence[TenantSummary]) -> str:
    names = [each.key.name for each in children]
    more = len(names) - _NAMED_CHILDREN
    return ", ".join(names[:_NAMED_CHILDREN]) + (f" and {more} more" if more > 0 else "")


class TenantDeletion:
    """Must run after TreeGuard, whose lock keeps the tree from changing until the deletion is stored."""

    name = "TenantDeletion"
    _rule = PluginRule(TENANTS, frozenset(("DELETE",)))

    def __init__(self, *, tree: BaseTenantTree, namespaces: NamespaceSource) -> None:
        self._tree = tree
        self._namespaces = namespaces

    def handles(self, attributes: Attributes) -> bool:
        return self._rule.matches(attributes)

    async def validate(self, attributes: Attributes) -> None:
        assert attributes.old_object is not None
        tenant = summarize(attributes.old_object)
        if belongs_to_running_deletion(attributes.user.name, self._tree.parent(tenant)):
            return
        policy = attributes.options.get("propagationPolicy") or ""
        error = deletion_error(tenant, self._tree.children(tenant.namespace), policy)
        if error is not None and not await self._is_namespace_being_deleted(tenant.key.namespace):
            raise error

    async def _is_namespace_being_deleted(self, name: str) -> bool:
        """Reports whether the namespace is being deleted or deleted already. The cache may lag behind, so the cluster
        is read before a request is rejected."""
        cached = self._namespaces.get(name)
        if cached is not None and is_terminating(cached):
            return True
        live = await self._namespaces.get_live(name)
        return live is None or is_terminating(live)
