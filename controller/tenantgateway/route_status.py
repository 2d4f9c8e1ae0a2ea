"""What a route's status says in this controller's name: which hostnames it may not have, and why. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from apiserver.meta.resource import Object
from controller.runtime.apply import covers
from controller.runtime.conditions import Finding, build_conditions
from controller.tenantgateway.hostname_ownership import binds_plain_http
from controller.tenantgateway.hostname_validation import HOSTNAME_CONFLICT, HostnameRejection
from controller.tenantgateway.model import HostnameConflict, ParentRef, ParentRefVerdict, Plan, RouteId
from controller.tenantgateway.names import CONTROLLER_NAME, GATEWAY_API_GROUP

MAX_PARENTS = 32
_MAX_MESSAGE = 32768

_Parent = tuple[object, ...]


def rejections_by_route(plan: Plan) -> Mapping[RouteId, HostnameRejection]:
    """Every route that may not have one of its hostnames; one that is not in it is accepted.

    Of several reasons a conflict is the one that is named, and the message has all of them.
    """
    found: dict[RouteId, list[HostnameRejection]] = {}
    for loser, api_errors in plan.ownership.conflicts.items():
        found[loser] = [HostnameRejection(HOSTNAME_CONFLICT, _conflict(each)) for each in api_errors]
    for omitted in plan.omitted:
        if omitted.route is not None:
            found.setdefault(omitted.route, []).append(HostnameRejection(omitted.reason, omitted.message))
    return {route: _merge(each) for route, each in found.items()}


def evaluate_parent_ref(parent: Object, rejection: HostnameRejection | None) -> ParentRefVerdict:
    """On one parentRef, as the route writes it, that names this Gateway; `rejection` is the route's, if it has one.

    On port 80 a route claims nothing, so that there is nothing to refuse.
    """
    on_http = binds_plain_http(ParentRef(section=parent.get("sectionName") or "", port=parent.get("port")))
    if rejection is None or on_http:
        return ParentRefVerdict(
            parent, accepted=True, reason="Accepted", message="the hostnames are the route's to use"
        )
    return ParentRefVerdict(parent, accepted=False, reason=rejection.reason, message=rejection.message[:_MAX_MESSAGE])


def route_parents(
    route: Object, attached: Sequence[ParentRefVerdict], *, served_by_other: Callable[[Object], bool], now: str
) -> list[Object] | None:
    """The whole new status.parents of a route, None if nothing changes. `now` is RFC 3339.

    `attached` are verdicts on parentRefs of this route. `served_by_other` tells of a parentRef that is not in
    `attached` whether another TenantGateway speaks for it: such an entry of ours stays while the route has that
    parentRef, all others of ours go. Entries of other controllers are never touched (R-203). An accepted parentRef gets
    an entry only where it had one: a claim that was lost and is won (R-206). Others would read it as the acceptance of
    the Gateway's own controller, which may not have come to one.
    """
    namespace = route["metadata"].get("namespace", "")
    generation = route["metadata"].get("generation", 0)
    held: list[Object] = (route.get("status") or {}).get("parents") or []
    verdicts = {_identity(each.parent, namespace): each for each in attached}
    wanted = {_identity(each, namespace) for each in (route.get("spec") or {}).get("parentRefs") or ()}

    parents: list[Object] = []
    written: set[_Parent] = set()
    for entry in held:
        parent = _identity(entry.get("parentRef") or {}, namespace)
        if entry.get("controllerName") != CONTROLLER_NAME:
            parents.append(entry)
        elif parent in written:
            continue
        elif (each := verdicts.get(parent)) is not None:
            parents.append(_entry(each, entry, generation, now))
            written.add(parent)
        elif parent in wanted and served_by_other(entry["parentRef"]):
            parents.append(entry)
    lost = (each for parent, each in verdicts.items() if not each.accepted and parent not in written)
    parents += [_entry(each, {}, generation, now) for each in lost]
    parents = _within_limit(parents)
    return None if covers(held, parents) else parents


def _entry(verdict: ParentRefVerdict, before: Object, generation: int, now: str) -> Object:
    findings = (
        Finding("Accepted", "True" if verdict.accepted else "False", verdict.reason, verdict.message),
        Finding("ResolvedRefs", "True", "ResolvedRefs", "this controller judges hostnames, and resolves no references"),
    )
    return {
        "parentRef": verdict.parent,
        "controllerName": CONTROLLER_NAME,
        "conditions": build_conditions(findings, before.get("conditions"), generation=generation, now=now),
    }


def _within_limit(parents: Sequence[Object]) -> list[Object]:
    """One entry too many would have the host refuse them all, so that ours give way."""
    excess = max(len(parents) - MAX_PARENTS, 0)
    ours = [index for index, each in enumerate(parents) if each.get("controllerName") == CONTROLLER_NAME]
    surplus = set(ours[len(ours) - excess :]) if excess else set()
    return [each for index, each in enumerate(parents) if index not in surplus]


def _identity(parent: Object, namespace: str) -> _Parent:
    """A parentRef with what is left out of it filled in."""
    return (
        parent.get("group", GATEWAY_API_GROUP),
        parent.get("kind", "Gateway"),
        parent.get("namespace") or namespace,
        parent.get("name"),
        parent.get("sectionName") or "",
        parent.get("port"),
    )


def _conflict(conflict: HostnameConflict) -> str:
    owner = f"{conflict.winner.kind} {conflict.winner}"
    if conflict.winning_hostname == conflict.hostname:
        return f'"{conflict.hostname}" belongs to {owner}'
    return f'"{conflict.hostname}" overlaps "{conflict.winning_hostname}", which belongs to {owner}'


def _merge(rejections: Iterable[HostnameRejection]) -> HostnameRejection:
    ordered = sorted(rejections, key=lambda each: (each.reason != HOSTNAME_CONFLICT, each))
    return HostnameRejection(ordered[0].reason, "; ".join(dict.fromkeys(each.message for each in ordered)))
