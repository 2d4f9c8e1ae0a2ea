"""Long work on the event loop, in slices: others have their turn in between."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Final, TypeVar

T = TypeVar("T")

_SLICE_SECONDS: Final = 0.005


class Yielder:
    """What works for long calls `give` now and then, where everything is in order."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began = clock()

    async def yield_if_due(self) -> None:
        """A turn for everybody else whenever 5 ms have gone by."""
        if self._clock() - self._began >= _SLICE_SECONDS:
            await asyncio.sleep(0)
            self._began = self._clock()


async def iterate_cooperatively(items: Iterable[T], *, clock: Callable[[], float] = time.monotonic) -> AsyncIterator[T]:
    """The items, with turns for everybody else between any two: what works through them leaves things in order."""
    turns = Yielder(clock=clock)
    for item in items:
        yield item
        await turns.yield_if_due()
