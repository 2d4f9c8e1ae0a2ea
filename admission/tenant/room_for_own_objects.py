"""Warns about quotas of counts that leave no room for what the controllers create in the namespaces that share them.

A single tenant that declares too few is rejected (`registry.tenant.strategy`); in a pool, the last cannot be set up.
"""

from __future__ import annotations

from collections.abc import Iterator

from admission.plugin_rule import TENANTS, WRITES, PluginRule
from apiserver.admission import Attributes
from registry.tenant.own_objects import BINDINGS, QUOTAS, kind_of, lacking_room, own_objects
from registry.tenant.quota_keys import comparable_limits
from registry.tenant.quota_pools import TenantPools
from registry.tenant.summary import TenantSummary, summarize
from registry.tenant.tree import BaseTenantTree, ChangedTree, TenantTree


def room_warnings(tree: BaseTenantTree, new: TenantSummary) -> Iterator[str]:
    """The warnings about a Tenant that is created, or whose quotas change; `tree` is the one before. They tell nothing
    about the quotas of an ancestor but that they are too small."""
    if not any(_declares(tree, each) for each in (new, *tree.ancestors(new))):
        return
    changed = ChangedTree(tree, new)
    pools = TenantPools(changed).governing(new)
    for key, needed in sorted(lacking_room(changed, pools).items()):
        if pools[key].owner.key == new.key:
            yield (
                f"spec.resourceQuotas[{key}]: there is no room for the {needed} {kind_of(key)} that the controllers "
                "create in the namespaces of this tenant and of those that share its quota; the last ones cannot be "
                "set up"
            )
        else:
            own = own_objects(changed, new)[key]
            yield (
                f"the quota of {key} that this tenant shares with an ancestor is too small for the {kind_of(key)} that "
                f"the controllers create in the namespaces of all who share it, {own} of them in this one's; until it "
                "is raised, or this tenant declares its own, the tenant may not get ready"
            )


def _declares(tree: BaseTenantTree, tenant: TenantSummary) -> bool:
    declared = comparable_limits(tenant.quotas, tree.ratios)
    return QUOTAS in declared or BINDINGS in declared


class RoomForOwnObjects:
    name = "RoomForOwnObjects"
    _rule = PluginRule(TENANTS, WRITES)

    def __init__(self, *, tree: TenantTree) -> None:
        self._tree = tree

    def handles(self, attributes: Attributes) -> bool:
        return self._rule.matches(attributes)

    async def validate(self, attributes: Attributes) -> None:
        assert attributes.object is not None
        new, old = summarize(attributes.object), attributes.old_object
        if old is not None and summarize(old).quotas == new.quotas:
            return
        for warning in room_warnings(self._tree, new):
            attributes.context.warn(warning)
