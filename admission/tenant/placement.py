"""Restricts creation of Tenants to workload namespaces of Tenants that are not being deleted."""

from __future__ import annotations

from admission.plugin_rule import TENANTS, PluginRule, name_for_errors
from apiserver.admission import Attributes
from apiserver.meta import errors
from registry.tenant.summary import TenantSummary
from registry.tenant.tree import BaseTenantTree


def placement_denial(namespace: str, owner: TenantSummary | None) -> str:
    """The reason why no Tenant can be created in `namespace`; empty if it is allowed. `owner` is the Tenant whose
    workload namespace it is."""
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
    _rule = PluginRule(TENANTS, frozenset(("CREATE",)))

    def __init__(self, *, tree: BaseTenantTree) -> None:
        self._tree = tree

    def handles(self, attributes: Attributes) -> bool:
        return self._rule.matches(attributes)

    async def validate(self, attributes: Attributes) -> None:
        if why := placement_denial(attributes.namespace, self._tree.by_namespace(attributes.namespace)):
            raise errors.Forbidden(TENANTS, name_for_errors(attributes), why)
