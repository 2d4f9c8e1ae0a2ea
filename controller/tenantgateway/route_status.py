"""Computes this controller's entries in the status of routes: rejected hostnames and the reasons. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from apiserver.meta.resource import Object
from controller.runtime.apply import covers
from controller.runtime.conditions import MAX_MESSAGE, Finding, build_conditions
from controller.tenantgateway.hostname_ownership import binds_plain_http, describe_route, may_be_named
from controller.tenantgateway.hostname_validation import HOSTNAME_CONFLICT, HostnameRejection
from controller.tenantgateway.model import HostnameConflict, ParentRef, ParentRefVerdict, Plan, RouteId
from controller.tenantgateway.names import CONTROLLER_NAME, GATEWAY_API_GROUP

MAX_PARENTS = 32

_Parent = tuple[object, ...]


def rejections_by_route(plan: Plan) -> Mapping[RouteId, HostnameRejection]:
    """The routes with at least one rejected hostname, each with one merged rejection.

    Its reason is HostnameConflict if any hostname is in conflict; its message lists all hostnames.
    """
    rejections: dict[RouteId, list[HostnameRejection]] = {}
    for loser, conflicts in plan.ownership.conflicts.items():
        rejections[loser] = [
            HostnameRejection(HOSTNAME_CONFLICT, _conflict_message(each, loser.namespace)) for each in conflicts
        ]
    for omitted in plan.omitted:
        if omitted.route is not None:
            rejections.setdefault(omitted.route, []).append(HostnameRejection(omitted.reason, omitted.message))
    return {route: _merge(each) for route, each in rejections.items()}


def evaluate_parent_ref(parent: Object, rejection: HostnameRejection | None) -> ParentRefVerdict:
    """Decides on one parentRef of a route that refers to this Gateway; `rejection` is that of the route, if any.

    A parentRef to port 80 claims no hostname and is always accepted.
    """
    on_http = binds_plain_http(ParentRef(section=parent.get("sectionName") or "", port=parent.get("port")))
    if rejection is None or on_http:
        return ParentRefVerdict(
            parent, accepted=True, reason="Accepted", message="the route may use all of its hostnames"
        )
    return ParentRefVerdict(parent, accepted=False, reason=rejection.reason, message=rejection.message[:MAX_MESSAGE])


def route_parents(
    route: Object, attached: Sequence[ParentRefVerdict], *, served_by_other: Callable[[Object], bool], now: str
) -> list[Object] | None:
    """Returns the complete new status.parents of a route, or None if nothing changes. `now` is RFC 3339.

    `attached` are the verdicts on parentRefs of this route. Our entry for any other parentRef is removed, unless the
    route still has that parentRef and `served_by_other` returns that another TenantGateway is responsible for it.
    Entries of other controllers are never changed (R-203).

    An accepted parentRef gets an entry only to replace an earlier rejection (R-206): clients would mistake a new entry
    for acceptance by the Gateway's own controller, which may not have decided yet.
    """
    namespace = route["metadata"].get("namespace", "")
    generation = route["metadata"].get("generation", 0)
    existing: list[Object] = (route.get("status") or {}).get("parents") or []
    verdicts = {_identity(each.parent, namespace): each for each in attached}
    referenced = {_identity(each, namespace) for each in (route.get("spec") or {}).get("parentRefs") or ()}

    parents: list[Object] = []
    written: set[_Parent] = set()
    for entry in existing:
        parent = _identity(entry.get("parentRef") or {}, namespace)
        if entry.get("controllerName") != CONTROLLER_NAME:
            parents.append(entry)
        elif parent in written:
            continue
        elif (each := verdicts.get(parent)) is not None:
            parents.append(_entry(each, entry, generation, now))
            written.add(parent)
        elif parent in referenced and served_by_other(entry["parentRef"]):
            parents.append(entry)
    rejected = (each for parent, each in verdicts.items() if not each.accepted and parent not in written)
    parents += [_entry(each, {}, generation, now) for each in rejected]
    parents = _within_limit(parents)
    return None if covers(existing, parents) else parents


def _entry(verdict: ParentRefVerdict, before: Object, generation: int, now: str) -> Object:
    findings = (
        Finding("Accepted", "True" if verdict.accepted else "False", verdict.reason, verdict.message),
        Finding(
            "ResolvedRefs",
            "True",
            "ResolvedRefs",
            "this controller checks hostnames only, it does not resolve references",
        ),
    )
    return {
        "parentRef": verdict.parent,
        "controllerName": CONTROLLER_NAME,
        "conditions": build_conditions(findings, before.get("conditions"), generation=generation, now=now),
    }


def _within_limit(parents: Sequence[Object]) -> list[Object]:
    """Drops entries of ours beyond the limit, because the cluster rejects the whole status if there are too many."""
    excess = max(len(parents) - MAX_PARENTS, 0)
    ours = [index for index, each in enumerate(parents) if each.get("controllerName") == CONTROLLER_NAME]
    surplus = set(ours[len(ours) - excess :]) if excess else set()
    return [each for index, each in enumerate(parents) if index not in surplus]


def _identity(parent: Object, namespace: str) -> _Parent:
    """The fields that identify a parentRef, with defaults filled in."""
    return (
        parent.get("group", GATEWAY_API_GROUP),
        parent.get("kind", "Gateway"),
        parent.get("namespace") or namespace,
        parent.get("name"),
        parent.get("sectionName") or "",
        parent.get("port"),
    )


def _conflict_message(conflict: HostnameConflict, namespace: str) -> str:
    """The message for a route in `namespace`, which lost."""
    owner = describe_route(conflict.winner, namespace)
    if conflict.winning_hostname == conflict.hostname:
        return f'"{conflict.hostname}" belongs to {owner}'
    if not may_be_named(conflict.winner, namespace):
        return f'"{conflict.hostname}" overlaps a hostname that belongs to {owner}'
    return f'"{conflict.hostname}" overlaps "{conflict.winning_hostname}", which belongs to {owner}'


def _merge(rejections: Iterable[HostnameRejection]) -> HostnameRejection:
    ordered = sorted(rejections, key=lambda each: (each.reason != HOSTNAME_CONFLICT, each))
    return HostnameRejection(ordered[0].reason, "; ".join(dict.fromkeys(each.message for each in ordered)))
