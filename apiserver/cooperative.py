"""Splits long-running work on the event loop: a task yields every 5 ms, and tasks that do the same work take turns."""

from __future__ import annotations

import asyncio
import time
from collections import deque
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
    """Lets one waiting task of each flow continue in every iteration of the event loop: a flow is a user, or a
    controller.

    Tasks that become ready together would otherwise run in one iteration, and everybody else would wait for all of them
    (ATTACK-19).
    """

    def __init__(self) -> None:
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    async def wait(self, flow: str) -> None:
        """Returns at once if no other task of the flow had its turn in this iteration."""
        loop = asyncio.get_running_loop()
        queue = self._waiting.get(flow)
        if queue is None:
            self._waiting[flow] = deque()
            loop.call_soon(self._give_turn, loop, flow)
            return
        turn = loop.create_future()
        queue.append(turn)
        await turn

    def _give_turn(self, loop: asyncio.AbstractEventLoop, flow: str) -> None:
        queue = self._waiting[flow]
        while queue:
            turn = queue.popleft()
            # a client that has gone away has cancelled its turn
            if not turn.done():
                turn.set_result(None)
                loop.call_soon(self._give_turn, loop, flow)
                return
        del self._waiting[flow]
