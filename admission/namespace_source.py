"""What plugins need to know of Namespaces: as an informer saw them, and as the host has them now."""

from __future__ import annotations

import asyncio
from typing import Protocol

from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Key, Object
from registry.cluster.interface import NAMESPACES, ClusterClient
from registry.cluster.object_store import ObjectLister
from registry.generic.backend import Backend


class NamespaceSource(Protocol):
    async def synced(self, seconds: float) -> bool:
        """Whether `get` can be relied upon; waits so long for it."""
        ...

    def get(self, name: str) -> Object | None:
        """From the cache."""
        ...

    async def live(self, name: str) -> Object | None:
        """From the host. Raises its StatusError, ClusterUnreachable."""
        ...


class ClusterNamespaces:
    """A NamespaceSource over an informer of Namespaces: its store, and the event that it sets once it is filled."""

    def __init__(self, *, cluster: ClusterClient, lister: ObjectLister, synced: asyncio.Event) -> None:
        self._cluster = cluster
        self._lister = lister
        self._synced = synced

    async def synced(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self._synced.wait()
        except TimeoutError:
            return False
        return True

    def get(self, name: str) -> Object | None:
        return self._lister.get(Key("", name))

    async def live(self, name: str) -> Object | None:
        try:
            return await self._cluster.get(NAMESPACES, "", name)
        except StatusError as e:
            if e.code == 404:
                return None
            raise


class StoredNamespaces:
    """A NamespaceSource over the place where Namespaces are kept."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    async def synced(self, seconds: float) -> bool:
        return True

    def get(self, name: str) -> Object | None:
        found = self._backend.cache.peek(Key("", name))
        return None if found is None else found.object()

    async def live(self, name: str) -> Object | None:
        return await self._backend.read(Key("", name), live=True)
