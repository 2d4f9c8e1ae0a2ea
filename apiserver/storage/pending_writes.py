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
        """The latest version that any of them has."""
        self._rv_expires = 0.0
        self._versions: dict[Key, tuple[int, float]] = {}
        self._deletions: dict[Key, tuple[str, float]] = {}

    def expect_version(self, key: Key, rv: int) -> None:
        expires = self._clock() + self._SECONDS
        pending = self._versions.pop(key, None)
        # as the last one, so that the first one is the oldest; an answer may come after that to a later write
        self._versions[key] = (max(rv, pending[0]) if pending is not None else rv, expires)
        if rv > self.rv:
            self.rv = rv
            self._rv_expires = expires

    def expect_deletion(self, key: Key, uid: str) -> None:
        self._deletions.pop(key, None)
        self._deletions[key] = (uid, self._clock() + self._SECONDS)

    def version_observed(self, rv: int) -> None:
        """Called when the cache is complete up to `rv`. Forgets what need not be waited for."""
        while self._versions:
            oldest = next(iter(self._versions))
            if self._is_version_pending(oldest, rv):
                break
            del self._versions[oldest]
        # one whose event came before the answer to the request is not observed again
        while self._deletions:
            oldest = next(iter(self._deletions))
            if self._clock() < self._deletions[oldest][1]:
                return
            del self._deletions[oldest]

    def deletion_observed(self, key: Key, uid: str) -> None:
        """Called when the cache has observed the deletion of the object."""
        pending = self._deletions.get(key)
        if pending is not None and pending[0] == uid:
            del self._deletions[key]

    def all_observed(self, rv: int, objects: Mapping[Key, CachedObject]) -> bool:
        """True if a cache at `rv` with `objects` has observed every write."""
        if rv < self.rv and self._clock() < self._rv_expires:
            return False
        return not self._deletions or not any(self._is_deletion_pending(key, objects) for key in self._deletions)

    def observed(self, key: Key, rv: int, objects: Mapping[Key, CachedObject]) -> bool:
        """True if a cache at `rv` with `objects` has observed the writes of one object."""
        if not self._versions and not self._deletions:
            # nearly always, for each GET
            return True
        return not self._is_version_pending(key, rv) and not self._is_deletion_pending(key, objects)

    def _is_version_pending(self, key: Key, rv: int) -> bool:
        pending = self._versions.get(key)
        return pending is not None and rv < pending[0] and self._clock() < pending[1]

    def _is_deletion_pending(self, key: Key, objects: Mapping[Key, CachedObject]) -> bool:
        pending, current = self._deletions.get(key), objects.get(key)
        if pending is None or current is None:
            return False
        return current.uid == pending[0] and self._clock() < pending[1]
