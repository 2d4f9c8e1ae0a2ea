"""A merged watch whose parts fail, and one whose process shuts down."""

from __future__ import annotations

import asyncio
import gc
import itertools
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import cast

import pytest

from apiserver.meta.errors import ServiceUnavailable, TooManyRequests
from apiserver.meta.resource import Object
from tenant_apiserver.proxy.merged.caller_requests import CallerRequests
from tenant_apiserver.proxy.merged.packed_list import PackedList, pack
from tenant_apiserver.proxy.merged.part import CollectionPart
from tenant_apiserver.proxy.merged.sent_objects import SentObjects
from tenant_apiserver.proxy.merged.stream_slots import StreamSlots, WatchSlots
from tenant_apiserver.proxy.merged.watch_of_parts import NOTHING, Start, WatchOfParts, WatchQuery
from tests.virtual_time import virtual

ADDED = {"type": "ADDED", "object": {"kind": "ConfigMap", "metadata": {"name": "a", "resourceVersion": "5"}}}
ERROR = {"type": "ERROR", "object": {"kind": "Status", "code": 500, "message": "broken"}}


class _Cluster:
    """Each watch has these events, and then none."""

    def __init__(self, *events: Object) -> None:
        self._events = events

    @asynccontextmanager
    async def events(self, target: str) -> AsyncIterator[AsyncIterator[bytes]]:
        async def lines() -> AsyncIterator[bytes]:
            for each in self._events:
                yield json.dumps(each).encode()
            await asyncio.sleep(3600)

        yield lines()


async def _begun(
    cluster: _Cluster,
    names: Callable[[], frozenset[str] | None] = lambda: frozenset({"one", "two"}),
    slots: WatchSlots | None = None,
) -> WatchOfParts:
    watch = WatchOfParts(
        cast(CallerRequests, cluster),
        WatchQuery({}, {"resourceVersion": "4"}, bookmarks=False, wants_initial=False),
        names=names,
        max_parts=10,
        part=lambda name: CollectionPart(name, f"/{name}"),
        slots=slots or WatchSlots(StreamSlots(), "eve"),
        remember=lambda version, position: None,
    )
    parts = frozenset({"one", "two"})
    assert await watch.begin(Start(parts, parts, 4, SentObjects()))
    await asyncio.sleep(1)
    return watch


@virtual
async def test_a_watch_ends_after_one_error() -> None:
    """Both parts fail."""
    watch = await _begun(_Cluster(ERROR))
    frames = []
    while lines := await watch.frames():
        frames += [json.loads(line)["type"] for line in lines.splitlines()]
    assert frames == ["ERROR"]
    await watch.close()


@virtual
async def test_a_watch_that_is_ended_sends_nothing_more() -> None:
    watch = await _begun(_Cluster(ADDED))
    assert len((await watch.frames()).splitlines()) == 2
    waiting = asyncio.create_task(watch.frames())
    await asyncio.sleep(1)
    watch.end()
    assert await waiting == b""
    await watch.close()


@virtual
async def test_a_watch_whose_user_may_have_everything_ends_with_410() -> None:
    """Its client would go on at the cluster, which sends no objects that exist already."""
    visible: list[frozenset[str] | None] = [frozenset({"one", "two"})]
    watch = await _begun(_Cluster(ADDED), lambda: visible[0])
    assert len((await watch.frames()).splitlines()) == 2
    visible[0] = None
    watch.changed()
    [line] = (await watch.frames()).splitlines()
    event = json.loads(line)
    assert (event["type"], event["object"]["code"], event["object"]["reason"]) == ("ERROR", 410, "Expired")
    assert await watch.frames() == b""
    await watch.close()


@virtual
async def test_a_watch_whose_user_has_too_many_parts_ends() -> None:
    """The next one is refused."""
    visible = [frozenset({"one", "two"})]
    watch = await _begun(_Cluster(), lambda: visible[0])
    visible[0] = frozenset(map(str, range(11)))
    watch.changed()
    assert await watch.frames() == b""
    await watch.close()


@virtual
async def test_the_streams_of_a_user_are_limited() -> None:
    """Each is a connection to the cluster: the watches of one user with many namespaces could fill the memory."""
    all_of_them = StreamSlots(total=12, per_user=4, always=0)
    first = await _begun(_Cluster(), slots=WatchSlots(all_of_them, "eve"))
    second = await _begun(_Cluster(), slots=WatchSlots(all_of_them, "eve"))
    with pytest.raises(TooManyRequests, match="the watches of this user have 4 namespaces together, of at most 4"):
        await _begun(_Cluster(), slots=WatchSlots(all_of_them, "eve"))
    others = [await _begun(_Cluster(), slots=WatchSlots(all_of_them, user)) for user in ("alice", "carol")]
    with pytest.raises(TooManyRequests, match="Too many merged watches"):
        await _begun(_Cluster(), slots=WatchSlots(all_of_them, "bob"))
    await others.pop().close()
    await (await _begun(_Cluster(), slots=WatchSlots(all_of_them, "bob"))).close()
    for each in (first, second, *others):
        await each.close()
    assert [await _begun(_Cluster(), slots=WatchSlots(all_of_them, user)) for user in ("eve", "alice", "bob")]


