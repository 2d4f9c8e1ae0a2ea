"""Limits the CPU time of the expressions that decide about one request."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

# Kubernetes limits the cost of an evaluation, which the library cannot measure. A policy within Kubernetes' budget
# takes less than this.
SECONDS = 1.0

Clock = Callable[[], float]


class CutOff(Exception):
    """A limit of this server, which the text names, ended an evaluation: the request must be rejected, with any
    failurePolicy."""


class Budget:
    """One second of the thread's CPU time, unless the caller sets `abandoned` before: nobody waits for the result."""

    def __init__(self, *, clock: Clock = time.thread_time, abandoned: threading.Event | None = None) -> None:
        self._clock = clock
        self._end = clock() + SECONDS
        # checked first, because it is cheaper; a thread cannot use more CPU time than has elapsed
        self._earliest = time.monotonic() + SECONDS
        self._abandoned = abandoned
        # not an exception: its traceback would refer to the values of the evaluation, and their functions refer to this
        # object without the garbage collector seeing it
        self._cut_off = ""

    def check(self) -> None:
        """Raises CutOff, and from then on always."""
        if self._cut_off:
            raise CutOff(self._cut_off)
        if self._abandoned is not None and self._abandoned.is_set():
            raise self.end("the request has ended")
        if time.monotonic() > self._earliest and self._clock() > self._end:
            raise self.end(f"it takes more than {SECONDS:g} s of CPU time")

    def end(self, why: str) -> CutOff:
        """Ends all evaluations, and returns the error to raise."""
        self._cut_off = self._cut_off or why
        return CutOff(self._cut_off)
