"""Metrics of how long the event loop is blocked, measured by the delay of a periodic timer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

from prometheus_client import CollectorRegistry, Gauge, Histogram

_PERIOD: Final = 0.01
# Timers are always slightly late; shorter delays are not counted.
_SHORTEST: Final = 0.01
_SECONDS = (0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5)


class EventLoopLag:
    """Records stalls of the event loop that are longer than the timer's period of 10 ms; each is underestimated by at
    most that period. A slow callback and a lack of CPU time cannot be distinguished."""

    def __init__(self, registry: CollectorRegistry, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._stalls = Histogram(
            "apiserver_event_loop_stall_seconds",
            "Durations of more than 10 ms for which the event loop was blocked.",
            buckets=_SECONDS,
            registry=registry,
        )
        self._longest = Gauge(
            "apiserver_event_loop_longest_stall_seconds",
            "The longest duration for which the event loop was blocked since the process started.",
            registry=registry,
        )
        # uvloop does not advance its own time while callbacks run
        self._clock = clock
        self._most = 0.0

    async def watch(self) -> None:
        """Measure until cancelled."""
        loop = asyncio.get_running_loop()
        never: asyncio.Future[None] = loop.create_future()
        due = 0.0
        timer: asyncio.TimerHandle

        # a timer without a coroutine, as it takes a large part of what a server without requests does
        def start() -> None:
            nonlocal due, timer
            due = self._clock() + _PERIOD
            timer = loop.call_later(_PERIOD, ring)

        def ring() -> None:
            late = self._clock() - due
            if late >= _SHORTEST:
                self._record(late)
            start()

        start()
        try:
            await never
        finally:
            timer.cancel()

    def _record(self, late: float) -> None:
        self._stalls.observe(late)
        if late > self._most:
            self._most = late
            self._longest.set(late)
