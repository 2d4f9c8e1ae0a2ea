"""Large values are processed in a thread, small ones on the event loop."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable

import pytest

from apiserver.encoding.offload import (
    CURRENT_FLOW,
    LARGE_BYTES,
    json_size,
    offload_if_large,
    run_in_thread,
    shorten_switch_interval,
)


@pytest.mark.parametrize(
    ("size", "in_thread"),
    [pytest.param(LARGE_BYTES, False, id="small"), pytest.param(LARGE_BYTES + 1, True, id="large")],
)
async def test_large_work_runs_in_a_thread(size: int, in_thread: bool) -> None:
    thread = await offload_if_large(threading.get_ident, size=size)
    assert (thread != threading.get_ident()) is in_thread


@pytest.mark.parametrize("size", [pytest.param(0, id="small"), pytest.param(LARGE_BYTES + 1, id="large")])
async def test_errors_of_the_work_are_raised(size: int) -> None:
    with pytest.raises(ZeroDivisionError):
        await offload_if_large(lambda: 1 // 0, size=size)


async def test_a_user_has_one_thread_also_when_requests_are_given_up() -> None:
    """ATTACK-13: six requests, whose work takes longer than the requests may, kept all others from a thread."""
    end, begun = threading.Event(), threading.Semaphore(0)

    def endless() -> None:
        begun.release()
        assert end.wait(60)

    async def request(flow: str, work: Callable[[], None]) -> None:
        CURRENT_FLOW.set(flow)
        await run_in_thread(work)

    given_up = [asyncio.create_task(request("attacker", endless)) for _ in range(20)]
    await asyncio.to_thread(begun.acquire)
    for task in given_up:
        task.cancel()
    await asyncio.gather(*given_up, return_exceptions=True)
    more = [asyncio.create_task(request("attacker", endless)) for _ in range(20)]
    try:
        async with asyncio.timeout(10):
            await request("victim", lambda: None)
        assert not begun.acquire(blocking=False)
    finally:
        end.set()
        await asyncio.gather(*more)


async def test_work_of_no_request_is_not_limited() -> None:
    both = threading.Barrier(2, timeout=10)
    await asyncio.gather(run_in_thread(both.wait), run_in_thread(both.wait))


def test_json_size_adds_up_all_values() -> None:
    assert json_size({"a": "bc"}, None, [1]) == len('{"a":"bc"}null[1]')


def test_computing_threads_switch_within_a_millisecond() -> None:
    before = sys.getswitchinterval()
    try:
        shorten_switch_interval()
        assert sys.getswitchinterval() < 0.001
    finally:
        sys.setswitchinterval(before)
