"""Tracks writes of this process that its watch cache has not observed yet."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from apiserver.encoding.encoded_object import CachedObject
from apiserver.meta.resource import Key


class PendingWrites:
    """Reads wait for these writes for at most 30 seconds each: after that the cache's own watch must be broken, and a
    stale read (with a warning to the caller) is better than none."""

    _SECONDS = 30.0

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self.rv = 0
        self._rv_expires = 0.0
        self._deletions: dict[Key, tuple[str, float]] = {}

    def expect_version(self, rv: int) -> None:
        if rv > self.rv:
            self.rv = rv
            self._rv_expires = self._clock() + self._SECONDS

    def expect_deletion(self, key: Key, uid: str) -> None:
        self._deletions[key] = (uid, self._clock() + self._SECONDS)

    def deletion_observed(self, key: Key, uid: str) -> None:
        """Called when the cache has observed the deletion of the object."""
        pending = self._deletions.get(key)
        if pending is not None and pending[0] == uid:
            del self._deletions[key]

    def all_observed(self, rv: int, objects: Mapping[Key, CachedObject]) -> bool:
        """True if a cache at `rv` with `objects` has observed every write."""
        if rv < self.rv and self._clock() < self._rv_expires:
            return False
        return not self._deletions or not any(self._is_pending(key, objects) for key in list(self._deletions))

    def _is_pending(self, key: Key, objects: Mapping[Key, CachedObject]) -> bool:
        uid, expires = self._deletions[key]
        if self._clock() >= expires:
            del self._deletions[key]
            return False
        current = objects.get(key)
        return current is not None and current.uid == uid
