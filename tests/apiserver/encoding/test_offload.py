"""Large values are processed in a thread, small ones on the event loop."""

from __future__ import annotations

import sys
import threading

import pytest

from apiserver.encoding.offload import LARGE_BYTES, json_size, offload_if_large, shorten_switch_interval


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


def test_json_size_adds_up_all_values() -> None:
    assert json_size({"a": "bc"}, None, [1]) == len('{"a":"bc"}null[1]')


def test_computing_threads_switch_within_a_millisecond() -> None:
    before = sys.getswitchinterval()
    try:
        shorten_switch_interval()
        assert sys.getswitchinterval() < 0.001
    finally:
        sys.setswitchinterval(before)
