"""Index of routes by what they refer to, so that a grant or a Service enqueues only the routes that it concerns."""

from __future__ import annotations

from collections.abc import Iterator, Set

from controller.tenantgateway.consent.reference_grants import Permission, Referrer
from controller.tenantgateway.consent.references import Reference
from controller.tenantgateway.model import RouteId
from registry.multimap import Multimap


class ForeignReferences:
    """The references of routes that refer to an object of another namespace: all of them, also to their own."""

    def __init__(self) -> None:
        self._by_object: Multimap[Reference, RouteId] = Multimap()
        self._by_pair: Multimap[tuple[Referrer, str], RouteId] = Multimap()
        self._by_route: dict[RouteId, Set[Reference]] = {}

    def update(self, route: RouteId, references: Set[Reference]) -> None:
        referrer = Referrer(route.kind, route.namespace)
        for each in self._by_route.pop(route, frozenset()):
            self._by_pair.discard((referrer, each.namespace), route)
            self._by_object.discard(each, route)
        for each in references:
            self._by_pair.add((referrer, each.namespace), route)
            self._by_object.add(each, route)
        if references:
            self._by_route[route] = references

    def concerned_by(self, namespace: str, permission: Permission) -> Iterator[RouteId]:
        """The routes with a reference into the namespace that its `permission` may allow or forbid."""
        for route in self._by_pair[permission.referrer, namespace]:
            if any(_matches(each, namespace, permission) for each in self._by_route[route]):
                yield route

    def referring_to(self, reference: Reference) -> Iterator[RouteId]:
        """The routes with this reference."""
        return iter(tuple(self._by_object[reference]))

    def __iter__(self) -> Iterator[RouteId]:
        return iter(tuple(self._by_route))


def _matches(reference: Reference, namespace: str, permission: Permission) -> bool:
    return (reference.namespace, reference.group, reference.kind) == (
        namespace,
        permission.group,
        permission.kind,
    ) and permission.name in ("", reference.name)
