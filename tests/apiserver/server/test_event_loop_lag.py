"""Stalls of the event loop are counted by length; an idle event loop has none."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial

import pytest
from prometheus_client import CollectorRegistry

from apiserver.server.event_loop_lag import EventLoopLag
from tests.virtual_time import VirtualLoop, run_virtual

STALL = "apiserver_event_loop_stall_seconds"
LONGEST = "apiserver_event_loop_longest_stall_seconds"


async def run_with_stalls(registry: CollectorRegistry, *seconds: float) -> None:
    """Block the measured event loop for each number of seconds, with idle seconds in between."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    watching = asyncio.create_task(EventLoopLag(registry, clock=loop.time).watch())
    for each in seconds:
        await asyncio.sleep(1)
        loop.block(each)
    await asyncio.sleep(1)
    watching.cancel()
    with suppress(asyncio.CancelledError):
        await watching


def value(registry: CollectorRegistry, name: str, **labels: str) -> float:
    found = registry.get_sample_value(name, labels)
    assert found is not None
    return found


def test_an_idle_event_loop_has_no_stalls() -> None:
    registry = CollectorRegistry()
    run_virtual(partial(run_with_stalls, registry))
    assert value(registry, f"{STALL}_count") == 0
    assert value(registry, LONGEST) == 0


def test_stalls_are_counted_by_their_length() -> None:
    registry = CollectorRegistry()
    run_virtual(partial(run_with_stalls, registry, 0.3, 0.08, 0.2))
    assert value(registry, f"{STALL}_count") == 3
    assert [value(registry, f"{STALL}_bucket", le=le) for le in ("0.05", "0.1", "0.25", "0.5")] == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "seconds",
    [
        pytest.param((0.3, 0.08), id="the first"),
        pytest.param((0.08, 0.3), id="the last"),
    ],
)
def test_the_longest_stall_is_kept(seconds: tuple[float, ...]) -> None:
    registry = CollectorRegistry()
    run_virtual(partial(run_with_stalls, registry, *seconds))
    assert value(registry, LONGEST) == pytest.approx(0.3, abs=0.01)


def test_stalls_shorter_than_the_timer_period_are_not_counted() -> None:
    registry = CollectorRegistry()
    run_virtual(partial(run_with_stalls, registry, 0.009, 0.005))
    assert value(registry, f"{STALL}_count") == 0
