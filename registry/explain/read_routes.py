"""Reads the routes with a hostname, as far as the user may list them, and no more than other requests can wait for.

Routes that are not looked at are told (`left_out`): a route that nobody has seen is not missing.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Final, NamedTuple

from apiserver.meta.resource import Object
from registry.cluster.interface import ClusterResource
from registry.explain.hostnames import hostname_matches
from registry.explain.sight import ListedPage, Sight

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
        if number < _MOST_NAMESPACES and len(search.found) < _ENOUGH:
            await search.look_into(namespace)
        else:
            search.left_out[namespace] = None
    return FoundRoutes(search.found, search.searched, search.unlisted, list(search.left_out))


class _Search:
    """One search, which has looked at all but `rest` of the routes that it may look at."""

    def __init__(self, sight: Sight, host: str) -> None:
        self._sight = sight
        self._host = host
        self._rest = _MOST_ROUTES
        # the version that the cluster serves is known after the first list, and is the same in every namespace
        self._versions = {each[0].plural: each for each in _KINDS}
        self.found: list[Object] = []
        self.searched: list[str] = []
        self.unlisted: set[tuple[str, str]] = set()
        self.left_out: dict[str, None] = {}

    async def look_into(self, namespace: str) -> None:
        for plural in self._versions:
            if self._rest <= 0:
                self.left_out[namespace] = None
                return
            page = await self._listed(plural, namespace)
            if page is None:
                self.unlisted.add((namespace, plural))
                continue
            self._rest -= len(page.items)
            if page.truncated:
                self.left_out[namespace] = None
            if plural == HTTP_AND_GRPC[0].plural:
                self.searched.append(namespace)
            self.found += [each for each in page.items if _names(each, self._host)]

    async def _listed(self, plural: str, namespace: str) -> ListedPage | None:
        """Those of the first version that the cluster serves. None if the user may not list them."""
        for each in self._versions[plural]:
            page = await self._sight.list(each, namespace, limit=min(self._rest, _MOST_OF_A_LIST))
            if page is None:
                return None
            if page.served:
                self._versions[plural] = (each,)
                return page
        self._versions[plural] = ()
        return ListedPage(())


def _names(route: Object, host: str) -> bool:
    return any(
        isinstance(each, str) and each and hostname_matches(each, host)
        for each in (route.get("spec") or {}).get("hostnames") or ()
    )
