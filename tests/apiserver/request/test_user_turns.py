"""Requests of one user take turns with those of others."""

from __future__ import annotations

import asyncio

from apiserver.request.user_turns import UserTurns


async def test_a_burst_of_one_user_does_not_delay_another() -> None:
    """One request of each user continues in an iteration of the event loop."""
    turns, order = UserTurns(), list[str]()

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
    turns = UserTurns()
    tasks = [asyncio.create_task(turns.wait("alice")) for _ in range(4)]
    await asyncio.sleep(0)
    tasks[1].cancel()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(each) for each in results] == [type(None), asyncio.CancelledError, type(None), type(None)]


async def test_a_user_who_has_waited_for_nobody_lately_goes_on_at_once() -> None:
    turns = UserTurns()
    await turns.wait("alice")
    await asyncio.sleep(0)
    waiting = asyncio.create_task(turns.wait("alice"))
    await asyncio.sleep(0)
    assert waiting.done()
