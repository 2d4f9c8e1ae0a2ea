from __future__ import annotations

from itertools import count

import pytest

from apiserver.cooperative import iterate_cooperatively
from tests.loop_iterations import count_loop_iterations


@pytest.mark.parametrize(
    ("milliseconds", "turns"),
    [
        pytest.param(0.1, 0, id="short work is done in one go"),
        pytest.param(2.0, 3, id="a turn every five milliseconds"),
        pytest.param(30.0, 10, id="a turn after each item that takes longer"),
    ],
)
async def test_others_have_their_turn(milliseconds: float, turns: int) -> None:
    """Ten items, each of which takes so long."""
    ticks = count()
    async with count_loop_iterations() as counted:
        seen = [item async for item in iterate_cooperatively(range(10), clock=lambda: now(next(ticks), milliseconds))]
        had = counted.count
    assert seen == list(range(10))
    assert had == turns


def now(tick: int, milliseconds: float) -> float:
    return tick * milliseconds / 1000
