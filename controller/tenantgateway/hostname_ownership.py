"""Decides which route owns a hostname that several routes of a Gateway claim. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from controller.tenantgateway.model import HostnameConflict, HostnameOwnership, ParentRef, Route, RouteId
from controller.tenantgateway.names import HTTP_LISTENER, HTTP_PORT
from registry.names import canonical_host

PLATFORM_PREFIX = "cozy-"
WILDCARD = "*."


def resolve_ownership(routes: Sequence[Route]) -> HostnameOwnership:
    """Grants each hostname to one namespace (R-199 to R-210): `cozy-*` namespaces win, then the smallest (namespace,
    name).

    The order of `routes` does not matter. Routes of one namespace share their hostnames; a wildcard conflicts with the
    hostnames that it covers. A refused claim blocks no other claim.
    """
    granted = _Granted()
    conflicts: dict[RouteId, list[HostnameConflict]] = {}
    for route in sorted(filter(claims, routes), key=lambda each: rank(each.id)):
        for hostname in sorted({canonical_host(each) for each in route.hostnames}):
            if (conflict := granted.grant(hostname, route.id)) is not None:
                conflicts.setdefault(route.id, []).append(conflict)
    return HostnameOwnership(owners=granted.owners, conflicts={loser: tuple(each) for loser, each in conflicts.items()})


def claims(route: Route) -> bool:
    """True if the route claims its hostnames. One on port 80 alone, such as an ACME solver's, does not (FACT-3,
    CHOICE-7)."""
    return not all(binds_plain_http(parent) for parent in route.parents)


def binds_plain_http(parent: ParentRef) -> bool:
    return parent.section == HTTP_LISTENER or parent.port == HTTP_PORT


def rank(route: RouteId) -> tuple[bool, RouteId]:
    """A sort key that puts the winner of a conflict first."""
    return not route.namespace.startswith(PLATFORM_PREFIX), route


def may_be_named(route: RouteId, namespace: str) -> bool:
    """True if a condition of an object in `namespace` may name the route: if it is of the same tenant, or the
    platform's. Who reads the condition need not be allowed to get other routes (ATTACK-15)."""
    return route.namespace == namespace or route.namespace.startswith(PLATFORM_PREFIX)


def describe_route(route: RouteId, namespace: str) -> str:
    """The route, as a condition of an object in `namespace` may name it."""
    return f"{route.kind} {route}" if may_be_named(route, namespace) else "a route of another namespace"


class _Granted:
    """Granted hostnames, searchable by overlap: the same hostname, a wildcard that covers it, or one that it covers.

    Claims must arrive in order of rank, so that the first owner of a hostname is the one that ranks highest.
    """

    def __init__(self) -> None:
        self.owners: dict[str, RouteId] = {}
        # by domain, then by namespace: the claim below that domain that ranks highest
        self._below: dict[str, dict[str, HostnameConflict]] = {}

    def grant(self, hostname: str, route: RouteId) -> HostnameConflict | None:
        """Grants the hostname and returns None, or returns the conflict with another namespace that ranks highest."""
        conflicts = [each for each in self._overlapping(hostname) if each.winner.namespace != route.namespace]
        if conflicts:
            best = min(conflicts, key=lambda each: (rank(each.winner), each.winning_hostname))
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
    """Yields `b.c` and `c` for `a.b.c` and for `*.b.c`."""
    labels = hostname.split(".")
    for start in range(1, len(labels)):
        yield ".".join(labels[start:])
