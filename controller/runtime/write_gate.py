"""What every write of a controller passes: open while this replica leads, closed from the renew deadline on.

A replica that was frozen, or cut off from the host, finds the gate closed before another one may lead.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import Protocol


class NotLeading(Exception):
    """The write was not made, or broken off: another replica may be leading."""


class WriteGate(Protocol):
    def writing(self) -> AbstractAsyncContextManager[None]:
        """Held around one write. Raises NotLeading."""
        ...


class OpenGate:
    """For a process that is alone."""

    def writing(self) -> AbstractAsyncContextManager[None]:
        return nullcontext()


class LeaseGate:
    """`clock` has to go on while the process is stopped, and to be read anew each time: an event loop's own time is
    neither with every loop."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._deadline = 0.0
        self._writes: set[asyncio.Timeout] = set()

    @property
    def is_open(self) -> bool:
        return self._clock() < self._deadline

    def open_until(self, deadline: float) -> None:
        """`deadline` is a time of the clock. Writes that are under way may take as long."""
        self._deadline = deadline
        for write in self._writes:
            if not write.expired():
                write.reschedule(self._loop_time())

    def close(self) -> None:
        self.open_until(0.0)

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[None]:
        if not self.is_open:
            raise NotLeading("this replica does not lead")
        write = asyncio.timeout_at(self._loop_time())
        try:
            async with write:
                self._writes.add(write)
                try:
                    yield
                finally:
                    self._writes.discard(write)
        except TimeoutError as e:
            raise NotLeading("the lease ran out during a write") from e

    def _loop_time(self) -> float:
        return asyncio.get_running_loop().time() + max(0.0, self._deadline - self._clock())
