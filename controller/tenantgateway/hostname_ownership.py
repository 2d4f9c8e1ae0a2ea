"""Decides which route owns a hostname that several routes of a Gateway claim. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from controller.tenantgateway.model import HostnameConflict, HostnameOwnership, ParentRef, Route, RouteId
from controller.tenantgateway.names import HTTP_LISTENER, HTTP_PORT, is_platform
from controller.tenantgateway.paths.path_overlap import first_overlap
from registry.names import canonical_host

WILDCARD = "*."


def resolve_ownership(routes: Sequence[Route], *, shared: bool = False) -> HostnameOwnership:
    """Grants each hostname to one namespace (R-199 to R-210): `cozy-*` namespaces win, then the smallest (namespace,
    name).

    The order of `routes` does not matter. Routes of one namespace share their hostnames; a wildcard conflicts with the
    hostnames that it covers. A refused claim blocks no other claim. If hostnames are `shared`, several `cozy-*`
    namespaces may have one hostname, with disjoint paths.
    """
    granted = _Granted(shared=shared)
    conflicts: dict[RouteId, list[HostnameConflict]] = {}
    for route in sorted(filter(claims, routes), key=lambda each: rank(each.id)):
        for hostname in sorted({canonical_host(each) for each in route.hostnames}):
            if (conflict := granted.grant(hostname, route)) is not None:
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
    return not is_platform(route.namespace), route


def may_be_named(route: RouteId, namespace: str) -> bool:
    """True if a condition of an object in `namespace` may name the route: if it is of the same tenant, or the
    platform's. Readers of the condition may lack the right to get other routes (ATTACK-15)."""
    return route.namespace == namespace or is_platform(route.namespace)


def describe_route(route: RouteId, namespace: str) -> str:
    """The route, as a condition of an object in `namespace` may name it."""
    return f"{route.kind} {route}" if may_be_named(route, namespace) else "a route of another namespace"


class _Granted:
    """Granted hostnames, searchable by overlap: the same hostname, a wildcard that covers it, or one that it covers.

    Claims must arrive in order of rank, so that the first owner of a hostname is the one that ranks highest.
    """

    def __init__(self, *, shared: bool) -> None:
        self._is_shared = shared
        self._routes: dict[str, list[Route]] = {}
        self.owners: dict[str, RouteId] = {}
        # by domain, then by namespace: the claim below that domain that ranks highest
        self._below: dict[str, dict[str, HostnameConflict]] = {}

    def grant(self, hostname: str, route: Route) -> HostnameConflict | None:
        """Grants the hostname and returns None, or returns the conflict with another namespace that ranks highest."""
        namespace = route.id.namespace
        conflicts = [each for each in self._overlapping(hostname) if each.winner.namespace != namespace]
        if conflicts and self._is_shared and _may_share(route):
            conflicts = [each for each in conflicts if each.winning_hostname != hostname]
            conflicts += self._contested_paths(hostname, route)
        if conflicts:
            best = min(conflicts, key=lambda each: (rank(each.winner), each.winning_hostname))
            return best._replace(hostname=hostname)
        self.owners.setdefault(hostname, route.id)
        if self._is_shared:
            self._routes.setdefault(hostname, []).append(route)
        claim = HostnameConflict(hostname, route.id, hostname)
        for domain in _domains_above(hostname):
            self._below.setdefault(domain, {}).setdefault(namespace, claim)
        return None

    def _contested_paths(self, hostname: str, route: Route) -> Iterator[HostnameConflict]:
        """The conflicts with those that have the hostname, and a path that overlaps one of the route."""
        for other in self._routes.get(hostname, ()):
            if other.id.namespace == route.id.namespace:
                continue
            if not _may_share(other):
                yield HostnameConflict(hostname, other.id, hostname)
            elif taken := first_overlap(other.paths, route.paths):
                yield HostnameConflict(hostname, other.id, hostname, taken.value)

    def _overlapping(self, hostname: str) -> Iterator[HostnameConflict]:
        if hostname in self.owners:
            yield HostnameConflict(hostname, self.owners[hostname], hostname)
        for domain in _domains_above(hostname):
            wildcard = WILDCARD + domain
            if wildcard in self.owners:
                yield HostnameConflict(hostname, self.owners[wildcard], wildcard)
        if hostname.startswith(WILDCARD):
            yield from self._below.get(hostname.removeprefix(WILDCARD), {}).values()


def _may_share(route: Route) -> bool:
    return route.id.kind == "HTTPRoute" and is_platform(route.id.namespace)


def _domains_above(hostname: str) -> Iterator[str]:
    """Yields `b.c` and `c` for `a.b.c` and for `*.b.c`."""
    labels = hostname.split(".")
    for start in range(1, len(labels)):
        yield ".".join(labels[start:])
