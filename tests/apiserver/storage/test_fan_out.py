"""Events reach many watches without a task for each, and without delaying others."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from apiserver.storage.fan_out import FanOut
from tests.fake_clock import FakeClock


class Recipient:
    def __init__(self, push: Callable[[], None]) -> None:
        self.push = push


async def test_recipients_send_in_the_order_in_which_they_became_due() -> None:
    fan_out, sent = FanOut(), list[str]()
    for name in "abc":
        fan_out.schedule(Recipient(lambda name=name: sent.append(name)))  # type: ignore[misc]
    assert sent == []
    await asyncio.sleep(0)
    assert sent == ["a", "b", "c"]


async def test_other_callbacks_of_the_event_loop_run_every_five_milliseconds() -> None:
    clock, sent = FakeClock(), list[int]()
    fan_out = FanOut(clock=clock)

    def push() -> None:
        clock.advance(0.002)
        sent.append(len(sent))

    for _ in range(7):
        fan_out.schedule(Recipient(push))
    seen = []
    while len(sent) < 7:
        await asyncio.sleep(0)
        seen.append(len(sent))
    assert seen == [3, 6, 7]


async def test_a_recipient_that_has_more_to_send_is_due_again_after_the_others() -> None:
    fan_out, sent = FanOut(), list[str]()

    def push_twice() -> None:
        sent.append("a")
        if sent.count("a") < 2:
            fan_out.schedule(Recipient(push_twice))

    fan_out.schedule(Recipient(push_twice))
    fan_out.schedule(Recipient(lambda: sent.append("b")))
    await asyncio.sleep(0)
    assert sent == ["a", "b", "a"]
    fan_out.schedule(Recipient(lambda: sent.append("c")))
    await asyncio.sleep(0)
    assert sent == ["a", "b", "a", "c"]
