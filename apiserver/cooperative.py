"""Splits long-running work on the event loop: a task yields every 5 ms, and tasks that do the same work take turns."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Final, TypeVar

T = TypeVar("T")

_SLICE_SECONDS: Final = 0.005


class Yielder:
    """Long-running work calls `yield_if_due()` at points where its state is consistent."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began = clock()

    async def yield_if_due(self) -> None:
        """Yield to the event loop if 5 ms have passed since the last time."""
        if self._clock() - self._began >= _SLICE_SECONDS:
            await asyncio.sleep(0)
            self._began = self._clock()


async def iterate_cooperatively(items: Iterable[T], *, clock: Callable[[], float] = time.monotonic) -> AsyncIterator[T]:
    """Iterate over the items, yielding to the event loop between two of them if 5 ms have passed. The caller's state
    must be consistent after each item."""
    yielder = Yielder(clock=clock)
    for item in items:
        yield item
        await yielder.yield_if_due()


class Turns:
    """Tasks that do the same work piece by piece take turns: one of them continues in each iteration of the event loop.

    Otherwise a request would wait for a piece of each of them, and for as many again before its response.
    """

    def __init__(self) -> None:
        self._lock = asyncio.Lock()

    async def wait(self) -> None:
        """Wait for at least one iteration."""
        async with self._lock:
            await asyncio.sleep(0)
