"""A cache of the decisions of reviews: fresh for a short time, and usable for longer while the cluster is
unreachable."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Generic, TypeVar

from apiserver.delegation.review_client import ReviewRefused
from apiserver.delegation.shared_calls import retrieve_exception
from apiserver.meta.errors import ServiceUnavailable, StatusError

V = TypeVar("V")

_RETRY_AFTER = 1
# While the cluster is unreachable, one call a second probes it.
_PROBE_INTERVAL = 1.0
# A caller that has a stale decision waits this long for a fresh one.
_STALE_WAIT = 1.0
_CALL_TIMEOUT = 30.0
# The bytes that Python needs for an object besides its content, and for a reference to it, rounded up.
_OBJECT_BYTES, _REFERENCE_BYTES = 64, 8


@dataclass(frozen=True, slots=True)
class CachedDecision(Generic[V]):
    """`stale` means that the cluster is unreachable and `value` is its last known decision."""

    value: V
    stale: bool = False


@dataclass(slots=True)
class _Entry(Generic[V]):
    value: V
    since: float
    size: int


class DecisionCache(Generic[V]):
    """An LRU cache of decisions. Concurrent callers with the same key share one call; failed calls are not cached.

    A decision is fresh for `ttl` seconds from the start of its call. If `usable_when_stale` returns True for it, it is
    also used for up to `tolerance` seconds (0 disables this) while the cluster is unreachable, that is, while calls
    fail with a 503.

    Clients choose what the keys hold. All entries together have about `max_bytes`, a single one at most a
    thirty-second of it, and entries that have become unusable are removed (ATTACK-19).
    """

    def __init__(
        self,
        *,
        ttl: float,
        tolerance: float,
        usable_when_stale: Callable[[V], bool],
        size: int = 8192,
        max_bytes: int = 16 * 1024 * 1024,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ttl = ttl
        self._tolerance = tolerance
        self._lasting = usable_when_stale
        self._size = size
        self._max_bytes = max_bytes
        self._max_entry_bytes = max_bytes // 32
        self._bytes = 0
        self._clock = clock
        self._removal: asyncio.TimerHandle | None = None
        self._entries: OrderedDict[Hashable, _Entry[V]] = OrderedDict()
        self._calls: dict[Hashable, asyncio.Task[V]] = {}
        self._unreachable_until = 0.0

    def __len__(self) -> int:
        return len(self._entries)

    def get_fresh(self, key: Hashable) -> V | None:
        """Returns the decision if it is fresh, so that no call is needed."""
        entry = self._entries.get(key)
        if entry is None or self._clock() - entry.since >= self._ttl:
            return None
        self._entries.move_to_end(key)
        return entry.value

    async def get_or_fetch(
        self, key: Hashable, fetch: Callable[[], Awaitable[V]], *, anew: bool = False
    ) -> CachedDecision[V]:
        """Returns the cached decision, or the one that `fetch` returns. With `anew`, a cached one is used only while
        the cluster is unreachable.

        Raises the errors of `fetch`; ServiceUnavailable if the cluster is unreachable, ReviewRefused if it refuses.
        """
        value = None if anew else self.get_fresh(key)
        if value is not None:
            return CachedDecision(value)
        fallback = self._fallback(key)
        if fallback is not None and self._clock() < self._unreachable_until:
            return CachedDecision(fallback, stale=True)
        call = self._calls.get(key) or self._start_call(key, fetch)
        if fallback is not None:
            # a cluster that does not answer must not delay requests that have a stale decision
            await asyncio.wait({call}, timeout=_STALE_WAIT)
            if not call.done():
                self._unreachable_until = self._clock() + _PROBE_INTERVAL
                return CachedDecision(fallback, stale=True)
        try:
            # shielded, so that a caller that disconnects does not cancel the call of the others
            return CachedDecision(await asyncio.shield(call))
        except ReviewRefused:
            raise
        except ServiceUnavailable:
            self._unreachable_until = self._clock() + _PROBE_INTERVAL
            if fallback is None:
                raise
            return CachedDecision(fallback, stale=True)

    def _fallback(self, key: Hashable) -> V | None:
        entry = self._entries.get(key)
        if entry is None or not self._lasting(entry.value) or self._clock() - entry.since > self._tolerance:
            return None
        return entry.value

    def _start_call(self, key: Hashable, fetch: Callable[[], Awaitable[V]]) -> asyncio.Task[V]:
        call = asyncio.create_task(self._call(key, fetch), name="review")
        self._calls[key] = call
        call.add_done_callback(retrieve_exception)
        return call

    async def _call(self, key: Hashable, fetch: Callable[[], Awaitable[V]]) -> V:
        # the cluster may decide at any time before it answers
        started = self._clock()
        try:
            value = await call_cluster(fetch)
            self._store(key, value, started)
            return value
        finally:
            del self._calls[key]

    def _store(self, key: Hashable, value: V, since: float) -> None:
        self._unreachable_until = 0.0
        self._discard(key)
        size = memory_of(key) + memory_of(value)
        if size > self._max_entry_bytes:
            return
        self._entries[key] = _Entry(value, since, size)
        self._bytes += size
        while len(self._entries) > self._size or self._bytes > self._max_bytes:
            self._discard(next(iter(self._entries)))
        if self._removal is None:
            self._removal = asyncio.get_running_loop().call_later(self._ttl, self._remove_unusable)

    def _discard(self, key: Hashable) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._bytes -= entry.size

    def _remove_unusable(self) -> None:
        """Runs every `ttl` seconds while there are entries."""
        now = self._clock()
        for key, entry in tuple(self._entries.items()):
            usable = max(self._ttl, self._tolerance) if self._lasting(entry.value) else self._ttl
            if now - entry.since >= usable:
                self._discard(key)
        loop = asyncio.get_running_loop()
        self._removal = loop.call_later(self._ttl, self._remove_unusable) if self._entries else None


def memory_of(value: object) -> int:
    """An estimate of the memory of a key or decision in bytes: strings, tuples, mappings and dataclasses of these."""
    if isinstance(value, (str, bytes)):
        return _OBJECT_BYTES + len(value)
    if isinstance(value, (tuple, frozenset)):
        return _OBJECT_BYTES + sum(_REFERENCE_BYTES + memory_of(each) for each in value)
    if isinstance(value, Mapping):
        return _OBJECT_BYTES + sum(memory_of(key) + memory_of(each) for key, each in value.items())
    if is_dataclass(value):
        return _OBJECT_BYTES + sum(memory_of(getattr(value, each.name)) for each in fields(value))
    return 0


async def call_cluster(fetch: Callable[[], Awaitable[V]]) -> V:
    """Calls `fetch` and turns every failure of the cluster (5xx, 429, no answer) into ServiceUnavailable. Raises
    ReviewRefused as it is."""
    try:
        async with asyncio.timeout(_CALL_TIMEOUT):
            return await fetch()
    except TimeoutError as error:
        raise ServiceUnavailable("the cluster does not answer", retry_after=_RETRY_AFTER) from error
    except ReviewRefused:
        raise
    except StatusError as error:
        if error.code < 500 and error.code != 429:
            raise
        message = f"the cluster is unavailable: {error.message}"
        raise ServiceUnavailable(message, retry_after=error.retry_after or _RETRY_AFTER) from error
