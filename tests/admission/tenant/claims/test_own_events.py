"""The event of a write that comes with a new list of the cluster instead of alone."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest

from admission.complete_caches import CompleteCaches
from admission.tenant.claims.own_events import OwnEvents
from apiserver.encoding.encoded_object import encode
from apiserver.storage.watch_cache import WatchCache
from registry.tenant.strategy import TenantStrategy
from tests.tenant_objects import tenant

VERSION = 5


@dataclass
class Listing:
    """A cache that is listed anew, and one write that waits for its event."""

    complete: asyncio.Event = field(default_factory=asyncio.Event)
    judged_with: list[bool] = field(default_factory=list)

    def __post_init__(self) -> None:
        resource = TenantStrategy().resource
        self.cache = WatchCache(resource)
        self.events = OwnEvents(cache=self.cache, caches=CompleteCaches([self.complete]))
        alice = tenant("alice")
        alice["metadata"]["resourceVersion"] = str(VERSION)
        self._written = encode(resource, alice)
        self._observed = self.events.observe(self._written.key, self._judge)

    def _judge(self) -> str:
        self.judged_with.append(self.complete.is_set())
        return "admitted"

    def receive_event(self) -> None:
        self.cache.apply("ADDED", self._written)

    async def result(self, seconds: float) -> str | None:
        return await self.events.result(self._observed, VERSION, seconds=seconds)


async def test_a_write_is_judged_by_the_whole_list_that_its_event_comes_with() -> None:
    listing = Listing()
    waiting = asyncio.create_task(listing.result(seconds=5))
    await asyncio.sleep(0)
    listing.receive_event()
    await asyncio.sleep(0.01)
    assert (waiting.done(), listing.judged_with) == (False, [])

    listing.complete.set()
    assert await waiting == "admitted"
    assert listing.judged_with == [True]


@pytest.mark.parametrize("has_event", [True, False])
async def test_there_is_no_result_if_the_list_does_not_end_in_time(has_event: bool) -> None:
    listing = Listing()
    if has_event:
        listing.receive_event()

    assert await listing.result(seconds=0.01) is None
    assert listing.judged_with == []
