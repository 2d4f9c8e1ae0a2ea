"""Attempts at the host's review endpoints (WIRE-A28)."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from apiserver.delegation import review_client as review
from apiserver.delegation.review_client import ReviewBackoff
from apiserver.meta.errors import ServiceUnavailable, StatusError, TooManyRequests
from apiserver.meta.resource import Object

AT_ONCE = ReviewBackoff(initial_delay=0, jitter=0)


class FakeReviews:
    """Fails with each of `errors` in turn, then answers."""

    def __init__(self, *errors: StatusError) -> None:
        self.errors = list(errors)
        self.asked = 0

    async def __call__(self, body: Object) -> Object:
        self.asked += 1
        if self.errors:
            raise self.errors.pop(0)
        return body


def failure(code: int) -> StatusError:
    return StatusError(code, "", "failed")


async def test_passing_failures_are_got_over() -> None:
    cluster = FakeReviews(failure(500), failure(504), failure(429))
    assert await review.post_with_retries(cluster, {"a": 1}, AT_ONCE) == {"a": 1}
    assert cluster.asked == 4


@pytest.mark.parametrize("code", [pytest.param(403, id="refused"), pytest.param(503, id="the host is away")])
async def test_other_failures_are_told_at_once(code: int) -> None:
    cluster = FakeReviews(failure(code))
    with pytest.raises(StatusError) as raised:
        await review.post_with_retries(cluster, {}, AT_ONCE)
    assert raised.value.code == code
    assert cluster.asked == 1


async def test_the_last_failure_is_told() -> None:
    cluster = FakeReviews(*[failure(500)] * 9)
    with pytest.raises(StatusError):
        await review.post_with_retries(cluster, {}, AT_ONCE)
    assert cluster.asked == 5


async def test_pauses_grow_and_heed_retry_after(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    cluster = FakeReviews(failure(500), failure(500), TooManyRequests("later", retry_after=7), failure(500))
    await review.post_with_retries(cluster, {}, ReviewBackoff(jitter=0))
    assert pauses == [0.5, 0.75, 7, 1.6875]


async def test_no_answer_in_time_is_a_503() -> None:
    async def silent(body: Object) -> Object:
        await asyncio.Event().wait()
        return body

    with pytest.raises(ServiceUnavailable):
        await review.post_with_retries(silent, {}, ReviewBackoff(attempt_timeout=0.01))


@pytest.mark.parametrize(
    ("error", "code"),
    [
        pytest.param(None, 201, id="an answer"),
        pytest.param(failure(403), 403, id="a refusal"),
        pytest.param(ServiceUnavailable("the host is away"), None, id="no host"),
    ],
)
async def test_each_call_is_counted_by_its_answer(error: StatusError | None, code: int | None) -> None:
    codes: list[int | None] = []
    asked = review.count_responses(FakeReviews(*[error] if error else []), codes.append)
    with contextlib.suppress(StatusError):
        assert await asked({"a": 1}) == {"a": 1}
    assert codes == [code]


async def test_a_call_that_is_cut_is_counted_as_unanswered() -> None:
    async def silent(body: Object) -> Object:
        await asyncio.Event().wait()
        return body

    codes: list[int | None] = []
    with pytest.raises(ServiceUnavailable):
        await review.post_with_retries(
            review.count_responses(silent, codes.append), {}, ReviewBackoff(attempt_timeout=0.01)
        )
    assert codes == [None]
