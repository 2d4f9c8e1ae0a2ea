"""Computes this controller's entries in the status of routes: rejected hostnames and the reasons. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from apiserver.meta.resource import Object
from controller.runtime.apply import covers
from controller.runtime.conditions import MAX_MESSAGE, Finding, build_conditions, find_condition
from controller.tenantgateway.hostname_validation import HOSTNAME_CONFLICT, ORPHANED, HostnameRejection
from controller.tenantgateway.model import HostnameConflict, ParentRefVerdict, Plan, RouteId
from controller.tenantgateway.names import CONTROLLER_NAME, RESOLVED_REFS
from controller.tenantgateway.parse import parent_identity, parent_target
from registry.tenantgateway.types import TENANTGATEWAY_NAME

MAX_PARENTS = 32

_Parent = tuple[object, ...]


def rejections_by_route(
    plan: Plan, not_counted: Mapping[RouteId, Sequence[HostnameRejection]] = MappingProxyType({})
) -> Mapping[RouteId, HostnameRejection]:
    """The routes with at least one rejected hostname, each with one merged rejection. `not_counted` are rejections of
    hostnames that the plan did not count.

    Its reason is HostnameConflict if any hostname is in conflict; its message lists all hostnames.
    """
    rejections: dict[RouteId, list[HostnameRejection]] = {route: [*each] for route, each in not_counted.items()}
    for loser, conflicts in plan.ownership.conflicts.items():
        rejections.setdefault(loser, []).extend(
            HostnameRejection(HOSTNAME_CONFLICT, _conflict_message(each)) for each in conflicts
        )
    for omitted in plan.omitted:
        if omitted.route is not None:
            rejections.setdefault(omitted.route, []).append(HostnameRejection(omitted.reason, omitted.message))
    return {route: _merge(each) for route, each in rejections.items()}


def accept(parent: Mapping[str, Any]) -> ParentRefVerdict:
    return ParentRefVerdict(
        dict(parent), accepted=True, reason="Accepted", message="the route may use all of its hostnames"
    )


def reject(parent: Mapping[str, Any], rejection: HostnameRejection) -> ParentRefVerdict:
    return ParentRefVerdict(
        dict(parent), accepted=False, reason=rejection.reason, message=rejection.message[:MAX_MESSAGE]
    )


def orphan(parent: Mapping[str, Any], namespace: str, *, detached: bool = False) -> ParentRefVerdict:
    """The verdict on a parentRef of a route in `namespace` whose Gateway does not exist or, if `detached`, on the last
    one of a route that has no parentRef any more (R-347)."""
    target = parent_target(parent, namespace)
    what = f"{target.kind} {target.namespace}/{target.name}"
    if detached:
        message = f"the route has no parentRef: it was last attached to {what}"
    elif target.kind == "Gateway" and target.name != TENANTGATEWAY_NAME:
        message = f"there is no {what}: the Gateway of a tenant is called {TENANTGATEWAY_NAME}"
    else:
        message = f"there is no {what}: set spec.gateway of its tenant, or attach to another Gateway"
    return ParentRefVerdict(dict(parent), accepted=False, reason=ORPHANED, message=message)


def route_parents(
    route: Object, verdicts: Sequence[ParentRefVerdict], *, is_undecided: Callable[[Object], bool], now: str
) -> list[Object] | None:
    """Returns the complete new status.parents of a route, or None if nothing changes. `now` is RFC 3339.

    Our entry for a parentRef without a verdict is removed, unless the route still has that parentRef and
    `is_undecided` returns that a verdict is to come. Entries of other controllers are never changed (R-203).

    An accepted parentRef gets the condition Accepted only to replace an earlier rejection (R-206): clients would
    mistake a new one for acceptance by the Gateway's own controller, which may not have decided yet. In the same way
    it gets ResolvedRefs=True only to replace our False, and never beside a False of another controller.
    """
    namespace = route["metadata"].get("namespace", "")
    generation = route["metadata"].get("generation", 0)
    existing: list[Object] = (route.get("status") or {}).get("parents") or []
    by_parent = {parent_identity(each.parent, namespace): each for each in verdicts}
    referenced = {parent_identity(each, namespace) for each in (route.get("spec") or {}).get("parentRefs") or ()}

    unresolved = _unresolved(existing, namespace)

    parents: list[Object] = []
    written: set[_Parent] = set()
    for entry in existing:
        parent = parent_identity(entry.get("parentRef") or {}, namespace)
        if entry.get("controllerName") != CONTROLLER_NAME:
            parents.append(entry)
        elif parent in written:
            continue
        elif (each := by_parent.get(parent)) is not None:
            contradicted = parent in unresolved
            parents += _entry(each, entry, generation, now, contradicted=contradicted)
            written.add(parent)
        elif parent in referenced and is_undecided(entry["parentRef"]):
            parents.append(entry)
    for parent, each in by_parent.items():
        if parent not in written:
            parents += _entry(each, {}, generation, now)
    parents = _within_limit(parents)
    return None if covers(existing, parents) else parents


def _entry(
    verdict: ParentRefVerdict, before: Object, generation: int, now: str, *, contradicted: bool = False
) -> list[Object]:
    """Our entry for a parentRef; empty if there is nothing to say about it."""
    conditions = before.get("conditions")
    findings = []
    if verdict.is_sole or not verdict.accepted or find_condition(conditions, "Accepted") is not None:
        findings.append(Finding("Accepted", "True" if verdict.accepted else "False", verdict.reason, verdict.message))
    findings += verdict.more
    resolved = verdict.references
    if resolved is not None and (
        resolved.status == "False"
        or verdict.is_sole
        or (find_condition(conditions, RESOLVED_REFS) is not None and not contradicted)
    ):
        findings.append(resolved)
    if not findings:
        return []
    entry = {
        "parentRef": verdict.parent,
        "controllerName": CONTROLLER_NAME,
        "conditions": build_conditions(findings, conditions, generation=generation, now=now),
    }
    return [entry]


def _unresolved(existing: Iterable[Object], namespace: str) -> set[_Parent]:
    """The parentRefs of which another controller says that a reference is not resolved."""
    others = (each for each in existing if each.get("controllerName") != CONTROLLER_NAME)
    return {
        parent_identity(each.get("parentRef") or {}, namespace)
        for each in others
        if (found := find_condition(each.get("conditions"), RESOLVED_REFS)) and found.get("status") == "False"
    }


def _within_limit(parents: Sequence[Object]) -> list[Object]:
    """Drops entries of ours beyond the limit, because the cluster rejects the whole status if there are too many."""
    excess = max(len(parents) - MAX_PARENTS, 0)
    ours = [index for index, each in enumerate(parents) if each.get("controllerName") == CONTROLLER_NAME]
    surplus = set(ours[len(ours) - excess :]) if excess else set()
    return [each for index, each in enumerate(parents) if index not in surplus]


def _conflict_message(conflict: HostnameConflict) -> str:
    """The message for a route that lost. The winner is named to it, whatever its namespace (R-204): both may publish
    the hostname on one Gateway, which the host labels of their namespaces say, and one of them has to give way."""
    owner = f"{conflict.winner.kind} {conflict.winner}"
    if conflict.path:
        return f'"{conflict.hostname}" with the path {conflict.path} belongs to {owner}: choose other paths'
    if conflict.winning_hostname == conflict.hostname:
        return f'"{conflict.hostname}" belongs to {owner}'
    return f'"{conflict.hostname}" overlaps "{conflict.winning_hostname}", which belongs to {owner}'


def _merge(rejections: Iterable[HostnameRejection]) -> HostnameRejection:
    ordered = sorted(rejections, key=lambda each: (each.reason != HOSTNAME_CONFLICT, each))
    return HostnameRejection(ordered[0].reason, "; ".join(dict.fromkeys(each.message for each in ordered)))
