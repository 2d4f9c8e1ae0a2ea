"""Bounds on processor time that hold on a busy machine, too."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# a single baseline may be disturbed, too, and would make the bound too easy
_LEAST_PAIRS, _PAIRS = 3, 30


def least_ratio(work: Callable[[], object], baseline: Callable[[], object], *, below: float) -> float:
    """The processor time of `work` in multiples of that of `baseline`, each the least of some runs in turns.

    Other work of the machine only adds to a time, so the measuring ends as soon as the ratio is `below` the bound.
    """
    ratio = LeastRatio(below)
    with without_collector():
        while ratio.is_undecided:
            ratio.add(baseline=cpu_seconds(baseline), work=cpu_seconds(work))
    return ratio.value


class LeastRatio:
    """As `least_ratio`, for processor times that the caller measures, in seconds."""

    def __init__(self, below: float) -> None:
        self._below = below
        self._works: list[float] = []
        self._baselines: list[float] = []

    @property
    def value(self) -> float:
        return min(self._works) / min(self._baselines)

    @property
    def is_undecided(self) -> bool:
        pairs = len(self._works)
        return pairs < _LEAST_PAIRS or (pairs < _PAIRS and self.value >= self._below)

    def add(self, work: float, baseline: float) -> None:
        self._works.append(work)
        self._baselines.append(baseline)


def cpu_seconds(work: Callable[[], object]) -> float:
    """The processor time of this thread for `work`."""
    started = time.thread_time()
    work()
    return time.thread_time() - started


@contextmanager
def without_collector() -> Iterator[None]:
    """Servers of other tests tune the garbage collector."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
