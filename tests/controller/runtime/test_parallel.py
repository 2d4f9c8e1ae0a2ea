"""Calls at the same time: results in order, and one error after all have ended."""

from __future__ import annotations

import asyncio

import pytest

from controller.runtime.parallel import run_all
from tests.virtual_time import virtual


class Calls:
    """Calls that take a time, and what has ended."""

    def __init__(self) -> None:
        self.ended: list[str] = []

    async def call(self, name: str, seconds: float, error: Exception | None = None) -> str:
        await asyncio.sleep(seconds)
        self.ended.append(name)
        if error is not None:
            raise error
        return name


@virtual
async def test_the_results_are_in_the_order_of_the_calls_and_take_as_long_as_the_slowest() -> None:
    calls, start = Calls(), asyncio.get_running_loop().time()
    found = await run_all([calls.call("a", 3), calls.call("b", 1), calls.call("c", 2)])
    assert (found, calls.ended) == (["a", "b", "c"], ["b", "c", "a"])
    assert asyncio.get_running_loop().time() - start == pytest.approx(3)


@virtual
async def test_the_first_error_is_raised_after_all_have_ended() -> None:
    calls = Calls()
    with pytest.raises(ValueError, match="a"):
        await run_all([calls.call("a", 2, ValueError("a")), calls.call("b", 1, ValueError("b")), calls.call("c", 3)])
    assert calls.ended == ["b", "a", "c"]


@virtual
async def test_a_cancellation_ends_all_calls() -> None:
    calls = Calls()
    running = asyncio.ensure_future(run_all([calls.call("a", 2), calls.call("b", 9)]))
    await asyncio.sleep(1)
    running.cancel()
    await asyncio.wait([running])
    await asyncio.sleep(20)
    assert running.cancelled()
    assert calls.ended == []
