"""Stalls of the event loop are seen, told by their length, and nothing is told where there were none."""

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


async def stall(registry: CollectorRegistry, *seconds: float) -> None:
    """Watched, hold the loop up for so long each time, with calm in between."""
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


def test_a_calm_loop_has_no_stalls() -> None:
    registry = CollectorRegistry()
    run_virtual(partial(stall, registry))
    assert value(registry, f"{STALL}_count") == 0
    assert value(registry, LONGEST) == 0


def test_stalls_are_counted_by_their_length() -> None:
    registry = CollectorRegistry()
    run_virtual(partial(stall, registry, 0.3, 0.08, 0.2))
    assert value(registry, f"{STALL}_count") == 3
    assert [value(registry, f"{STALL}_bucket", le=le) for le in ("0.05", "0.1", "0.25", "0.5")] == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "seconds",
    [
        pytest.param((0.3, 0.08), id="the first"),
        pytest.param((0.08, 0.3), id="the last"),
    ],
)
def test_the_longest_stall_stays_known(seconds: tuple[float, ...]) -> None:
    registry = CollectorRegistry()
    run_virtual(partial(stall, registry, *seconds))
    assert value(registry, LONGEST) == pytest.approx(0.3, abs=0.01)


def test_what_is_shorter_than_a_timer_can_tell_is_none() -> None:
    registry = CollectorRegistry()
    run_virtual(partial(stall, registry, 0.009, 0.005))
    assert value(registry, f"{STALL}_count") == 0
