"""Decisions are cached, shared by concurrent callers, and used while the cluster is unreachable."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from apiserver.delegation.decision_cache import CachedDecision, DecisionCache, memory_of
from apiserver.delegation.review_client import ReviewRefused
from apiserver.meta.errors import BadRequest, InternalError, ServiceUnavailable, StatusError
from apiserver.meta.selectors import Requirement
from apiserver.request.context import User
from tests.virtual_time import virtual


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class FakeReviews:
    """Returns `decision` or raises `error`, and counts the calls."""

    def __init__(self, decision: str = "allow") -> None:
        self.decision = decision
        self.error: StatusError | None = None
        self.calls = 0
        self.entered = asyncio.Event()
        self.gate = asyncio.Event()
        self.gate.set()

    async def __call__(self) -> str:
        self.calls += 1
        self.entered.set()
        await self.gate.wait()
        if self.error is not None:
            raise self.error
        return self.decision


@pytest.fixture
def clock() -> Clock:
    return Clock()


def cache(
    clock: Callable[[], float], *, tolerance: float = 300.0, size: int = 100, max_bytes: int = 1_000_000
) -> DecisionCache[str]:
    return DecisionCache(
        ttl=10,
        tolerance=tolerance,
        usable_when_stale=lambda v: v == "allow",
        size=size,
        max_bytes=max_bytes,
        clock=clock,
    )


async def test_a_decision_is_fetched_again_after_its_ttl(clock: Clock) -> None:
    reviews, decisions = FakeReviews(), cache(clock)
    await decisions.get_or_fetch("k", reviews)
    clock.now += 9.9
    assert await decisions.get_or_fetch("k", reviews) == CachedDecision("allow")
    assert reviews.calls == 1
    clock.now += 0.2
    reviews.decision = "deny"
    assert await decisions.get_or_fetch("k", reviews) == CachedDecision("deny")
    assert reviews.calls == 2


async def test_the_ttl_begins_with_the_call_and_not_with_its_answer(clock: Clock) -> None:
    """The cluster may have decided when the call began, and access may have been revoked since."""
    reviews, decisions = FakeReviews(), cache(clock)
    reviews.gate.clear()
    request = asyncio.create_task(decisions.get_or_fetch("k", reviews))
    await reviews.entered.wait()
    clock.now += 6
    reviews.gate.set()
    await request
    clock.now += 6
    await decisions.get_or_fetch("k", reviews)
    assert reviews.calls == 2


async def test_concurrent_requests_share_one_call(clock: Clock) -> None:
    reviews, decisions = FakeReviews(), cache(clock)
    reviews.gate.clear()
    requests = [asyncio.create_task(decisions.get_or_fetch("k", reviews)) for _ in range(5)]
    await reviews.entered.wait()
    requests[0].cancel()
    reviews.gate.set()
    results = await asyncio.gather(*requests, return_exceptions=True)
    assert isinstance(results[0], asyncio.CancelledError)
    assert results[1:] == [CachedDecision("allow")] * 4
    assert reviews.calls == 1


async def test_a_failed_call_is_not_cached(clock: Clock) -> None:
    reviews, decisions = FakeReviews(), cache(clock)
    reviews.error = BadRequest("no")
    with pytest.raises(BadRequest):
        await decisions.get_or_fetch("k", reviews)
    reviews.error = None
    assert await decisions.get_or_fetch("k", reviews) == CachedDecision("allow")


async def test_a_failure_of_the_cluster_becomes_a_503_with_retry_after(clock: Clock) -> None:
    reviews, decisions = FakeReviews(), cache(clock)
    reviews.error = InternalError("etcd")
    with pytest.raises(ServiceUnavailable) as raised:
        await decisions.get_or_fetch("k", reviews)
    assert raised.value.retry_after == 1


@pytest.mark.parametrize(
    ("decision", "age", "tolerance", "used"),
    [
        pytest.param("allow", 299, 300, True, id="an allow within the tolerance"),
        pytest.param("allow", 301, 300, False, id="an allow that is too old"),
        pytest.param("deny", 20, 300, False, id="a denial"),
        pytest.param("allow", 20, 0, False, id="tolerance turned off"),
    ],
)
async def test_only_recent_allows_are_used_while_the_cluster_is_unreachable(
    clock: Clock, decision: str, age: float, tolerance: float, used: bool
) -> None:
    reviews, decisions = FakeReviews(decision), cache(clock, tolerance=tolerance)
    await decisions.get_or_fetch("k", reviews)
    clock.now += age
    reviews.error = ServiceUnavailable("connection refused")
    if used:
        assert await decisions.get_or_fetch("k", reviews) == CachedDecision(decision, stale=True)
        return
    with pytest.raises(ServiceUnavailable):
        await decisions.get_or_fetch("k", reviews)


async def test_an_unreachable_cluster_is_called_once_a_second(clock: Clock) -> None:
    reviews, decisions = FakeReviews(), cache(clock)
    await decisions.get_or_fetch("k", reviews)
    clock.now += 20
    reviews.error = ServiceUnavailable("connection refused")
    for _ in range(5):
        await decisions.get_or_fetch("k", reviews)
    assert reviews.calls == 2
    clock.now += 1.1
    reviews.error = None
    assert await decisions.get_or_fetch("k", reviews) == CachedDecision("allow")


async def test_a_denial_replaces_a_cached_allow(clock: Clock) -> None:
    reviews, decisions = FakeReviews(), cache(clock)
    await decisions.get_or_fetch("k", reviews)
    clock.now += 20
    reviews.decision = "deny"
    await decisions.get_or_fetch("k", reviews)
    clock.now += 20
    reviews.error = ServiceUnavailable("connection refused")
    with pytest.raises(ServiceUnavailable):
        await decisions.get_or_fetch("k", reviews)


async def test_a_call_without_an_answer_does_not_delay_a_stale_decision(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("apiserver.delegation.decision_cache._STALE_WAIT", 0.01)
    reviews, decisions = FakeReviews(), cache(clock)
    await decisions.get_or_fetch("k", reviews)
    clock.now += 20
    reviews.gate.clear()
    assert await decisions.get_or_fetch("k", reviews) == CachedDecision("allow", stale=True)
    reviews.gate.set()


async def test_the_least_recently_used_decision_is_evicted_first(clock: Clock) -> None:
    reviews, decisions = FakeReviews(), cache(clock, size=2)
    for key in ("a", "b", "a", "c"):
        await decisions.get_or_fetch(key, reviews)
    assert decisions.get_fresh("a") == "allow"
    assert decisions.get_fresh("b") is None


async def test_the_oldest_decisions_are_evicted_when_there_are_too_many_bytes(clock: Clock) -> None:
    """ATTACK-19: selectors are parts of the keys, so that clients choose their size."""
    reviews = FakeReviews()
    decisions = cache(clock, max_bytes=64_000)
    for number in range(100):
        await decisions.get_or_fetch((str(number), "x" * 1000), reviews)
    found = [number for number in range(100) if decisions.get_fresh((str(number), "x" * 1000)) is not None]
    assert found == list(range(100 - len(found), 100))
    assert 40 < len(found) < 64


async def test_a_very_large_decision_is_not_cached(clock: Clock) -> None:
    """ATTACK-19"""
    reviews, decisions = FakeReviews(), cache(clock, max_bytes=64_000)
    for key in ("x" * 1000, "x" * 3000):
        for _ in range(2):
            await decisions.get_or_fetch(key, reviews)
    assert reviews.calls == 3


@virtual
async def test_decisions_are_removed_when_nothing_can_use_them_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """ATTACK-19: also if there are no further requests."""
    reviews, sizes = FakeReviews(), list[int]()
    monkeypatch.setattr("apiserver.delegation.decision_cache.memory_of", lambda value: 1)
    decisions = cache(asyncio.get_running_loop().time, tolerance=50)
    for key, decision in (("a", "deny"), ("b", "allow")):
        reviews.decision = decision
        await decisions.get_or_fetch(key, reviews)
    for _ in range(7):
        sizes.append(len(decisions))
        await asyncio.sleep(10.5)
    assert sizes == [2, 1, 1, 1, 1, 0, 0]


@pytest.mark.parametrize(
    ("value", "least"),
    [
        pytest.param("x" * 5000, 5000, id="text"),
        pytest.param(tuple("ab" for _ in range(1000)), 1000 * 50, id="many values"),
        pytest.param(User("u", groups=("g" * 100,) * 50, extra={"k": ("v" * 1000,)}), 6000, id="a user"),
        pytest.param(Requirement("k", "In", tuple(f"v{number}" for number in range(1000))), 60_000, id="a selector"),
    ],
)
def test_the_memory_of_a_key_is_estimated(value: object, least: int) -> None:
    assert least < memory_of(value) < 3 * least


async def test_a_refused_review_is_no_outage(clock: Clock) -> None:
    """A server that may not review any more admits nobody by what it was told before."""
    decisions, reviews = cache(clock), FakeReviews()
    assert await decisions.get_or_fetch("k", reviews) == CachedDecision("allow")
    clock.now += 11
    reviews.error = ReviewRefused("the cluster does not let this server review")
    with pytest.raises(ReviewRefused, match=r"^the cluster does not let this server review$"):
        await decisions.get_or_fetch("k", reviews)
