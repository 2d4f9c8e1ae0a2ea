"""The queue holds a key once, hands it to one worker at a time, and delays it after failures."""

from __future__ import annotations

import asyncio

import pytest
import uvloop
from prometheus_client import CollectorRegistry

from controller.runtime.workqueue import RateLimiter, WorkQueue
from controller.runtime.workqueue_metrics import WorkQueueMetrics
from tests.virtual_time import run_virtual


def limiter() -> RateLimiter[str]:
    return RateLimiter(jitter=lambda: 0.0)


async def test_a_key_is_queued_once() -> None:
    queue = WorkQueue[str]()
    queue.add("a")
    queue.add("a")
    queue.add("b")

    assert (len(queue), await queue.get(), await queue.get(), len(queue)) == (2, "a", "b", 0)


async def test_a_key_that_is_added_while_it_is_processed_is_queued_once_when_it_is_done() -> None:
    queue = WorkQueue[str]()
    queue.add("a")
    key = await queue.get()
    queue.add("a")
    queue.add("a")
    assert len(queue) == 0

    queue.done(key)

    assert len(queue) == 1
    queue.done(await queue.get())
    assert len(queue) == 0


def test_a_key_with_several_delays_is_added_at_the_earliest_time() -> None:
    async def main() -> list[tuple[str, float]]:
        loop, queue = asyncio.get_running_loop(), WorkQueue[str]()
        queue.add_after("a", 5)
        queue.add_after("a", 3)
        queue.add_after("a", 9)
        queue.add_after("b", 4)
        keys = []
        for _ in range(2):
            key = await queue.get()
            keys.append((key, loop.time()))
            queue.done(key)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(60):
                await queue.get()
        return keys

    assert run_virtual(main) == [("a", 3), ("b", 4)]


def test_each_failure_doubles_the_delay_of_a_key_until_it_is_forgotten() -> None:
    async def main() -> list[float]:
        loop, queue, waits = asyncio.get_running_loop(), WorkQueue[str](limiter=limiter()), []
        for failures in range(5):
            if failures == 4:
                queue.forget("a")
            started = loop.time()
            queue.add_rate_limited("a")
            queue.done(await queue.get())
            waits.append(round(loop.time() - started, 6))
        return waits

    assert run_virtual(main) == [0.005, 0.01, 0.02, 0.04, 0.005]


def test_the_delay_is_bounded_however_often_a_key_fails() -> None:
    each = limiter()

    waits = [each.next_delay("a") for _ in range(5000)]

    assert max(waits) == 1000.0
    assert each.failures("a") == 5000
    assert each.next_delay("b") == 0.005


def test_jitter_adds_up_to_a_tenth() -> None:
    assert RateLimiter[str](jitter=lambda: 1.0).next_delay("a") == pytest.approx(0.0055)


async def test_a_get_that_is_cancelled_loses_no_key() -> None:
    queue = WorkQueue[str]()
    waiting = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait([waiting])

    queue.add("a")

    assert await queue.get() == "a"


def test_metrics_have_the_names_and_values_of_client_go() -> None:
    async def main() -> CollectorRegistry:
        registry = CollectorRegistry()
        families = WorkQueueMetrics(registry)
        queue = WorkQueue[str](limiter=limiter(), metrics=families.for_queue("tenant"))
        families.track("tenant", queue)
        queue.add("a")
        queue.add("b")
        await asyncio.sleep(2)
        key = await queue.get()
        await asyncio.sleep(3)
        queue.add_rate_limited("a")
        assert registry.get_sample_value("workqueue_unfinished_work_seconds", {"name": "tenant"}) == 3
        assert registry.get_sample_value("workqueue_longest_running_processor_seconds", {"name": "tenant"}) == 3
        queue.done(key)
        return registry

    registry = run_virtual(main)
    names = (
        "workqueue_depth",
        "workqueue_adds_total",
        "workqueue_retries_total",
        "workqueue_queue_duration_seconds_sum",
        "workqueue_work_duration_seconds_sum",
    )

    assert [registry.get_sample_value(name, {"name": "tenant"}) for name in names] == [1, 2, 1, 2, 3]


def test_a_key_that_is_due_at_once_can_be_added_with_another_delay() -> None:
    """The handle that uvloop returns for a call that is due at once has no due time."""

    async def main() -> list[str]:
        queue = WorkQueue[str]()
        queue.add_after("a", 0.0001)
        queue.add_after("a", 60)
        return [await queue.get()]

    assert uvloop.run(main()) == ["a"]
