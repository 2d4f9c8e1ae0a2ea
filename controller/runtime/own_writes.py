"""Remembers what this process has written until its informers have caught up.

The answer to a write may be processed after the watch events of the write, and of later writes by others: neither is
the newest by itself, and only their versions tell which one is.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Final, Generic, NamedTuple, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

_REMEMBERED_SECONDS: Final = 10.0
"""Longer than watch events take in a storm. After a restore of etcd, whose versions begin anew, nothing is observed as
newer than a write of before for as long."""


class _Write(NamedTuple, Generic[V]):
    version: int
    at: float
    value: V


class OwnWrites(Generic[K, V]):
    """The last write of each object, for ten seconds."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        # in the order of the writes
        self._writes: OrderedDict[K, _Write[V]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._writes)

    def record(self, key: K, version: int, value: V) -> None:
        """Remember that an object has been written, with the version that the cluster has answered."""
        now = self._clock()
        self._forget(now)
        self._writes[key] = _Write(version, now, value)
        self._writes.move_to_end(key)

    def newer_than(self, key: K, version: int) -> V | None:
        """The value of our last write of an object, if that is newer than a version up to which it was observed."""
        self._forget(self._clock())
        last = self._writes.get(key)
        return last.value if last is not None and last.version > version else None

    def _forget(self, now: float) -> None:
        while self._writes:
            oldest = next(iter(self._writes))
            if now < self._writes[oldest].at + _REMEMBERED_SECONDS:
                return
            del self._writes[oldest]
