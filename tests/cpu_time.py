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
    works: list[float] = []
    baselines: list[float] = []
    with _without_collector():
        for pair in range(1, _PAIRS + 1):
            baselines.append(_cpu_seconds(baseline))
            works.append(_cpu_seconds(work))
            if pair >= _LEAST_PAIRS and min(works) < below * min(baselines):
                break
    return min(works) / min(baselines)


def _cpu_seconds(work: Callable[[], object]) -> float:
    started = time.thread_time()
    work()
    return time.thread_time() - started


@contextmanager
def _without_collector() -> Iterator[None]:
    """Servers of other tests tune the garbage collector."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
