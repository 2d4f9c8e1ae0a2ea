"""Which Tenants may be deleted. First come the exceptions that keep anything from ever hanging on this rule."""

from __future__ import annotations

from collections.abc import Sequence

from admission.namespace_source import NamespaceSource
from admission.plugin_rule import TENANTS, Rule
from apiserver.admission import Attributes
from apiserver.meta import errors
from apiserver.meta.errors import StatusError
from registry.cluster.interface import is_terminating
from registry.names import CASCADE_ANNOTATION
from registry.tenant.summary import TenantFacts, facts_of
from registry.tenant.tree import Tree

_CONTROLLERS = frozenset(
    (
        "system:serviceaccount:kube-system:namespace-controller",
        "system:serviceaccount:kube-system:generic-garbage-collector",
    )
)
_NAMED_CHILDREN = 10


def belongs_to_running_deletion(user: str, parent: TenantFacts | None) -> bool:
    """Whether the deletion belongs to one that is under way."""
    return user in _CONTROLLERS or (parent is not None and parent.terminating)


def refusal(facts: TenantFacts, children: Sequence[TenantFacts], propagation_policy: str) -> StatusError | None:
    """403 for the root; 409, with their names, for a Tenant with children whose deletion does not say that it is
    meant to cascade."""
    if facts.is_root:
        return errors.Forbidden(TENANTS, facts.key.name, "the root tenant cannot be deleted")
    if not children or propagation_policy == "Foreground" or facts.allow_cascade:
        return None
    return errors.Conflict(
        TENANTS,
        facts.key.name,
        f"the tenant has child tenants: {_names(children)}; delete them first, or delete with "
        f'propagationPolicy=Foreground or the annotation {CASCADE_ANNOTATION}: "true" on the tenant',
    )


def _names(children: Sequence[TenantFacts]) -> str:
    names = [each.key.name for each in children]
    more = len(names) - _NAMED_CHILDREN
    return ", ".join(names[:_NAMED_CHILDREN]) + (f" and {more} more" if more > 0 else "")


class TenantDeletion:
    """Relies on TreeGuard for the tree to hold still."""

    name = "TenantDeletion"
    _rule = Rule(TENANTS, frozenset(("DELETE",)))

    def __init__(self, *, tree: Tree, namespaces: NamespaceSource) -> None:
        self._tree = tree
        self._namespaces = namespaces

    def handles(self, attributes: Attributes) -> bool:
        return self._rule.matches(attributes)

    async def validate(self, attributes: Attributes) -> None:
        assert attributes.old_object is not None
        facts = facts_of(attributes.old_object)
        if belongs_to_running_deletion(attributes.user.name, self._tree.parent(facts)):
            return
        policy = attributes.options.get("propagationPolicy") or ""
        refused = refusal(facts, self._tree.children(facts.namespace), policy)
        if refused is not None and not await self._is_namespace_being_deleted(facts.key.namespace):
            raise refused

    async def _is_namespace_being_deleted(self, name: str) -> bool:
        """Whether the namespace is being deleted, or gone. The cache may not know yet, so a refusal asks the host."""
        cached = self._namespaces.get(name)
        if cached is not None and is_terminating(cached):
            return True
        live = await self._namespaces.live(name)
        return live is None or is_terminating(live)
