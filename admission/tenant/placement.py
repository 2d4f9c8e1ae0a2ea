"""Where a Tenant may be created: in the workload namespace of a Tenant that stays."""

from __future__ import annotations

from admission.plugin_rule import TENANTS, Rule, name_in_refusal
from apiserver.admission import Attributes
from apiserver.meta import errors
from registry.tenant.summary import TenantFacts
from registry.tenant.tree import Tree


def refusal(namespace: str, owner: TenantFacts | None) -> str:
    """Why no Tenant can be created in `namespace`, whose Tenant is `owner`; empty if one can."""
    if owner is None:
        return (
            "a tenant can be created only in the workload namespace of an existing tenant, "
            f'and namespace "{namespace}" is not one'
        )
    if owner.terminating:
        return f'the tenant of namespace "{namespace}" is being deleted'
    return ""


class TenantPlacement:
    name = "TenantPlacement"
    _rule = Rule(TENANTS, frozenset(("CREATE",)))

    def __init__(self, *, tree: Tree) -> None:
        self._tree = tree

    def handles(self, attributes: Attributes) -> bool:
        return self._rule.matches(attributes)

    async def validate(self, attributes: Attributes) -> None:
        if why := refusal(attributes.namespace, self._tree.by_namespace(attributes.namespace)):
            raise errors.Forbidden(TENANTS, name_in_refusal(attributes), why)
