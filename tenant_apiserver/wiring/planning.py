"""The planner of `tenants/diff`: the controllers put their parts into it when they are built, after the API."""

from __future__ import annotations

from collections.abc import Callable

from apiserver.meta import errors
from apiserver.meta.resource import Key, Object
from controller.tenant.planning.planner import TenantPlanner
from controller.tenantgateway.planning.planner import GatewayPlanner
from registry.explain.diff.changes import PlannedChange, PlannedChanges, Planner

_NO_CONTROLLERS = (
    "this server runs without the controller of tenants, whose changes it would have to know: --controllers"
)


class ControllersPlanner(Planner):
    """`tenants` is None in a process without the controller of Tenants, `gateways` without that of TenantGateways."""

    def __init__(self) -> None:
        self.tenants: TenantPlanner | None = None
        self.gateways: GatewayPlanner | None = None

    async def plan(self, key: Key, proposed: Object | None, sees: Callable[[Key], bool]) -> PlannedChanges:
        if self.tenants is None:
            raise errors.ServiceUnavailable(_NO_CONTROLLERS)
        found = await self.tenants.plan(key, proposed, self.gateways, sees)
        changes = [PlannedChange(each.resource, each.key, each.before, each.after) for each in found.writes]
        return PlannedChanges(changes, found.problems, found.truncated)
