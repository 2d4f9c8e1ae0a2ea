"""How long the event loop keeps everybody waiting, as metrics: a timer that is late says for how long."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

from prometheus_client import CollectorRegistry, Gauge, Histogram

_PERIOD: Final = 0.01
# A stall counts from where it would be felt; timers are a little late all the time.
_SHORTEST: Final = 0.01
_SECONDS = (0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5)


class EventLoopLag:
    """A stall is seen unless it is shorter than the timer's period of 10 ms, and by at most that too short. It does not
    tell a callback that is slow from a process that gets no processor: who waits cannot either."""

    def __init__(self, registry: CollectorRegistry, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._stalls = Histogram(
            "apiserver_event_loop_stall_seconds",
            "Times over 10 ms in which the event loop did nothing else.",
            buckets=_SECONDS,
            registry=registry,
        )
        self._longest = Gauge(
            "apiserver_event_loop_longest_stall_seconds",
            "The longest of these times since the process started.",
            registry=registry,
        )
        # uvloop's own time stands still while callbacks run
        self._clock = clock
        self._most = 0.0

    async def watch(self) -> None:
        """Runs until it is cancelled."""
        while True:
            due = self._clock() + _PERIOD
            await asyncio.sleep(_PERIOD)
            self._record(self._clock() - due)

    def _record(self, late: float) -> None:
        if late < _SHORTEST:
            return
        self._stalls.observe(late)
        if late > self._most:
            self._most = late
            self._longest.set(late)
