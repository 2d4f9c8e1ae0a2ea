"""Whose hostnames are: the one order in which the routes of a Gateway claim them. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from controller.tenantgateway.model import HostnameConflict, HostnameOwnership, ParentRef, Route, RouteId
from controller.tenantgateway.names import HTTP_LISTENER, HTTP_PORT
from registry.names import canonical_host

PLATFORM_PREFIX = "cozy-"
WILDCARD = "*."


def resolve_ownership(routes: Sequence[Route]) -> HostnameOwnership:
    """R-199 to R-210: the platform's routes first, then the smallest (namespace, name) pair, in any order of `routes`.

    Routes of one namespace share their hostnames; a wildcard is in conflict with what it covers. A conflicts claim
    keeps nothing from anybody.
    """
    granted = _Granted()
    conflicts: dict[RouteId, list[HostnameConflict]] = {}
    for route in sorted(filter(claims, routes), key=lambda each: rank(each.id)):
        for hostname in sorted({canonical_host(each) for each in route.hostnames}):
            if (conflict := granted.grant(hostname, route.id)) is not None:
                conflicts.setdefault(route.id, []).append(conflict)
    return HostnameOwnership(owners=granted.owners, conflicts={loser: tuple(each) for loser, each in conflicts.items()})


def claims(route: Route) -> bool:
    """Whether the route stands for its hostnames; a solver's, on port 80, answers for them only (FACT-3, CHOICE-7)."""
    return not all(binds_plain_http(parent) for parent in route.parents)


def binds_plain_http(parent: ParentRef) -> bool:
    return parent.section == HTTP_LISTENER or parent.port == HTTP_PORT


def rank(route: RouteId) -> tuple[bool, RouteId]:
    """Sorts winners first."""
    return not route.namespace.startswith(PLATFORM_PREFIX), route


class _Granted:
    """Hostnames that are somebody's, found by what overlaps them: the same, a wildcard above, or any below.

    Claims must come in the order of their rank, so that the first holder found of a hostname is its best.
    """

    def __init__(self) -> None:
        self.owners: dict[str, RouteId] = {}
        # by domain, then by namespace: the best claim below that domain
        self._below: dict[str, dict[str, HostnameConflict]] = {}

    def grant(self, hostname: str, route: RouteId) -> HostnameConflict | None:
        """None if the hostname is the route's, or its namespace's already."""
        against = [each for each in self._overlapping(hostname) if each.winner.namespace != route.namespace]
        if against:
            best = min(against, key=lambda each: (rank(each.winner), each.winning_hostname))
            return best._replace(hostname=hostname)
        self.owners.setdefault(hostname, route)
        claim = HostnameConflict(hostname, route, hostname)
        for domain in _domains_above(hostname):
            self._below.setdefault(domain, {}).setdefault(route.namespace, claim)
        return None

    def _overlapping(self, hostname: str) -> Iterator[HostnameConflict]:
        if hostname in self.owners:
            yield HostnameConflict(hostname, self.owners[hostname], hostname)
        for domain in _domains_above(hostname):
            wildcard = WILDCARD + domain
            if wildcard in self.owners:
                yield HostnameConflict(hostname, self.owners[wildcard], wildcard)
        if hostname.startswith(WILDCARD):
            yield from self._below.get(hostname.removeprefix(WILDCARD), {}).values()


def _domains_above(hostname: str) -> Iterator[str]:
    """Of `a.b.c`, and of `*.b.c`: `b.c` and `c`."""
    labels = hostname.split(".")
    for start in range(1, len(labels)):
        yield ".".join(labels[start:])
