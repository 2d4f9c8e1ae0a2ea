"""ListenerSets as the cluster has them after they were written from a plan."""

from __future__ import annotations

from collections.abc import Mapping

from apiserver.meta.resource import Object
from controller.runtime.apply import drop_nulls
from controller.tenantgateway.listenersets.existing_sets import ExistingSets
from controller.tenantgateway.model import Plan, TenantGateway
from controller.tenantgateway.names import split_listener_set
from controller.tenantgateway.render.listenerset import render_listener_sets

ACCEPTED = {"conditions": [{"type": "Accepted", "status": "True", "reason": "Accepted", "message": ""}]}


def existing_sets(
    tenantgateway: TenantGateway, plan: Plan | None = None, *, may_grow: bool = True, attended: bool = True
) -> ExistingSets:
    """`attended` sets are accepted by a controller; of others, nothing has been said."""
    rendered = render_listener_sets(tenantgateway, plan) if plan is not None else ()
    numbered = [(split_listener_set(each["metadata"]["name"]), dict(drop_nulls(each))) for each in rendered]
    status = {"status": ACCEPTED} if attended else {}
    owned: Mapping[int, Object] = {parts[1]: {**each, **status} for parts, each in numbered if parts is not None}
    return ExistingSets(owned, may_grow=may_grow)


def hostnames_by_set(plan: Plan) -> dict[str, list[str]]:
    return {each.name: sorted(listener.hostname for listener in each.listeners) for each in plan.sets}