@virtual
async def test_service_accounts_of_one_tenant_do_not_keep_others_from_watching() -> None:
    """A tenant can make any number of them."""
    all_of_them = StreamSlots(total=300, per_user=100, always=2)
    accounts = (f"system:serviceaccount:tenant-eve-{number % 3}:{number}" for number in range(51))
    for account in itertools.islice(accounts, 50):
        assert await _begun(_Cluster(), slots=WatchSlots(all_of_them, account))
    with pytest.raises(TooManyRequests, match="this user have 100 namespaces"):
        await _begun(_Cluster(), slots=WatchSlots(all_of_them, next(accounts)))
    assert [await _begun(_Cluster(), slots=WatchSlots(all_of_them, "alice")) for _ in range(30)]


class _Closing(_Cluster):
    """Its connections take a moment to close."""

    @asynccontextmanager
    async def events(self, target: str) -> AsyncIterator[AsyncIterator[bytes]]:
        async with super().events(target) as lines:
            try:
                yield lines
            finally:
                await asyncio.sleep(0.1)


@virtual
async def test_a_client_that_disconnects_while_its_watch_ends_gives_the_streams_back() -> None:
    """The server cancels what it does for the client."""
    slots = StreamSlots(total=2, per_user=2)
    watch = await _begun(_Closing(), slots=WatchSlots(slots, "eve"))
    closing = asyncio.create_task(watch.close())
    await asyncio.sleep(0)
    closing.cancel()
    await asyncio.gather(closing, return_exceptions=True)
    assert closing.cancelled()
    await (await _begun(_Cluster(), slots=WatchSlots(slots, "eve"))).close()


class _Listing(_Cluster):
    """Its lists wait for `go_on`, and `fails` then."""

    def __init__(self, *, fails: bool) -> None:
        super().__init__()
        self.go_on = asyncio.Event()
        self._fails = fails

    @asynccontextmanager
    async def held(self, target: str) -> AsyncIterator[PackedList]:
        await self.go_on.wait()
        if self._fails:
            raise ServiceUnavailable("it does not answer")
        yield pack({"kind": "ConfigMapList", "metadata": {"resourceVersion": "5"}, "items": []})


@pytest.mark.parametrize("fails", [False, True])
def test_a_client_that_disconnects_while_its_watch_begins_leaves_no_error_in_the_log(
    fails: bool, caplog: pytest.LogCaptureFixture
) -> None:
    @virtual
    async def disconnect() -> None:
        cluster = _Listing(fails=fails)
        watch = WatchOfParts(
            cast(CallerRequests, cluster),
            WatchQuery({}, {}, bookmarks=True, wants_initial=True),
            names=lambda: frozenset({"one", "two"}),
            max_parts=10,
            part=lambda name: CollectionPart(name, f"/{name}"),
            slots=WatchSlots(StreamSlots(), "eve"),
            remember=lambda version, position: None,
        )
        beginning = asyncio.create_task(watch.begin(NOTHING))
        await asyncio.sleep(1)
        cluster.go_on.set()
        beginning.cancel()
        await asyncio.gather(beginning, return_exceptions=True)
        assert beginning.cancelled()
        await watch.close()

    disconnect()
    gc.collect()
    assert caplog.records == []


@virtual
async def test_a_watch_ends_that_is_granted_more_than_its_user_may_have() -> None:
    """The next one is told why. A revocation makes room."""
    slots, visible = StreamSlots(per_user=3), [frozenset({"one", "two"})]
    watch = await _begun(_Cluster(), lambda: visible[0], WatchSlots(slots, "eve"))
    visible[0] = frozenset({"one"})
    watch.changed()
    await asyncio.wait([waiting := asyncio.create_task(watch.frames())], timeout=1)
    other = await _begun(_Cluster(), slots=WatchSlots(slots, "eve"))
    visible[0] = frozenset({"one", "three"})
    watch.changed()
    assert await waiting == b""
    await watch.close()
    await other.close()


@virtual
async def test_the_objects_that_all_watches_of_a_user_know_are_limited() -> None:
    """They would fill the memory: a user can have hundreds of watches of thousands of objects. After a revocation, the
    clients of those beyond list again."""
    slots, visible = StreamSlots(sent_objects_per_user=700), [frozenset({"one", "two"})]
    outcomes = []
    for _ in range(2):
        watch = await _begun(_Cluster(ADDED), lambda: visible[0], WatchSlots(slots, "eve"))
        assert len((await watch.frames()).splitlines()) == 2
        outcomes.append(watch)
    visible[0] = frozenset({"one"})
    events = []
    for watch in outcomes:
        watch.changed()
        events.append(json.loads((await watch.frames()).splitlines()[0]))
    assert [each["type"] for each in events] == ["DELETED", "ERROR"]
    assert events[1]["object"]["code"] == 410
    for watch in outcomes:
        await watch.close()
    again = await _begun(_Cluster(ADDED), slots=WatchSlots(slots, "eve"))
    assert len((await again.frames()).splitlines()) == 2
    await again.close()
