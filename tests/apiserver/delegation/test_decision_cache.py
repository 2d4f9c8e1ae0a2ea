"""Verdicts that are kept, shared, and used while the host is away."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from apiserver.delegation.decision_cache import CachedDecision, DecisionCache
from apiserver.meta.errors import BadRequest, InternalError, ServiceUnavailable, StatusError


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class FakeReviews:
    """Answers `verdict`, or fails with `error`; counts how often it was asked."""

    def __init__(self, verdict: str = "allow") -> None:
        self.verdict = verdict
        self.error: StatusError | None = None
        self.asked = 0
        self.entered = asyncio.Event()
        self.gate = asyncio.Event()
        self.gate.set()

    async def __call__(self) -> str:
        self.asked += 1
        self.entered.set()
        await self.gate.wait()
        if self.error is not None:
            raise self.error
        return self.verdict


@pytest.fixture
def clock() -> Clock:
    return Clock()


def cache(clock: Callable[[], float], *, tolerance: float = 300.0, size: int = 100) -> DecisionCache[str]:
    return DecisionCache(ttl=10, tolerance=tolerance, usable_when_stale=lambda v: v == "allow", size=size, clock=clock)


async def test_a_verdict_is_asked_for_again_after_its_time(clock: Clock) -> None:
    reviews, verdicts = FakeReviews(), cache(clock)
    await verdicts.get_or_fetch("k", reviews)
    clock.now += 9.9
    assert await verdicts.get_or_fetch("k", reviews) == CachedDecision("allow")
    assert reviews.asked == 1
    clock.now += 0.2
    reviews.verdict = "deny"
    assert await verdicts.get_or_fetch("k", reviews) == CachedDecision("deny")
    assert reviews.asked == 2


async def test_concurrent_questions_share_one_call(clock: Clock) -> None:
    reviews, verdicts = FakeReviews(), cache(clock)
    reviews.gate.clear()
    questions = [asyncio.create_task(verdicts.get_or_fetch("k", reviews)) for _ in range(5)]
    await reviews.entered.wait()
    questions[0].cancel()
    reviews.gate.set()
    results = await asyncio.gather(*questions, return_exceptions=True)
    assert isinstance(results[0], asyncio.CancelledError)
    assert results[1:] == [CachedDecision("allow")] * 4
    assert reviews.asked == 1


async def test_a_failed_call_is_not_kept(clock: Clock) -> None:
    reviews, verdicts = FakeReviews(), cache(clock)
    reviews.error = BadRequest("no")
    with pytest.raises(BadRequest):
        await verdicts.get_or_fetch("k", reviews)
    reviews.error = None
    assert await verdicts.get_or_fetch("k", reviews) == CachedDecision("allow")


async def test_a_host_s_failure_becomes_a_503_with_retry_after(clock: Clock) -> None:
    reviews, verdicts = FakeReviews(), cache(clock)
    reviews.error = InternalError("etcd")
    with pytest.raises(ServiceUnavailable) as raised:
        await verdicts.get_or_fetch("k", reviews)
    assert raised.value.retry_after == 1


@pytest.mark.parametrize(
    ("verdict", "age", "tolerance", "used"),
    [
        pytest.param("allow", 299, 300, True, id="an allow within the tolerance"),
        pytest.param("allow", 301, 300, False, id="an allow that is too old"),
        pytest.param("deny", 20, 300, False, id="a denial"),
        pytest.param("allow", 20, 0, False, id="turned off"),
    ],
)
async def test_what_is_used_while_the_host_is_away(
    clock: Clock, verdict: str, age: float, tolerance: float, used: bool
) -> None:
    reviews, verdicts = FakeReviews(verdict), cache(clock, tolerance=tolerance)
    await verdicts.get_or_fetch("k", reviews)
    clock.now += age
    reviews.error = ServiceUnavailable("connection refused")
    if used:
        assert await verdicts.get_or_fetch("k", reviews) == CachedDecision(verdict, stale=True)
        return
    with pytest.raises(ServiceUnavailable):
        await verdicts.get_or_fetch("k", reviews)


async def test_an_absent_host_is_asked_once_a_second_only(clock: Clock) -> None:
    reviews, verdicts = FakeReviews(), cache(clock)
    await verdicts.get_or_fetch("k", reviews)
    clock.now += 20
    reviews.error = ServiceUnavailable("connection refused")
    for _ in range(5):
        await verdicts.get_or_fetch("k", reviews)
    assert reviews.asked == 2
    clock.now += 1.1
    reviews.error = None
    assert await verdicts.get_or_fetch("k", reviews) == CachedDecision("allow")


async def test_a_denial_takes_the_place_of_an_allow(clock: Clock) -> None:
    reviews, verdicts = FakeReviews(), cache(clock)
    await verdicts.get_or_fetch("k", reviews)
    clock.now += 20
    reviews.verdict = "deny"
    await verdicts.get_or_fetch("k", reviews)
    clock.now += 20
    reviews.error = ServiceUnavailable("connection refused")
    with pytest.raises(ServiceUnavailable):
        await verdicts.get_or_fetch("k", reviews)


async def test_a_silent_host_does_not_hold_up_what_is_known(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("apiserver.delegation.decision_cache._PATIENCE", 0.01)
    reviews, verdicts = FakeReviews(), cache(clock)
    await verdicts.get_or_fetch("k", reviews)
    clock.now += 20
    reviews.gate.clear()
    assert await verdicts.get_or_fetch("k", reviews) == CachedDecision("allow", stale=True)
    reviews.gate.set()


async def test_the_least_recently_used_verdict_goes_first(clock: Clock) -> None:
    reviews, verdicts = FakeReviews(), cache(clock, size=2)
    for key in ("a", "b", "a", "c"):
        await verdicts.get_or_fetch(key, reviews)
    assert verdicts.get_fresh("a") == "allow"
    assert verdicts.get_fresh("b") is None
