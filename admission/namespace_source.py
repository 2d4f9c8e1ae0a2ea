"""Namespaces for admission plugins: from the informer's cache, and read live from the cluster."""

from __future__ import annotations

from typing import Protocol

from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Key, Object
from registry.cluster.interface import NAMESPACES, ClusterClient
from registry.cluster.object_store import ObjectLister
from registry.generic.backend import Backend


class NamespaceSource(Protocol):
    def get(self, name: str) -> Object | None:
        """Reads from the cache."""
        ...

    async def get_live(self, name: str) -> Object | None:
        """Reads from the cluster. Raises its StatusError, ClusterUnreachable."""
        ...


class ClusterNamespaces:
    """A NamespaceSource over an informer of Namespaces: `lister` is its store."""

    def __init__(self, *, cluster: ClusterClient, lister: ObjectLister) -> None:
        self._cluster = cluster
        self._lister = lister

    def get(self, name: str) -> Object | None:
        return self._lister.get(Key("", name))

    async def get_live(self, name: str) -> Object | None:
        try:
            return await self._cluster.get(NAMESPACES, "", name)
        except StatusError as e:
            if e.code == 404:
                return None
            raise


class StoredNamespaces:
    """A NamespaceSource that reads the storage of Namespaces directly (embedded cluster)."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def get(self, name: str) -> Object | None:
        found = self._backend.cache.peek(Key("", name))
        return None if found is None else found.object()

    async def get_live(self, name: str) -> Object | None:
        return await self._backend.read(Key("", name), live=True)
