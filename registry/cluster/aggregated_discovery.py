"""Everything that a cluster serves, in two documents: the aggregated discovery of /api and of /apis, which
kube-apiserver has by default since 1.27."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterator
from dataclasses import dataclass

from apiserver.meta.resource import Object
from registry.cluster.interface import ServedResource

PATHS = ("/api", "/apis")
"""The core group has a document of its own."""
_KIND = "APIGroupDiscoveryList"
ACCEPT = ",".join(
    (*(f"application/json;g=apidiscovery.k8s.io;v={each};as={_KIND}" for each in ("v2", "v2beta1")), "application/json")
)


@dataclass(frozen=True, slots=True)
class Discovered:
    """The last answer: a request with its `etag` gets 304 as long as it is valid."""

    etag: str = ""
    served: Collection[ServedResource] | None = None

    @classmethod
    def read(cls, etag: str, document: Object) -> Discovered:
        return cls(etag, served_resources(document))

    @property
    def headers(self) -> dict[str, str]:
        """The headers of the next request."""
        return {"Accept": ACCEPT, **({"If-None-Match": self.etag} if self.etag else {})}


class DiscoveryRequests:
    """Asks the cluster once for all who ask at a time, such as the lookups of several informer factories."""

    def __init__(self, get: Callable[[str, Discovered], Awaitable[Discovered]]) -> None:
        """`get` returns the present state of the document at a path; it raises the cluster's StatusError."""
        self._get = get
        self._last = dict.fromkeys(PATHS, Discovered())
        self._running: asyncio.Task[Collection[ServedResource] | None] | None = None

    async def served_resources(self) -> Collection[ServedResource] | None:
        if self._running is None or self._running.done():
            self._running = asyncio.create_task(self._ask(), name="discovery")
        return await asyncio.shield(self._running)

    async def _ask(self) -> Collection[ServedResource] | None:
        found: set[ServedResource] = set()
        for path, last in tuple(self._last.items()):
            current = self._last[path] = await self._get(path, last)
            if current.served is None:
                return None
            found.update(current.served)
        return found

    def cancel(self) -> None:
        if self._running is not None:
            self._running.cancel()


def served_resources(document: Object) -> Collection[ServedResource] | None:
    """The resources in such a document; None if it is not the aggregated one."""
    return frozenset(_resources(document)) if document.get("kind") == _KIND else None


def _resources(document: Object) -> Iterator[ServedResource]:
    for group in document.get("items") or ():
        name = (group.get("metadata") or {}).get("name") or ""
        for version in group.get("versions") or ():
            for resource in version.get("resources") or ():
                yield name, version["version"], resource["resource"]
