"""Long-running work yields to the event loop, and tasks of one flow take turns on it."""

from __future__ import annotations

import asyncio
from itertools import count

import pytest

from apiserver.cooperative import Turns, iterate_cooperatively
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


async def test_a_burst_of_one_user_does_not_delay_another() -> None:
    """One request of each user continues in an iteration of the event loop."""
    turns, order = Turns(), list[str]()

    async def request(user: str, name: str) -> None:
        await turns.wait(user)
        order.append(name)

    async with asyncio.TaskGroup() as group:
        for number in range(50):
            group.create_task(request("greedy", f"greedy-{number}"))
        group.create_task(request("modest", "modest"))
    assert order.index("modest") <= 1
    greedy = [each for each in order if each != "modest"]
    assert greedy == [f"greedy-{number}" for number in range(50)]


async def test_a_request_that_is_cancelled_leaves_its_turn_to_the_next() -> None:
    turns = Turns()
    tasks = [asyncio.create_task(turns.wait("alice")) for _ in range(4)]
    await asyncio.sleep(0)
    tasks[1].cancel()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(each) for each in results] == [type(None), asyncio.CancelledError, type(None), type(None)]


async def test_a_user_who_has_waited_for_nobody_lately_goes_on_at_once() -> None:
    turns = Turns()
    await turns.wait("alice")
    await asyncio.sleep(0)
    waiting = asyncio.create_task(turns.wait("alice"))
    await asyncio.sleep(0)
    assert waiting.done()
