"""The delegations between routes, indexed by root and by vertex, so that one change costs what depends on it. Pure.

Nothing is stored that follows from other routes: each question is answered from the routes around it as they are now.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence, Set
from functools import partial
from typing import Any

from apiserver.meta.resource import Key
from controller.tenantgateway.delegation.claims import DelegatedPart, claims
from controller.tenantgateway.delegation.edges import EdgeEnds, judge_edge
from controller.tenantgateway.delegation.model import (
    DELEGATION_CYCLE,
    MAX_HOPS,
    OUTSIDE_DELEGATION,
    DelegatedMatch,
    DelegationVerdict,
    Edge,
    FlatRoute,
    Participant,
)
from controller.tenantgateway.hostname_ownership import rank
from controller.tenantgateway.hostname_validation import ORPHANED
from controller.tenantgateway.model import RouteId
from registry.multimap import Multimap

Permits = Callable[[RouteId, RouteId], bool]
"""True if routes of the kind and namespace of the first may refer to the second."""

AdmitsRoot = Callable[[Participant], bool]
"""True if a Gateway serves the hostnames of a root."""


class DelegationGraph:
    """All roots and vertices. `permits` and `admits` answer from the state now; whoever changes what they say passes
    the routes concerned to `concerned_by`."""

    def __init__(self, *, permits: Permits, admits: AdmitsRoot) -> None:
        self._permits = permits
        self._admits = admits
        self._participants: dict[RouteId, Participant] = {}
        self._delegators: Multimap[RouteId, RouteId] = Multimap()
        self._named_in: Multimap[str, RouteId] = Multimap()
        self._in_namespace: Multimap[str, RouteId] = Multimap()
        self._of_gateway: Multimap[Key, RouteId] = Multimap()
        self._claims: Multimap[DelegatedPart, RouteId] = Multimap()
        self._indexes: Sequence[Multimap[Any, Any]] = (
            self._delegators,
            self._named_in,
            self._in_namespace,
            self._of_gateway,
            self._claims,
        )

    def get(self, route: RouteId) -> Participant | None:
        return self._participants.get(route)

    def __iter__(self) -> Iterator[RouteId]:
        return iter(tuple(self._participants))

    def roots_of_gateway(self, tenantgateway: Key) -> Collection[RouteId]:
        return self._of_gateway[tenantgateway]

    def in_namespace(self, namespace: str) -> Collection[RouteId]:
        """The roots and vertices of a namespace."""
        return self._in_namespace[namespace]

    def named_in(self, namespace: str) -> Collection[RouteId]:
        """The routes of a namespace that others delegate to, whether or not they exist."""
        return self._named_in[namespace]

    def update(self, route: RouteId, now: Participant | None) -> set[RouteId]:
        """Replaces a route, and returns all whose flat routes or status may change with it."""
        before = self._participants.get(route)
        concerned = self.concerned_by([route])
        if before is not None:
            self._remove(before)
        if now is not None:
            self._add(now)
        return concerned | self.concerned_by([route])

    def concerned_by(self, routes: Iterable[RouteId]) -> set[RouteId]:
        """The routes themselves, all below them, those that delegate to them, and those that compete with them."""
        below: set[RouteId] = set()
        todo = list(routes)
        changed = set(todo)
        while todo:
            route = todo.pop()
            if route in below:
                continue
            below.add(route)
            if (found := self._participants.get(route)) is not None:
                todo += found.targets
            if route in changed:
                todo += self._competitors(route)
        return below | {delegator for each in below for delegator in self._delegators[each]}

    def flat_routes(self, route: RouteId) -> list[FlatRoute]:
        """The flat routes with the rules of a route: its own as a root, and one below each root that reaches it."""
        found = self._participants.get(route)
        if found is None or not found.served:
            return []
        if self.is_root(found):
            return [FlatRoute(found, found)]
        roots = {root for each in found.parents for root in self.connection(route, each).roots}
        return [FlatRoute(self._participants[each], found) for each in sorted(roots)]

    def is_root(self, found: Participant) -> bool:
        """True if the route counts as a root."""
        return bool(found.gateways) and not found.problem and self._admits(found)

    def edge(self, parent: RouteId, vertex: RouteId) -> Edge:
        """The delegation from `parent` to `vertex`, without regard to what reaches `parent`."""
        ends = EdgeEnds(parent, vertex, self._participants.get(parent), self._participants.get(vertex))
        return judge_edge(ends, permitted=self._permits(parent, vertex), winner=self._winner)

    def connection(self, vertex: RouteId, parent: RouteId) -> DelegationVerdict:
        """The decision on a vertex and one of its parents, with the roots that reach it that way."""
        edge = self.edge(parent, vertex)
        if edge.reason:
            return DelegationVerdict(edge)
        found, cut_off, cyclic = self._roots_above(parent, avoiding=vertex)
        if found:
            return DelegationVerdict(edge, tuple(sorted(found)))
        what = f"{parent.kind} {parent}"
        if cyclic:
            return DelegationVerdict(Edge(DELEGATION_CYCLE, f"{what} is delegated by nobody but this route itself"))
        if cut_off:
            return DelegationVerdict(Edge(OUTSIDE_DELEGATION, f"more than {MAX_HOPS} delegations lead to this route"))
        return DelegationVerdict(Edge(ORPHANED, f"{what} is not served: no hostname is delegated to it"))

    def _roots_above(self, start: RouteId, *, avoiding: RouteId) -> tuple[set[RouteId], bool, bool]:
        """The roots that reach `start` without `avoiding`, if a further hop is within the limit; whether the limit cut
        the search off; and whether `avoiding` itself leads to `start`."""
        roots: set[RouteId] = set()
        seen, level, cyclic = {start}, [start], start == avoiding
        for _ in range(MAX_HOPS):
            above = []
            for route in level:
                found = self._participants[route]
                if route == avoiding:
                    cyclic = True
                elif self.is_root(found):
                    roots.add(route)
                else:
                    above += [each for each in found.parents if each not in seen and not self.edge(each, route).reason]
                    seen.update(above)
            level = list(dict.fromkeys(above))
        return roots, bool(level), cyclic

    def _competitors(self, route: RouteId) -> set[RouteId]:
        """The routes that get what the route does not, because the same match is delegated to both; and those below
        roots that compete with the route as a root."""
        found: set[RouteId] = set()
        for delegator in self._delegators[route]:
            rules = self._participants[delegator].rules
            found |= self._getting(
                delegator, {match for rule in rules if route in rule.targets for match in rule.matches}
            )
        itself = self._participants.get(route)
        if itself is not None and itself.gateways:
            found |= self._getting(route, {match for rule in itself.rules if rule.targets for match in rule.matches})
        return found - {route}

    def _getting(self, delegator: RouteId, matches: Set[DelegatedMatch]) -> set[RouteId]:
        """The targets of a route, and of the roots that share a hostname with it, that one of the matches is delegated
        to."""
        routes = {delegator, *(each for match in matches for each in self._rivals(delegator, match))}
        rules = (rule for each in routes for rule in self._participants[each].rules)
        return {target for rule in rules if not matches.isdisjoint(rule.matches) for target in rule.targets}

    def _rivals(self, delegator: RouteId, match: DelegatedMatch) -> set[RouteId]:
        """Other roots of the namespace that delegate the match of a hostname that they share."""
        hostnames = self._participants[delegator].hostnames
        claimed = (DelegatedPart(delegator.namespace, delegator.kind, each, match) for each in hostnames)
        return {each for claim in claimed for each in self._claims[claim]} - {delegator}

    def _winner(self, delegator: Participant, match: DelegatedMatch) -> tuple[RouteId, RouteId] | None:
        """The delegation that gets a match, as a pair of delegator and vertex: of those that their vertices agree to,
        the first in the order of claims (R-200), and then of rules."""
        rivals = self._rivals(delegator.id, match) if delegator.gateways else set()
        for each in sorted({delegator.id, *rivals}, key=rank):
            found = self._participants[each]
            if found is not delegator and not self.is_root(found):
                continue
            named = (target for rule in found.rules if match in rule.matches for target in rule.targets)
            if (target := next(filter(partial(self._agrees, found, match), named), None)) is not None:
                return each, target
        return None

    def _agrees(self, delegator: Participant, match: DelegatedMatch, target: RouteId) -> bool:
        """Of whole hostnames, a vertex asks for those that it lists."""
        vertex = self._participants.get(target)
        if vertex is None or delegator.id not in vertex.parents or not self._permits(delegator.id, target):
            return False
        return not match.hostname or match.hostname in vertex.hostnames

    def _add(self, found: Participant) -> None:
        self._participants[found.id] = found
        self._in_namespace.add(found.id.namespace, found.id)
        for target in found.targets:
            self._delegators.add(target, found.id)
            self._named_in.add(target.namespace, target)
        for gateway in found.gateways:
            self._of_gateway.add(gateway, found.id)
        for claim in claims(found):
            self._claims.add(claim, found.id)

    def _remove(self, found: Participant) -> None:
        del self._participants[found.id]
        self._in_namespace.discard(found.id.namespace, found.id)
        for target in found.targets:
            self._delegators.discard(target, found.id)
            if not self._delegators[target]:
                self._named_in.discard(target.namespace, target)
        for gateway in found.gateways:
            self._of_gateway.discard(gateway, found.id)
        for claim in claims(found):
            self._claims.discard(claim, found.id)

    def __len__(self) -> int:
        """The number of all entries: nothing remains of routes that are gone."""
        return len(self._participants) + sum(1 for index in self._indexes for _ in index)
