"""Decides on the delegation from one route to another. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from controller.tenantgateway.consent.reference_grants import Referrer
from controller.tenantgateway.consent.references import Reference
from controller.tenantgateway.consent.resolved_refs import missing_grant
from controller.tenantgateway.delegation.matches import covers
from controller.tenantgateway.delegation.model import (
    BACKEND_NOT_FOUND,
    DELEGATION_CONFLICT,
    OUTSIDE_DELEGATION,
    DelegatedMatch,
    Edge,
    Participant,
)
from controller.tenantgateway.hostname_validation import ORPHANED
from controller.tenantgateway.model import RouteId
from controller.tenantgateway.names import GATEWAY_API_GROUP, REF_NOT_PERMITTED

# the problem itself may name objects that the readers of the parent may not get
_REFUSED_CONTENT = "its rules have what a delegated route may not have, as its own status says"

Winner = Callable[[Participant, DelegatedMatch], tuple[RouteId, RouteId] | None]
"""The delegator and the vertex that get a match of a delegator."""


class EdgeEnds(NamedTuple):
    """The two routes of a delegation by name, and those of them that exist and take part in delegations."""

    parent: RouteId
    target: RouteId
    delegator: Participant | None
    vertex: Participant | None


def judge_edge(ends: EdgeEnds, *, permitted: bool, winner: Winner) -> Edge:
    """The delegation from one route to another (R-362). Without a grant, nothing is said about the vertex, not even
    that it exists; and what a parent does not delegate is told like a parent that does not exist."""
    parent, target, delegator, vertex = ends
    if delegator is None or target not in delegator.targets:
        return Edge(ORPHANED, f"{parent.kind} {parent} does not delegate to this route")
    if not permitted:
        return Edge(REF_NOT_PERMITTED, missing_grant(referrer(parent), reference(target)))
    if vertex is None or parent not in vertex.parents:
        missing = f"{target.kind} {target} does not exist, or does not name {parent.kind} {parent} as a parent"
        return Edge(BACKEND_NOT_FOUND, missing)
    if delegator.problem:
        return Edge(ORPHANED, f"{parent.kind} {parent} delegates nothing, because its rules are invalid")
    if vertex.vertex_problem:
        return Edge(OUTSIDE_DELEGATION, vertex.vertex_problem, parent_message=_REFUSED_CONTENT)
    return _within(delegator, vertex, winner)


def _within(delegator: Participant, vertex: Participant, winner: Winner) -> Edge:
    """Refuses the whole vertex if one of its matches is outside of what it has got (R-349, R-350)."""
    given = dict.fromkeys(match for rule in delegator.rules if vertex.id in rule.targets for match in rule.matches)
    winners = {match: winner(delegator, match) for match in given}
    won = tuple(match for match, first in winners.items() if first == (delegator.id, vertex.id))
    for wanted in (match for rule in vertex.rules for match in rule.matches):
        if any(covers(each, wanted) for each in won):
            continue
        lost = next((match for match in given if match not in won and covers(match, wanted)), None)
        if lost is None:
            return Edge(OUTSIDE_DELEGATION, f'"{wanted}" is not below {_join(given)}')
        first = winners[lost]
        by = first[0] if first is not None else delegator.id
        return Edge(DELEGATION_CONFLICT, f'"{lost}" is delegated to another route by {by.kind} {by}')
    return Edge("", delegated=won)


def referrer(route: RouteId) -> Referrer:
    """The route, as a grant tells it apart."""
    return Referrer(route.kind, route.namespace)


def reference(route: RouteId) -> Reference:
    """The route, as a grant names it."""
    return Reference(GATEWAY_API_GROUP, route.kind, route.namespace, route.name)


def _join(matches: Iterable[DelegatedMatch]) -> str:
    return " or ".join(f'"{each}"' for each in matches)
