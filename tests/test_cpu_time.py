from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from tests import cpu_time


class Clock:
    """The processor time of this thread, which only the measured work uses."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def work(self, *durations: float) -> Callable[[], None]:
        """Work that takes these times, one after the other, and the last of them from then on."""
        left = list(durations)

        def run() -> None:
            self.now += left.pop(0) if len(left) > 1 else left[0]

        return run


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(time, "thread_time", clock)
    return clock


def test_a_disturbed_run_does_not_count(clock: Clock) -> None:
    work, baseline = clock.work(90, 50, 3), clock.work(1, 8, 1)
    assert cpu_time.least_ratio(work, baseline, below=5) == 3


def test_measuring_ends_when_the_bound_holds(clock: Clock) -> None:
    cpu_time.least_ratio(clock.work(9, 9, 9, 3), clock.work(1), below=5)
    assert clock.now == 9 + 9 + 9 + 3 + 4 * 1


def test_a_disturbed_baseline_does_not_count(clock: Clock) -> None:
    assert cpu_time.least_ratio(clock.work(9), clock.work(5, 1), below=5) == 9


def test_work_that_takes_too_long_is_never_below_the_bound(clock: Clock) -> None:
    assert cpu_time.least_ratio(clock.work(6), clock.work(1), below=5) == 6
