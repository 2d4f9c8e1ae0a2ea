from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable

import pytest

from apiserver.delegation.shared_calls import SharedCalls


class Question:
    """Counts the calls of the cluster; each waits for `answer`, in the order of the calls."""

    def __init__(self) -> None:
        self.begun = 0
        self._answers: list[asyncio.Future[int]] = []

    async def __call__(self) -> int:
        self.begun += 1
        answer: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._answers.append(answer)
        return await answer

    def answer(self, value: int) -> None:
        self._answers.pop(0).set_result(value)

    def fail(self, error: Exception) -> None:
        self._answers.pop(0).set_exception(error)


def asks(calls: SharedCalls[int], key: str, fetch: Callable[[], Awaitable[int]]) -> asyncio.Task[int]:
    return asyncio.create_task(calls.call(key, fetch))


async def settle() -> None:
    """Lets all tasks go on until each waits for an answer."""
    for _ in range(10):
        await asyncio.sleep(0)


async def test_callers_never_get_an_answer_of_a_call_that_began_before_them() -> None:
    calls, question = SharedCalls[int](), Question()
    first = asks(calls, "key", question)
    await settle()
    later = [asks(calls, "key", question) for _ in range(3)]
    await settle()
    assert question.begun == 1
    question.answer(1)
    await settle()
    assert (await first, question.begun) == (1, 2)
    assert not any(each.done() for each in later)
    question.answer(2)
    assert await asyncio.gather(*later) == [2, 2, 2]


@pytest.mark.parametrize("seed", range(20))
async def test_every_caller_is_answered_by_a_call_that_began_after_it(seed: int) -> None:
    """Callers that arrive, calls that end and calls that fail, in a random order."""
    calls, chance, begun, open_calls = SharedCalls[int](), random.Random(seed), 0, 0

    async def fetch() -> int:
        nonlocal begun, open_calls
        begun, open_calls = begun + 1, open_calls + 1
        assert open_calls == 1
        mine = begun
        for _ in range(chance.randrange(4)):
            await asyncio.sleep(0)
        open_calls -= 1
        if chance.random() < 0.2:
            raise ValueError
        return mine

    async def ask() -> None:
        asked_after = begun
        with contextlib.suppress(ValueError):
            assert await calls.call("key", fetch) > asked_after

    callers = []
    for _ in range(200):
        callers.append(asyncio.create_task(ask()))
        for _ in range(chance.randrange(3)):
            await asyncio.sleep(0)
    await asyncio.gather(*callers)
    assert begun < 200


async def test_each_key_has_calls_of_its_own() -> None:
    calls, question = SharedCalls[int](), Question()
    both = [asks(calls, key, question) for key in ("one", "two")]
    await settle()
    assert question.begun == 2
    question.answer(1)
    question.answer(2)
    assert await asyncio.gather(*both) == [1, 2]


async def test_an_error_reaches_the_callers_of_its_call_only() -> None:
    calls, question = SharedCalls[int](), Question()
    first = asks(calls, "key", question)
    await settle()
    second = asks(calls, "key", question)
    await settle()
    question.fail(ValueError("no"))
    await settle()
    with pytest.raises(ValueError, match="no"):
        await first
    question.answer(2)
    assert await second == 2


async def test_a_caller_that_is_cancelled_does_not_cancel_the_others() -> None:
    calls, question = SharedCalls[int](), Question()
    first = asks(calls, "key", question)
    await settle()
    second, third = asks(calls, "key", question), asks(calls, "key", question)
    await settle()
    first.cancel()
    second.cancel()
    await settle()
    question.answer(1)
    await settle()
    question.answer(2)
    assert await third == 2
    fourth = asks(calls, "key", question)
    await settle()
    question.answer(3)
    assert await fourth == 3
