"""Tells which writes the cluster would reject, because they were decided on a state that is known to be superseded.

A reconcile that another object's event starts can run before the watch event of its own last write has arrived. And
while one writes many objects, others change the object whose status it writes at the end. kube-controller-manager
guards against the former (KEP-5647) by the version of a whole cache; this compares the versions of one object.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

from apiserver.meta.errors import Conflict
from apiserver.meta.resource import GroupResource, Key, Object
from registry.cluster.interface import ClusterResource
from registry.cluster.object_store import ObjectLister, key_of

_REMEMBERED_SECONDS = 10.0
"""Longer than watch events take in a storm. After a restore of etcd, whose versions begin anew, writes wait as long."""


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


class _Write(NamedTuple):
    version: int
    at: float


class Freshness:
    """`caches` are those that objects of a kind are observed in; of other kinds, only own writes are known."""

    def __init__(
        self,
        caches: Mapping[ClusterResource, ObjectCache] | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._caches = caches or {}
        self._clock = clock
        # in the order of the writes
        self._own_writes: OrderedDict[tuple[ClusterResource, Key], _Write] = OrderedDict()

    def __len__(self) -> int:
        """The number of own writes that are remembered."""
        return len(self._own_writes)

    def record(self, res: ClusterResource, written: Object) -> None:
        """Remember the version of an object as the cluster has answered a write of it."""
        now, place = self._clock(), (res, key_of(written))
        self._forget(now)
        self._own_writes[place] = _Write(_version(written["metadata"]), now)
        self._own_writes.move_to_end(place)

    def require_current(self, res: ClusterResource, observed: Object) -> None:
        """Raises StaleObservation if we have written the object since it was observed, or its cache has a later one."""
        key, version = key_of(observed), _version(observed["metadata"])
        if self._last_own_version(res, key) > version:
            raise _stale(res, key)
        cache = self._caches.get(res)
        cached = cache.store.get(key) if cache is not None else None
        if cached is not None and _version(cached["metadata"]) > version:
            raise _stale(res, key)

    def require_absent(self, res: ClusterResource, key: Key) -> None:
        """Raises StaleObservation if the cache lacks the object only because it has not reached our own last write."""
        cache = self._caches.get(res)
        if cache is not None and self._last_own_version(res, key) > cache.resource_version:
            raise _stale(res, key)

    def _last_own_version(self, res: ClusterResource, key: Key) -> int:
        last = self._own_writes.get((res, key))
        return last.version if last is not None and self._clock() < last.at + _REMEMBERED_SECONDS else 0

    def _forget(self, now: float) -> None:
        while self._own_writes:
            oldest = next(iter(self._own_writes))
            if now < self._own_writes[oldest].at + _REMEMBERED_SECONDS:
                return
            del self._own_writes[oldest]


def _stale(res: ClusterResource, key: Key) -> StaleObservation:
    return StaleObservation(GroupResource(res.group, res.plural), key.name)


def _version(metadata: Mapping[str, Any]) -> int:
    return int(metadata["resourceVersion"])
