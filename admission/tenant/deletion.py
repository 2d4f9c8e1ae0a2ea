"""Decides whether a Tenant may be deleted.

A deletion in the course of another one that includes children, such as that of the parent, is always allowed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from admission.namespace_source import NamespaceSource
from admission.plugin_rule import TENANTS, PluginRule
from admission.tenant.disclosure import MASTERS_ONLY, Disclosure
from apiserver.admission import Attributes
from apiserver.meta import errors
from apiserver.meta.errors import StatusError
from registry.cluster.interface import is_terminating
from registry.names import CASCADE_ANNOTATION
from registry.tenant.summary import TenantSummary, summarize
from registry.tenant.tree import BaseTenantTree

# The garbage collector is not one of them: a user who sets or deletes an owner may not know of the children.
_NAMESPACE_CONTROLLER = "system:serviceaccount:kube-system:namespace-controller"
_NAMED_CHILDREN = 10
_CASCADE_HINT = (
    ", or have them deleted with it: kubectl delete --cascade=foreground, or the annotation "
    f'{CASCADE_ANNOTATION}: "true" on the tenant'
)


def is_foreground(tenant: TenantSummary, options: Mapping[str, Any]) -> bool:
    """True if a deletion with these DeleteOptions is in the foreground; without a policy, finalizers decide
    (WIRE-D90)."""
    policy = options.get("propagationPolicy") or ""
    undecided = not policy and options.get("orphanDependents") is None
    return policy == "Foreground" or (undecided and tenant.foreground)


def is_refused(tenant: TenantSummary, children: Sequence[TenantSummary], *, foreground: bool) -> bool:
    """True for the root Tenant, and for one with children unless a cascading deletion is requested."""
    return tenant.is_root or (bool(children) and not foreground and not tenant.allow_cascade)


def deletion_error(
    tenant: TenantSummary, *, visible: Sequence[TenantSummary], all_visible: bool, finalizes: bool = True
) -> StatusError:
    """The refusal: 403 for the root Tenant, else 409. It names the `visible` children, and does not count those that
    the caller may not get (ATTACK-15). It explains how to delete them only if a controller `finalizes` Tenants, since
    that controller deletes their children."""
    if tenant.is_root:
        return errors.Forbidden(TENANTS, tenant.key.name, "the root tenant cannot be deleted")
    remedies = f"delete them first{_CASCADE_HINT if finalizes else ''}"
    return errors.Conflict(TENANTS, tenant.key.name, f"the tenant has {_describe(visible, all_visible)}; {remedies}")


def _describe(visible: Sequence[TenantSummary], all_visible: bool) -> str:
    if not visible:
        return "sub-tenants that you may not see"
    names = [each.key.name for each in visible]
    more = len(names) - _NAMED_CHILDREN
    listed = ", ".join(names[:_NAMED_CHILDREN]) + (f" and {more} more" if more > 0 else "")
    others = "" if all_visible else ", and others that you may not see"
    return f"child tenants: {listed}{others}"


class TenantDeletion:
    """Must run after TreeGuard, whose lock keeps the tree from changing until the deletion is stored. With
    `finalizes`, a controller deletes the children of a Tenant that is deleted with them."""

    name = "TenantDeletion"
    _rule = PluginRule(TENANTS, frozenset(("DELETE",)))

    def __init__(
        self,
        *,
        tree: BaseTenantTree,
        namespaces: NamespaceSource,
        finalizes: bool = True,
        disclosure: Disclosure = MASTERS_ONLY,
    ) -> None:
        self._tree = tree
        self._namespaces = namespaces
        self._finalizes = finalizes
        self._disclosure = disclosure

    def handles(self, attributes: Attributes) -> bool:
        return self._rule.matches(attributes)

    async def validate(self, attributes: Attributes) -> None:
        assert attributes.old_object is not None
        tenant = summarize(attributes.old_object)
        if self._belongs_to_running_deletion(attributes.user.name, tenant):
            return
        children = self._tree.children(tenant.namespace)
        if not is_refused(tenant, children, foreground=is_foreground(tenant, attributes.options)):
            return
        if await self._is_namespace_being_deleted(tenant.key.namespace):
            return
        visible = await self._disclosure.visible(attributes.user, children)
        raise deletion_error(
            tenant, visible=visible, all_visible=len(visible) == len(children), finalizes=self._finalizes
        )

    def _belongs_to_running_deletion(self, user: str, tenant: TenantSummary) -> bool:
        """True if the namespace, or the parent together with its children, is being deleted already."""
        if user == _NAMESPACE_CONTROLLER:
            return True
        parent = self._tree.parent(tenant)
        if parent is None or not parent.terminating:
            return False
        above = self._namespaces.get(parent.key.namespace)
        return parent.cascades or (above is not None and is_terminating(above))

    async def _is_namespace_being_deleted(self, name: str) -> bool:
        """Reports whether the namespace is being deleted or deleted already. The cache may lag behind, so the cluster
        is read before a request is rejected."""
        cached = self._namespaces.get(name)
        if cached is not None and is_terminating(cached):
            return True
        live = await self._namespaces.get_live(name)
        return live is None or is_terminating(live)
