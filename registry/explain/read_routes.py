"""Reads the routes with a hostname, as far as the user may list them, and no more than other requests can wait for.

Routes that are not looked at are told (`left_out`): a route that nobody has seen is not missing.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from functools import partial
from typing import Final, NamedTuple

from apiserver.encoding.offload import json_size
from apiserver.meta.resource import Object
from registry.cluster.interface import ClusterResource, NotServed, Visited
from registry.explain.hostnames import hostname_matches
from registry.explain.known_routes import hostnames_of, known_route
from registry.explain.sight import Sight

GATEWAY_API = "gateway.networking.k8s.io"
HTTP_AND_GRPC = (
    ClusterResource(GATEWAY_API, "v1", "httproutes", "HTTPRoute"),
    ClusterResource(GATEWAY_API, "v1", "grpcroutes", "GRPCRoute"),
)
TLS = tuple(
    ClusterResource(GATEWAY_API, version, "tlsroutes", "TLSRoute") for version in ("v1", "v1alpha3", "v1alpha2")
)
"""The versions of clusters with different releases of Gateway API, the best first."""

_KINDS: Final = (*((each,) for each in HTTP_AND_GRPC), TLS)
_MOST_OF_A_LIST: Final = 500
_MOST_ROUTES: Final = 2_000
_MOST_BYTES: Final = 64 * 1024 * 1024
_MOST_KEPT_BYTES: Final = 1024 * 1024
"""A route with the hostname has about a kilobyte of what an answer tells."""
_MOST_NAMESPACES: Final = 20
_ENOUGH: Final = 100
"""An answer tells of twenty: with so many, others are not looked for in further namespaces."""


class FoundRoutes(NamedTuple):
    """The routes with a host, the namespaces in which the user may list HTTPRoutes, the namespaces and kinds of
    which they may list none, and the namespaces with routes that were not all looked at."""

    routes: Sequence[Object]
    searched: Sequence[str]
    unlisted: Set[tuple[str, str]]
    left_out: Sequence[str]


async def read_routes(sight: Sight, namespaces: Sequence[str], host: str) -> FoundRoutes:
    """Those of the namespaces in their order. Raises ClusterUnreachable."""
    search = _Search(sight, host)
    for number, namespace in enumerate(namespaces):
        if number < _MOST_NAMESPACES and len(search.found) < _ENOUGH and not search.is_over:
            await search.look_into(namespace)
        else:
            search.left_out[namespace] = None
    return FoundRoutes(search.found, search.searched, search.unlisted, list(search.left_out))


class _Search:
    """One search. It keeps of each route with the host what an answer tells, and is over when it has looked at as many
    routes, or as many bytes of them, as it may, or may keep no more."""

    def __init__(self, sight: Sight, host: str) -> None:
        self._sight = sight
        self._host = host
        self._routes_left = _MOST_ROUTES
        self._bytes_left = _MOST_BYTES
        self._kept_left = _MOST_KEPT_BYTES
        # the version that the cluster serves is known after the first list, and is the same in every namespace
        self._versions = {each[0].plural: each for each in _KINDS}
        self.found: list[Object] = []
        self.searched: list[str] = []
        self.unlisted: set[tuple[str, str]] = set()
        self.left_out: dict[str, None] = {}

    async def look_into(self, namespace: str) -> None:
        for plural in self._versions:
            if self.is_over:
                self.left_out[namespace] = None
                return
            found = await self._visited(plural, namespace)
            if found is None:
                self.unlisted.add((namespace, plural))
                continue
            self._routes_left -= found.objects
            self._bytes_left -= found.size
            if found.truncated or self._kept_left <= 0:
                self.left_out[namespace] = None
            if plural == HTTP_AND_GRPC[0].plural:
                self.searched.append(namespace)

    @property
    def is_over(self) -> bool:
        return min(self._routes_left, self._bytes_left, self._kept_left) <= 0

    async def _visited(self, plural: str, namespace: str) -> Visited | None:
        """Looks at those of the first version that the cluster serves. None if the user may not list them."""
        for each in self._versions[plural]:
            try:
                found = await self._sight.visit_first(
                    each,
                    namespace,
                    visit=partial(self._look_at, each),
                    limit=min(self._routes_left, _MOST_OF_A_LIST),
                    max_bytes=self._bytes_left,
                )
            except NotServed:
                continue
            if found is not None:
                self._versions[plural] = (each,)
            return found
        self._versions[plural] = ()
        return Visited(0, 0, truncated=False)

    def _look_at(self, resource: ClusterResource, obj: Object) -> None:
        if self._kept_left <= 0 or not any(each and hostname_matches(each, self._host) for each in hostnames_of(obj)):
            return
        route = known_route(resource, obj)
        self._kept_left -= json_size(route)
        self.found.append(route)
