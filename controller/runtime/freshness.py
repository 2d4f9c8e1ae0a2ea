"""Tells which writes the cluster would reject, because they were decided on a state that is known to be superseded.

A reconcile that another object's event starts can run before the watch event of its own last write has arrived. And
while one writes many objects, others change the object whose status it writes at the end. kube-controller-manager
guards against the former (KEP-5647) by the version of a whole cache; this compares the versions of one object.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Protocol

from apiserver.meta.errors import Conflict
from apiserver.meta.resource import GroupResource, Key, Object
from controller.runtime.own_writes import OwnWrites
from registry.cluster.interface import ClusterResource
from registry.cluster.object_store import ObjectLister, key_of, version_of


class StaleObservation(Conflict):
    """A write was not sent, because the object is known to have changed since it was observed. Callers treat it as the
    Conflict that the cluster would have answered."""


class ObjectCache(Protocol):
    """An informer."""

    @property
    def store(self) -> ObjectLister: ...

    @property
    def resource_version(self) -> int:
        """The version up to which the store has all changes of its kind."""
        ...


class Freshness:
    """`caches` are those that objects of a kind are observed in; of other kinds, only own writes are known."""

    def __init__(
        self,
        caches: Mapping[ClusterResource, ObjectCache] | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._caches = caches or {}
        self._own_writes: OwnWrites[tuple[ClusterResource, Key], int] = OwnWrites(clock=clock)

    def record(self, res: ClusterResource, written: Object) -> None:
        """Remember the version of an object as the cluster has answered a write of it."""
        version = version_of(written)
        self._own_writes.record((res, key_of(written)), version, version)

    def require_current(self, res: ClusterResource, observed: Object) -> None:
        """Raises StaleObservation if we have written the object since it was observed, or its cache has a later one."""
        key, version = key_of(observed), version_of(observed)
        if self._own_writes.newer_than((res, key), version):
            raise _stale(res, key)
        cache = self._caches.get(res)
        cached = cache.store.get(key) if cache is not None else None
        if cached is not None and version_of(cached) > version:
            raise _stale(res, key)

    def require_absent(self, res: ClusterResource, key: Key) -> None:
        """Raises StaleObservation if the cache lacks the object only because it has not reached our own last write."""
        cache = self._caches.get(res)
        if cache is not None and self._own_writes.newer_than((res, key), cache.resource_version):
            raise _stale(res, key)


def _stale(res: ClusterResource, key: Key) -> StaleObservation:
    return StaleObservation(GroupResource(res.group, res.plural), key.name)
