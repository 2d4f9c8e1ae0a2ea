"""The objects that the controllers write into the namespaces of Tenants, for which quotas of counts need room. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from registry import quantity
from registry.tenant.cluster_roles import TENANT_ROLES
from registry.tenant.quota_keys import NANO, canonical_key, key_errors, value_errors
from registry.tenant.quota_pools import Pool
from registry.tenant.summary import TenantSummary
from registry.tenant.tree import BaseTenantTree

QUOTAS, BINDINGS = "resourcequotas", "count/rolebindings.rbac.authorization.k8s.io"
_KINDS: Mapping[str, str] = {QUOTAS: "ResourceQuotas", BINDINGS: "RoleBindings"}
_LEAST: Mapping[str, int] = {QUOTAS: 2, BINDINGS: len(TENANT_ROLES)}
"""The objects of ours in the namespace of a Tenant with quotas and without children, by canonical key. Others of ours
are there before a quota comes into effect, and are only updated later."""


def room_errors(key: str, value: str | int) -> list[str]:
    """The reason why a Tenant with this quota cannot be set up."""
    least = _LEAST.get(canonical_key(key))
    if least is None or key_errors(key) or value_errors(key, value) or quantity.parse_limit(value) >= least:
        return []
    kind = _KINDS[canonical_key(key)]
    return [f"must be at least {least}: the controller itself creates {least} {kind} in the namespace of the tenant"]


def own_objects(tree: BaseTenantTree, tenant: TenantSummary) -> Mapping[str, int]:
    """The number of our objects in the namespace of a Tenant, by canonical key. The people of each child are bound to
    their Tenant in the namespace of its parent. A Tenant without quotas of its own has a part of a pool at most."""
    return {
        QUOTAS: _LEAST[QUOTAS] if tenant.quotas else 1,
        BINDINGS: _LEAST[BINDINGS] + len(tree.children(tenant.namespace)),
    }


def lacking_room(tree: BaseTenantTree, pools: Mapping[str, Pool]) -> Mapping[str, int]:
    """The number of our objects in all namespaces of a pool, by canonical key, of the `pools` that have no room for
    them."""
    found = {}
    for key in _LEAST.keys() & pools.keys():
        members = (tree.by_namespace(namespace) for namespace in pools[key].members)
        needed = sum(own_objects(tree, each)[key] for each in members if each is not None)
        if needed * NANO > pools[key].capacity:
            found[key] = needed
    return found


def kind_of(key: str) -> str:
    """The objects that a canonical key counts, such as RoleBindings."""
    return _KINDS[key]
