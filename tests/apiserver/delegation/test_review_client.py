"""Retries and timeouts of calls of the review endpoints (WIRE-A28)."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from apiserver.delegation import review_client as review
from apiserver.delegation.review_client import ReviewBackoff
from apiserver.meta.errors import ServiceUnavailable, StatusError, TooManyRequests
from apiserver.meta.resource import Object

WITHOUT_DELAY = ReviewBackoff(initial_delay=0, jitter=0)


class FakeReviews:
    """Raises each of `errors` in turn, then succeeds."""

    def __init__(self, *errors: StatusError) -> None:
        self.errors = list(errors)
        self.calls = 0

    async def __call__(self, body: Object) -> Object:
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return body


def failure(code: int) -> StatusError:
    return StatusError(code, "", "failed")


async def test_transient_failures_are_retried() -> None:
    cluster = FakeReviews(failure(500), failure(504), failure(429))
    assert await review.post_with_retries(cluster, {"a": 1}, WITHOUT_DELAY) == {"a": 1}
    assert cluster.calls == 4


@pytest.mark.parametrize("code", [pytest.param(403, id="rejected"), pytest.param(503, id="unreachable")])
async def test_other_failures_are_raised_at_once(code: int) -> None:
    cluster = FakeReviews(failure(code))
    with pytest.raises(StatusError) as raised:
        await review.post_with_retries(cluster, {}, WITHOUT_DELAY)
    assert raised.value.code == code
    assert cluster.calls == 1


async def test_the_last_failure_is_raised() -> None:
    cluster = FakeReviews(*[failure(500)] * 9)
    with pytest.raises(StatusError):
        await review.post_with_retries(cluster, {}, WITHOUT_DELAY)
    assert cluster.calls == 5


async def test_delays_grow_and_respect_retry_after(monkeypatch: pytest.MonkeyPatch) -> None:
    delays: list[float] = []

    async def sleep(seconds: float) -> None:
        delays.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    cluster = FakeReviews(failure(500), failure(500), TooManyRequests("later", retry_after=7), failure(500))
    await review.post_with_retries(cluster, {}, ReviewBackoff(jitter=0))
    assert delays == [0.5, 0.75, 7, 1.6875]


async def test_an_attempt_that_times_out_is_a_503() -> None:
    async def silent(body: Object) -> Object:
        await asyncio.Event().wait()
        return body

    with pytest.raises(ServiceUnavailable):
        await review.post_with_retries(silent, {}, ReviewBackoff(attempt_timeout=0.01))


@pytest.mark.parametrize(
    ("error", "code"),
    [
        pytest.param(None, 201, id="a response"),
        pytest.param(failure(403), 403, id="a rejection"),
        pytest.param(ServiceUnavailable("the cluster is unreachable"), None, id="no response"),
    ],
)
async def test_each_call_is_counted_by_its_status_code(error: StatusError | None, code: int | None) -> None:
    codes: list[int | None] = []
    counted = review.count_responses(FakeReviews(*[error] if error else []), codes.append)
    with contextlib.suppress(StatusError):
        assert await counted({"a": 1}) == {"a": 1}
    assert codes == [code]


async def test_a_call_that_times_out_is_counted_without_a_status_code() -> None:
    async def silent(body: Object) -> Object:
        await asyncio.Event().wait()
        return body

    codes: list[int | None] = []
    with pytest.raises(ServiceUnavailable):
        await review.post_with_retries(
            review.count_responses(silent, codes.append), {}, ReviewBackoff(attempt_timeout=0.01)
        )
    assert codes == [None]
