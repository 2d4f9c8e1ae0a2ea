"""A merged watch whose connection breaks before its client has got the last events, and the watch that goes on."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import cast

import pytest

from apiserver.meta.resource import Object
from tenant_apiserver.proxy.merged.caller_requests import CallerRequests
from tenant_apiserver.proxy.merged.part import CollectionPart
from tenant_apiserver.proxy.merged.positions import Positions, client_of
from tenant_apiserver.proxy.merged.sent_objects import SentObjects
from tenant_apiserver.proxy.merged.stream_slots import StreamSlots, WatchSlots
from tenant_apiserver.proxy.merged.watch_of_parts import Start, WatchOfParts, WatchQuery
from tests.virtual_time import virtual

CLIENT = client_of("eve", "configmaps")
BOTH, ONE = frozenset({"one", "two"}), frozenset({"one"})


def event(type_: str, name: str, namespace: str, version: int) -> Object:
    metadata = {"name": name, "namespace": namespace, "uid": f"u-{name}", "resourceVersion": str(version)}
    return {"type": type_, "object": {"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata}}


class _Cluster:
    """Each watch gets the events of its namespace, and those that follow."""

    def __init__(self) -> None:
        self.events_of = {"/one": [event("ADDED", "a", "one", 5)], "/two": [event("ADDED", "b", "two", 6)]}

    @asynccontextmanager
    async def events(self, target: str) -> AsyncIterator[AsyncIterator[bytes]]:
        async def lines() -> AsyncIterator[bytes]:
            sent = 0
            while True:
                found = self.events_of[target.partition("?")[0]]
                for each in found[sent:]:
                    yield json.dumps(each).encode()
                sent = len(found)
                await asyncio.sleep(0.1)

        yield lines()


class _World:
    def __init__(self) -> None:
        self.cluster, self.positions = _Cluster(), Positions()
        self.visible = BOTH

    def watch(self, version: str) -> WatchOfParts:
        return WatchOfParts(
            cast(CallerRequests, self.cluster),
            WatchQuery({}, {"resourceVersion": version}, bookmarks=True, wants_initial=False),
            names=lambda: self.visible,
            max_parts=10,
            part=lambda name: CollectionPart(name, f"/{name}"),
            slots=WatchSlots(StreamSlots(), "eve"),
            remember=lambda sent, position: self.positions.remember(CLIENT, sent, position),
        )

    async def start(self) -> tuple[WatchOfParts, str]:
        """A watch whose client has both objects, and the version that it has."""
        watch = self.watch("4")
        assert await watch.begin(Start(BOTH, BOTH, 4, SentObjects()))
        await asyncio.sleep(1)
        events = [json.loads(line) for line in (await watch.frames()).splitlines()]
        assert {each["object"]["metadata"]["name"] for each in events} == {"a", "b"}
        return watch, str(events[-1]["object"]["metadata"]["resourceVersion"])

    async def deleted_after(self, version: str) -> set[str]:
        """The objects of which a watch that goes on from a version says that they are deleted."""
        found = self.positions.find(CLIENT, version)
        assert found is not None
        watch = self.watch(version)
        start = Start(self.visible, BOTH, min(found.version, int(version)), found.sent_objects, found.form)
        assert await watch.begin(start)
        deleted = set[str]()
        with suppress(TimeoutError):
            async with asyncio.timeout(30):
                while lines := await watch.frames():
                    events = map(json.loads, lines.splitlines())
                    deleted.update(each["object"]["metadata"]["name"] for each in events if each["type"] == "DELETED")
        await watch.close()
        return deleted


@virtual
async def test_the_events_of_a_revocation_are_sent_again() -> None:
    world = _World()
    watch, version = await world.start()
    world.visible = ONE
    watch.changed()
    assert b"DELETED" in await watch.frames()
    # the connection breaks while they are written
    await watch.close()
    assert await world.deleted_after(version) == {"b"}


@virtual
async def test_an_object_that_was_deleted_before_a_revocation_is_forgotten_by_the_client() -> None:
    world = _World()
    watch, version = await world.start()
    world.cluster.events_of["/two"].append(event("DELETED", "b", "two", 7))
    await asyncio.sleep(1)
    assert b"DELETED" in await watch.frames()
    await watch.close()
    world.visible = ONE
    assert await world.deleted_after(version) == {"b"}


@virtual
async def test_a_client_that_has_got_the_deletion_is_not_told_again() -> None:
    world = _World()
    watch, _ = await world.start()
    world.cluster.events_of["/two"].append(event("DELETED", "b", "two", 7))
    await asyncio.sleep(1)
    assert b"DELETED" in await watch.frames()
    await watch.close()
    world.visible = ONE
    assert await world.deleted_after("7") == set()


@pytest.mark.parametrize(("removed", "known"), [(10, True), (1000, True), (1001, False)])
def test_the_last_thousand_removals_are_taken_back(removed: int, known: bool) -> None:
    sent = SentObjects.of({"a": {f"a/{number}": "u" for number in range(1500)}})
    for number in range(200):
        sent.discard("a", f"a/{number}")
    before = sent.removals
    for number in range(200, 200 + removed):
        sent.discard("a", f"a/{number}")
    assert sent.size == 1300 - removed + min(200 + removed, 1000)
    assert sent.restore(before) is known
    assert len(sent.parts["a"]) == (1300 if known else 1300 - removed)
