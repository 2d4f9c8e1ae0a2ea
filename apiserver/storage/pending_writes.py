"""What this process wrote and its cache has yet to see."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from apiserver.encoding.encoded_object import CachedObject
from apiserver.meta.resource import Key


class PendingWrites:
    """An expectation is given up after 30 seconds: then the watch that should bring it is broken, and reads that are
    out of date (of which callers are warned) serve better than none."""

    _SECONDS = 30.0

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self.rv = 0
        self._rv_expires = 0.0
        self._gone: dict[Key, tuple[str, float]] = {}

    def expect_version(self, rv: int) -> None:
        if rv > self.rv:
            self.rv = rv
            self._rv_expires = self._clock() + self._SECONDS

    def expect_deletion(self, key: Key, uid: str) -> None:
        self._gone[key] = (uid, self._clock() + self._SECONDS)

    def deletion_observed(self, key: Key, uid: str) -> None:
        """The object at `key` with `uid` is gone."""
        awaited = self._gone.get(key)
        if awaited is not None and awaited[0] == uid:
            del self._gone[key]

    def all_observed(self, rv: int, objects: Mapping[Key, CachedObject]) -> bool:
        """Whether a cache at `rv` with `objects` has seen everything."""
        if rv < self.rv and self._clock() < self._rv_expires:
            return False
        return not self._gone or not any(self._is_awaited(key, objects) for key in list(self._gone))

    def _is_awaited(self, key: Key, objects: Mapping[Key, CachedObject]) -> bool:
        uid, expires = self._gone[key]
        if self._clock() >= expires:
            del self._gone[key]
            return False
        held = objects.get(key)
        return held is not None and held.uid == uid
