"""The gate that every write of a controller passes: open while this replica leads, closed from the renew deadline on.

A replica that was frozen, or cut off from the cluster, finds the gate closed before another replica may lead.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import Protocol


class NotLeading(Exception):
    """The write was not sent, or was cancelled: another replica may be leading."""


class WriteGate(Protocol):
    @property
    def is_open(self) -> bool: ...

    def writing(self) -> AbstractAsyncContextManager[None]:
        """A context manager around one write. Raises NotLeading."""
        ...


class OpenGate:
    """For a process without leader election."""

    is_open = True

    def writing(self) -> AbstractAsyncContextManager[None]:
        return nullcontext()


class LeaseGate:
    """`clock` must advance while the process is suspended, and must not be cached. The time of an event loop is
    unsuitable, because not every implementation guarantees this."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._deadline = 0.0
        self._writes: set[asyncio.Timeout] = set()

    @property
    def is_open(self) -> bool:
        return self._clock() < self._deadline

    def open_until(self, deadline: float) -> None:
        """`deadline` is a time of the clock. It also becomes the deadline of writes in progress."""
        self._deadline = deadline
        for write in self._writes:
            if not write.expired():
                write.reschedule(self._loop_time())

    def close(self) -> None:
        self.open_until(0.0)

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[None]:
        if not self.is_open:
            raise NotLeading("this replica is not the leader")
        write = asyncio.timeout_at(self._loop_time())
        try:
            async with write:
                self._writes.add(write)
                try:
                    yield
                finally:
                    self._writes.discard(write)
        except TimeoutError as e:
            raise NotLeading("the lease expired during a write") from e

    def _loop_time(self) -> float:
        return asyncio.get_running_loop().time() + max(0.0, self._deadline - self._clock())
