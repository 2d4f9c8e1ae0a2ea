"""Verdicts of the host's reviews, remembered: briefly as they are, longer for when the host cannot be reached."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

from apiserver.meta.errors import ServiceUnavailable, StatusError

V = TypeVar("V")

_RETRY_AFTER = 1
# While the host is known to be away, one request a second finds out whether it is back.
_AWAY_PAUSE = 1.0
_PATIENCE = 1.0
_CALL_LIMIT = 30.0


@dataclass(frozen=True, slots=True)
class CachedDecision(Generic[V]):
    """`stale` tells that the host could not be asked and this is what it said last."""

    value: V
    stale: bool = False


@dataclass(slots=True)
class _Entry(Generic[V]):
    value: V
    since: float


class DecisionCache(Generic[V]):
    """An LRU of verdicts. Concurrent questions with the same key share one call; failed calls are not cached.

    A verdict is used as it is for `ttl` seconds. If `lasting` says so, it is also used for up to `tolerance` seconds
    (0 turns that off) while the host is away, that is, while calls end in a 503.
    """

    def __init__(
        self,
        *,
        ttl: float,
        tolerance: float,
        usable_when_stale: Callable[[V], bool],
        size: int = 8192,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ttl = ttl
        self._tolerance = tolerance
        self._lasting = usable_when_stale
        self._size = size
        self._clock = clock
        self._entries: OrderedDict[Hashable, _Entry[V]] = OrderedDict()
        self._calls: dict[Hashable, asyncio.Task[V]] = {}
        self._away_until = 0.0

    def get_fresh(self, key: Hashable) -> V | None:
        """The verdict, if there is one that needs no call."""
        entry = self._entries.get(key)
        if entry is None or self._clock() - entry.since >= self._ttl:
            return None
        self._entries.move_to_end(key)
        return entry.value

    async def get_or_fetch(self, key: Hashable, ask: Callable[[], Awaitable[V]]) -> CachedDecision[V]:
        """The verdict, by `ask` if need be. Raises what `ask` raises; ServiceUnavailable if the host is away."""
        value = self.get_fresh(key)
        if value is not None:
            return CachedDecision(value)
        fallback = self._fallback(key)
        if fallback is not None and self._clock() < self._away_until:
            return CachedDecision(fallback, stale=True)
        call = self._calls.get(key) or self._start(key, ask)
        if fallback is not None:
            # a host that swallows packets must not hold up requests whose verdict is known
            await asyncio.wait({call}, timeout=_PATIENCE)
            if not call.done():
                self._away_until = self._clock() + _AWAY_PAUSE
                return CachedDecision(fallback, stale=True)
        try:
            # one caller's disconnection is no reason to fail the others
            return CachedDecision(await asyncio.shield(call))
        except ServiceUnavailable:
            self._away_until = self._clock() + _AWAY_PAUSE
            if fallback is None:
                raise
            return CachedDecision(fallback, stale=True)

    def _fallback(self, key: Hashable) -> V | None:
        entry = self._entries.get(key)
        if entry is None or not self._lasting(entry.value) or self._clock() - entry.since > self._tolerance:
            return None
        return entry.value

    def _start(self, key: Hashable, ask: Callable[[], Awaitable[V]]) -> asyncio.Task[V]:
        call = asyncio.create_task(self._call(key, ask), name="review")
        self._calls[key] = call
        call.add_done_callback(_consume)
        return call

    async def _call(self, key: Hashable, ask: Callable[[], Awaitable[V]]) -> V:
        try:
            async with asyncio.timeout(_CALL_LIMIT):
                value = await _available(ask)
            self._store(key, value)
            return value
        except TimeoutError as error:
            raise ServiceUnavailable("the host does not answer", retry_after=_RETRY_AFTER) from error
        finally:
            del self._calls[key]

    def _store(self, key: Hashable, value: V) -> None:
        self._entries[key] = _Entry(value, self._clock())
        self._entries.move_to_end(key)
        self._away_until = 0.0
        while len(self._entries) > self._size:
            self._entries.popitem(last=False)


async def _available(ask: Callable[[], Awaitable[V]]) -> V:
    """A failure of the host, whatever its code, means that it cannot be asked now."""
    try:
        return await ask()
    except StatusError as error:
        if error.code < 500 and error.code != 429:
            raise
        message = f"the host cannot be asked: {error.message}"
        raise ServiceUnavailable(message, retry_after=error.retry_after or _RETRY_AFTER) from error


def _consume(call: asyncio.Task[V]) -> None:
    """Every caller may have gone by the time the call fails; then nobody is to be told."""
    if not call.cancelled():
        call.exception()
