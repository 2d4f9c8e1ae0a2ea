"""What is large is worked on beside the event loop, and what is small on it."""

from __future__ import annotations

import sys
import threading

import pytest

from apiserver.encoding.offload import LARGE_BYTES, json_size, offload_if_large, shorten_switch_interval


@pytest.mark.parametrize(
    ("size", "beside"),
    [pytest.param(LARGE_BYTES, False, id="small"), pytest.param(LARGE_BYTES + 1, True, id="large")],
)
async def test_who_sends_much_is_who_waits(size: int, beside: bool) -> None:
    thread = await offload_if_large(threading.get_ident, size=size)
    assert (thread != threading.get_ident()) is beside


@pytest.mark.parametrize("size", [pytest.param(0, id="small"), pytest.param(LARGE_BYTES + 1, id="large")])
async def test_what_is_wrong_is_raised(size: int) -> None:
    with pytest.raises(ZeroDivisionError):
        await offload_if_large(lambda: 1 // 0, size=size)


def test_a_size_is_that_of_all_values_together() -> None:
    assert json_size({"a": "bc"}, None, [1]) == len('{"a":"bc"}null[1]')


def test_a_thread_that_computes_gives_the_others_their_turn_within_a_millisecond() -> None:
    before = sys.getswitchinterval()
    try:
        shorten_switch_interval()
        assert sys.getswitchinterval() < 0.001
    finally:
        sys.setswitchinterval(before)
