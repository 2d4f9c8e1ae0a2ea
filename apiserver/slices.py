"""Long work on the event loop, in slices: others have their turn in between."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Final, TypeVar

T = TypeVar("T")

_SLICE_SECONDS: Final = 0.005


async def in_slices(items: Iterable[T], *, clock: Callable[[], float] = time.monotonic) -> AsyncIterator[T]:
    """The items, with a turn for everybody else whenever 5 ms have gone by. What works through them has to leave
    things in order between any two."""
    began = clock()
    for item in items:
        yield item
        if clock() - began >= _SLICE_SECONDS:
            await asyncio.sleep(0)
            began = clock()
