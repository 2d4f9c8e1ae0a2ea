"""Long-running work yields to the event loop."""

from __future__ import annotations

from itertools import count

import pytest

from apiserver.cooperative import iterate_cooperatively
from tests.loop_iterations import count_loop_iterations


@pytest.mark.parametrize(
    ("milliseconds", "expected"),
    [
        pytest.param(0.1, 0, id="short work does not yield"),
        pytest.param(2.0, 3, id="every five milliseconds"),
        pytest.param(30.0, 10, id="after each item that takes longer"),
    ],
)
async def test_other_tasks_run_between_items(milliseconds: float, expected: int) -> None:
    """There are ten items; each takes `milliseconds`."""
    ticks = count()
    async with count_loop_iterations() as counted:
        items = [item async for item in iterate_cooperatively(range(10), clock=lambda: now(next(ticks), milliseconds))]
        iterations = counted.count
    assert items == list(range(10))
    assert iterations == expected


def now(tick: int, milliseconds: float) -> float:
    return tick * milliseconds / 1000
