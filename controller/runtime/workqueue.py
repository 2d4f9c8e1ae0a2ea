"""A queue of keys, by the rules of k8s.io/client-go/util/workqueue; its clock is the event loop's.

A key is queued at most once, is never processed by two workers at a time, and is delayed after a failure.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Callable, Hashable
from typing import Generic, Protocol, TypeVar

from apiserver.meta.resource import Key

K = TypeVar("K", bound=Hashable)
Enqueue = Callable[[Key], None]

_FIRST_SECONDS = 0.005
_MAX_SECONDS = 1000.0
_MAX_DOUBLINGS = 32


class QueueMetrics(Protocol):
    """Durations are in seconds."""

    def depth(self, keys: int) -> None: ...

    def added(self) -> None: ...

    def retried(self) -> None: ...

    def waited(self, seconds: float) -> None: ...

    def worked(self, seconds: float) -> None: ...


class NoOpQueueMetrics:
    def depth(self, keys: int) -> None: ...

    def added(self) -> None: ...

    def retried(self) -> None: ...

    def waited(self, seconds: float) -> None: ...

    def worked(self, seconds: float) -> None: ...


class RateLimiter(Generic[K]):
    """Exponential backoff per key: 5 ms, doubled with each failure up to 1000 s, plus a jitter of up to a tenth, so
    that keys that failed together are not retried together."""

    def __init__(
        self,
        *,
        first: float = _FIRST_SECONDS,
        longest: float = _MAX_SECONDS,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._first = first
        self._longest = longest
        self._jitter = jitter
        self._failures: dict[K, int] = {}

    def next_delay(self, key: K) -> float:
        """Count one more failure, and return the seconds to wait."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        doublings = min(failures, _MAX_DOUBLINGS)
        return min(self._longest, math.ldexp(self._first, doublings) * (1 + self._jitter() / 10))

    def forget(self, key: K) -> None:
        self._failures.pop(key, None)

    def failures(self, key: K) -> int:
        return self._failures.get(key, 0)


class WorkQueue(Generic[K]):
    """A key that is added while it is being processed is queued again as soon as it is done."""

    def __init__(self, *, limiter: RateLimiter[K] | None = None, metrics: QueueMetrics | None = None) -> None:
        self._limiter = limiter if limiter is not None else RateLimiter[K]()
        self._metrics = metrics if metrics is not None else NoOpQueueMetrics()
        self._ready: asyncio.Queue[K] = asyncio.Queue()
        self._waiting: dict[K, float] = {}
        self._processing: dict[K, float] = {}
        self._dirty: set[K] = set()
        # with the due time, because uvloop's handles do not have it
        self._delayed: dict[K, tuple[float, asyncio.Handle]] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, key: K) -> None:
        if key in self._waiting or key in self._dirty:
            return
        self._metrics.added()
        if key in self._processing:
            self._dirty.add(key)
        else:
            self._enqueue(key)

    def add_after(self, key: K, seconds: float) -> None:
        """Add the key after `seconds`. If it is due at several times, only the earliest counts."""
        if seconds <= 0:
            self.add(key)
            return
        loop = asyncio.get_running_loop()
        due = loop.time() + seconds
        scheduled = self._delayed.get(key)
        if scheduled is not None:
            sooner, handle = scheduled
            if sooner <= due:
                return
            handle.cancel()
        self._delayed[key] = due, loop.call_at(due, self._due, key)

    def add_rate_limited(self, key: K) -> None:
        """Add the key with the backoff of one more failure."""
        self._metrics.retried()
        self.add_after(key, self._limiter.next_delay(key))

    def forget(self, key: K) -> None:
        """Reset the backoff of a key that has succeeded."""
        self._limiter.forget(key)

    def failures(self, key: K) -> int:
        return self._limiter.failures(key)

    async def get(self) -> K:
        """The next key. The caller must call `done` with it."""
        key = await self._ready.get()
        now = _now()
        self._metrics.waited(now - self._waiting.pop(key))
        self._metrics.depth(len(self._waiting))
        self._processing[key] = now
        return key

    def done(self, key: K) -> None:
        self._metrics.worked(_now() - self._processing.pop(key))
        if key in self._dirty:
            self._dirty.discard(key)
            self._enqueue(key)

    def unfinished_seconds(self) -> float:
        """The processing time so far of all keys in progress, added up."""
        now = _now()
        return sum(now - started for started in self._processing.values())

    def longest_running_seconds(self) -> float:
        return max((_now() - started for started in self._processing.values()), default=0.0)

    def _due(self, key: K) -> None:
        del self._delayed[key]
        self.add(key)

    def _enqueue(self, key: K) -> None:
        self._waiting[key] = _now()
        self._ready.put_nowait(key)
        self._metrics.depth(len(self._waiting))


def _now() -> float:
    return asyncio.get_running_loop().time()
