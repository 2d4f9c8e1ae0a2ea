"""Watches: their start, their events and their end (WIRE-F5 to WIRE-F20)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
import uvloop

from apiserver.meta import errors
from apiserver.meta.resource import Key, Resource
from apiserver.meta.selectors import parse_field_selector, parse_label_selector
from apiserver.request.options import WatchOptions
from apiserver.storage import progress, watcher
from apiserver.storage.event_history import VisibilityEvent
from apiserver.storage.watch_cache import CachedObject, CacheEvent, CacheWatcher, HistoryLimits, WatchCache, encode
from apiserver.storage.watcher import Bookmark, Failure, WatchItem

THINGS = Resource(group="", version="v1", kind="Thing", plural="things", singular="thing", namespaced=True)


def thing(name: str, rv: int, *, namespace: str = "a", uid: str = "", **labels: str) -> CachedObject:
    metadata = {"name": name, "namespace": namespace, "uid": uid or name, "resourceVersion": str(rv), "labels": labels}
    return encode(THINGS, {"metadata": metadata})


def make_cache(*objects: CachedObject, rv: int = 10, **settings: Any) -> WatchCache:
    cache = WatchCache(THINGS, **settings)
    cache.replace(objects, rv)
    return cache


def lines_of(items: Sequence[WatchItem]) -> list[str]:
    lines = []
    for item in items:
        if isinstance(item, CacheEvent):
            lines.append(f"{item.type} {item.object.key.name}@{item.rv}")
        elif isinstance(item, Bookmark):
            lines.append(f"BOOKMARK {item.rv}{' end' if item.annotations else ''}")
        else:
            lines.append(f"ERROR {item.error.code}")
    return lines


async def remaining_lines(changes: CacheWatcher) -> list[str]:
    """End the watch and return its pending events."""
    changes.end()
    return [line for batch in [lines_of(batch) async for batch in changes] for line in batch]


async def test_a_watch_from_a_list_misses_and_repeats_nothing() -> None:
    cache = make_cache(thing("x", 5))
    cache.apply("MODIFIED", thing("x", 11))
    changes = await cache.watch("", WatchOptions(resource_version=10))
    cache.apply("ADDED", thing("y", 12))
    cache.apply("DELETED", thing("x", 13))
    assert await remaining_lines(changes) == ["MODIFIED x@11", "ADDED y@12", "DELETED x@13"]


async def test_a_watch_can_resume_from_every_event() -> None:
    cache = make_cache(thing("x", 5))
    for rv in range(11, 20):
        cache.apply("MODIFIED", thing("x", rv))
    for rv in range(10, 20):
        changes = await cache.watch("", WatchOptions(resource_version=rv))
        assert await remaining_lines(changes) == [f"MODIFIED x@{later}" for later in range(rv + 1, 20)]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        pytest.param(WatchOptions(), ["ADDED x@5", "ADDED y@6"], id="no version starts with the current objects"),
        pytest.param(WatchOptions(resource_version=0), ["ADDED x@5", "ADDED y@6"], id="so does version 0"),
        pytest.param(
            WatchOptions(resource_version=0, send_initial_events=False), [], id="version 0 without initial events"
        ),
        pytest.param(
            WatchOptions(send_initial_events=True, allow_bookmarks=True),
            ["ADDED x@5", "ADDED y@6", "BOOKMARK 10 end"],
            id="a streaming list ends with a bookmark",
        ),
        pytest.param(
            WatchOptions(send_initial_events=True, resource_version=7),
            ["ADDED x@5", "ADDED y@6"],
            id="a streaming list without bookmarks",
        ),
        pytest.param(
            WatchOptions(allow_bookmarks=True),
            ["ADDED x@5", "ADDED y@6", "BOOKMARK 10 end"],
            id="initial events without sendInitialEvents end with a bookmark, too",
        ),
        pytest.param(
            WatchOptions(
                send_initial_events=True,
                allow_bookmarks=True,
                label_selector=parse_label_selector("none"),
                resource_version=9,
            ),
            ["BOOKMARK 10 end"],
            id="an empty streaming list ends with a bookmark, too",
        ),
    ],
)
async def test_a_watch_may_start_with_the_current_objects(options: WatchOptions, expected: list[str]) -> None:
    cache = make_cache(thing("x", 5), thing("y", 6))
    changes = await cache.watch("", options)
    assert await remaining_lines(changes) == expected


async def test_changes_during_the_initial_events_follow_them() -> None:
    cache = make_cache(*(thing(f"x{number:03}", 5) for number in range(600)))
    changes = await cache.watch("", WatchOptions(send_initial_events=True, allow_bookmarks=True))
    first = await anext(changes)
    cache.apply("MODIFIED", thing("x000", 11))
    rest = await remaining_lines(changes)
    assert len(lines_of(first) + rest) == 602
    assert rest[-2:] == ["BOOKMARK 10 end", "MODIFIED x000@11"]


async def test_a_start_older_than_the_history_is_expired() -> None:
    cache = make_cache(thing("x", 5), history=HistoryLimits(size=1))
    cache.apply("MODIFIED", thing("x", 11))
    with pytest.raises(errors.Expired) as expired:
        await cache.watch("", WatchOptions(resource_version=10))
    assert (expired.value.code, expired.value.message) == (410, "too old resource version: 10 (11)")
    assert cache.watchers == 0


async def test_a_watch_from_a_future_version_receives_only_later_events() -> None:
    cache = make_cache(bookmark_interval=0.0)
    changes = await cache.watch("", WatchOptions(resource_version=12, allow_bookmarks=True))
    assert lines_of(await anext(changes)) == []
    for rv in (11, 12, 13):
        cache.apply("MODIFIED", thing("x", rv))
    assert await remaining_lines(changes) == ["MODIFIED x@13"]


async def test_a_streaming_list_at_a_future_version_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_CATCH_UP_SECONDS", 0.01)
    with pytest.raises(errors.TooLargeResourceVersion):
        await make_cache().watch("", WatchOptions(resource_version=11, send_initial_events=True))


async def test_objects_that_start_or_stop_matching_are_added_or_deleted() -> None:
    cache = make_cache(thing("x", 5, l="a"))
    watches = {
        name: await cache.watch("", WatchOptions(resource_version=10, label_selector=parse_label_selector(text)))
        for name, text in {"a": "l=a", "b": "l=b", "either": "l in (a,b)", "none": "!l"}.items()
    }
    cache.apply("MODIFIED", thing("x", 11, l="b"))
    cache.apply("MODIFIED", thing("x", 12, l="b"))
    cache.apply("MODIFIED", thing("x", 13, l="a"))
    cache.apply("DELETED", thing("x", 14, l="a"))
    assert {name: await remaining_lines(changes) for name, changes in watches.items()} == {
        "a": ["DELETED x@11", "ADDED x@13", "DELETED x@14"],
        "b": ["ADDED x@11", "MODIFIED x@12", "DELETED x@13"],
        "either": ["MODIFIED x@11", "MODIFIED x@12", "MODIFIED x@13", "DELETED x@14"],
        "none": [],
    }


async def test_the_event_of_an_object_that_stops_matching_has_its_last_matching_content() -> None:
    cache = make_cache(thing("x", 5, l="a"))
    options = WatchOptions(resource_version=10, label_selector=parse_label_selector("l=a"))
    changes = await cache.watch("", options)
    cache.apply("MODIFIED", thing("x", 11, l="b"))
    (event,) = await anext(changes)
    assert isinstance(event, CacheEvent)
    metadata = event.object.object()["metadata"]
    assert (metadata["labels"], metadata["resourceVersion"]) == ({"l": "a"}, "11")


@pytest.mark.parametrize(
    ("namespace", "fields", "expected"),
    [
        pytest.param("", "", ["ADDED x@11", "ADDED y@12", "ADDED x@13"], id="everything"),
        pytest.param("a", "", ["ADDED x@11", "ADDED y@12"], id="a namespace"),
        pytest.param("a", "metadata.name=x", ["ADDED x@11"], id="an object that does not exist yet"),
        pytest.param("", "metadata.name=x", ["ADDED x@11", "ADDED x@13"], id="a name in all namespaces"),
        pytest.param("", "metadata.namespace=b", ["ADDED x@13"], id="a namespace as a field"),
        pytest.param("a", "metadata.namespace=b", [], id="a contradiction"),
        pytest.param("a", "metadata.name!=x", ["ADDED y@12"], id="any name but one"),
    ],
)
@pytest.mark.parametrize("missed", [pytest.param(True, id="missed"), pytest.param(False, id="live")])
async def test_a_watch_receives_the_events_that_it_selects(
    namespace: str, fields: str, expected: list[str], missed: bool
) -> None:
    cache = make_cache()
    options = WatchOptions(resource_version=10, field_selector=parse_field_selector(fields))
    changes = None if missed else await cache.watch(namespace, options)
    cache.apply("ADDED", thing("x", 11))
    cache.apply("ADDED", thing("y", 12))
    cache.apply("ADDED", thing("x", 13, namespace="b"))
    assert await remaining_lines(changes or await cache.watch(namespace, options)) == expected


async def test_events_are_not_offered_to_unrelated_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    cache = make_cache()
    offered: list[str] = []
    add = CacheWatcher.add

    def record(changes: CacheWatcher, event: CacheEvent) -> None:
        offered.append(changes.selection.namespace + "/" + changes.selection.name)
        add(changes, event)

    monkeypatch.setattr(CacheWatcher, "add", record)
    for namespace, fields in (("a", ""), ("b", ""), ("a", "metadata.name=x"), ("a", "metadata.name=y")):
        await cache.watch(namespace, WatchOptions(resource_version=10, field_selector=parse_field_selector(fields)))
    cache.apply("ADDED", thing("x", 11))
    assert offered == ["a/", "a/x"]


async def test_all_watches_share_an_event() -> None:
    cache = make_cache()
    watches = [await cache.watch("", WatchOptions(resource_version=10)) for _ in range(3)]
    cache.apply("ADDED", thing("x", 11))
    assert len({id(event) for changes in watches for event in await anext(changes)}) == 1


async def test_an_idle_watch_receives_bookmarks() -> None:
    cache = make_cache(bookmark_interval=0.01)
    changes = await cache.watch("", WatchOptions(resource_version=10, allow_bookmarks=True))
    cache.advance(15)
    assert lines_of(await anext(changes)) == ["BOOKMARK 15"]
    cache.apply("ADDED", thing("x", 16))
    assert lines_of(await anext(changes)) == ["ADDED x@16"]
    assert lines_of(await anext(changes)) == ["BOOKMARK 16"]


async def test_a_bookmark_is_sent_shortly_before_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watcher, "_LAST_BOOKMARK_SECONDS", 0.98)
    cache = make_cache(bookmark_interval=60)
    changes = await cache.watch("", WatchOptions(resource_version=10, allow_bookmarks=True, timeout_seconds=1))
    assert [lines_of(batch) async for batch in changes] == [["BOOKMARK 10"], []]


async def test_bookmarks_are_sent_only_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watcher, "_IDLE_SECONDS", 0.01)
    changes = await make_cache(bookmark_interval=0.0).watch("", WatchOptions(resource_version=10))
    assert await anext(changes) == []


async def test_a_watch_ends_at_its_deadline() -> None:
    cache = make_cache()
    changes = await cache.watch("", WatchOptions(resource_version=10, timeout_seconds=1))
    changes.deadline -= 0.99
    assert [batch async for batch in changes] == [[]]
    assert cache.watchers == 0


async def test_the_default_deadlines_are_spread_over_half_an_hour() -> None:
    cache = make_cache()
    now = (await cache.watch("", WatchOptions())).deadline
    deadlines = [(await cache.watch("", WatchOptions())).deadline - now for _ in range(50)]
    assert max(deadlines) - min(deadlines) > 60
    assert all(-1800 < deadline < 1801 for deadline in deadlines)


async def test_closing_the_cache_ends_all_watches_cleanly() -> None:
    cache = make_cache()
    watches = [await cache.watch("", WatchOptions(resource_version=10)) for _ in range(3)]
    cache.apply("ADDED", thing("x", 11))
    cache.close()
    assert [[lines_of(batch) async for batch in changes] for changes in watches] == [[["ADDED x@11"]]] * 3
    assert cache.watchers == 0


async def test_an_older_list_ends_all_watches_with_410() -> None:
    cache = make_cache(thing("x", 5))
    changes = await cache.watch("", WatchOptions(resource_version=10))
    cache.replace([thing("x", 3)], 4)
    (failure,) = await anext(changes)
    assert isinstance(failure, Failure)
    assert (failure.error.code, failure.error.reason) == (410, "Expired")
    assert [batch async for batch in changes] == []
    assert (cache.rv, cache.peek(Key("a", "x")).rv) == (4, 3)  # type: ignore[union-attr]
    with pytest.raises(errors.Expired):
        await cache.watch("", WatchOptions(resource_version=3))


async def test_a_watch_that_falls_behind_the_history_is_terminated() -> None:
    cache = make_cache(history=HistoryLimits(events=5, seconds=0), clock=iter(range(1000)).__next__)
    slow = await cache.watch("", WatchOptions(resource_version=10))
    quick = await cache.watch("", WatchOptions(resource_version=10))
    terminated: list[str] = []
    slow.on_terminate(lambda: terminated.append("slow"))
    quick.on_terminate(lambda: terminated.append("quick"))
    received: list[str] = []
    for rv in range(11, 31):
        cache.apply("MODIFIED", thing("x", rv))
        received += lines_of(await anext(quick))
    assert terminated == ["slow"]
    assert len(received) == 20
    assert [batch async for batch in slow] == []
    assert cache.watchers == 1


async def test_a_watch_that_falls_behind_is_terminated_although_a_bookmark_is_next() -> None:
    """A bookmark has no version that the history could have dropped."""
    cache = make_cache(history=HistoryLimits(events=5, seconds=0), clock=iter(range(1000)).__next__)
    slow = await cache.watch("", WatchOptions(resource_version=10, allow_bookmarks=True))
    slow.add_visibility_events([VisibilityEvent("ADDED", thing(f"x{number}", 5), 10) for number in range(256)])
    assert len(await anext(slow)) == 256
    for rv in range(11, 31):
        cache.apply("MODIFIED", thing("x", rv))
    assert [lines_of(batch) async for batch in slow] == []
    assert cache.watchers == 0


@pytest.mark.parametrize("version", [None, 10])
async def test_a_batch_has_one_large_object(version: int | None) -> None:
    """While a client does not read, its watch must not hold more objects than that: the history does not count them."""
    objects = [thing(f"{number}", 11 + number, text="x" * 40_000) for number in range(3)]
    cache = make_cache(*([] if version else objects))
    changes = await cache.watch("", WatchOptions(resource_version=version))
    for each in objects if version else ():
        cache.apply("ADDED", each)
    changes.end()
    assert [lines_of(batch) async for batch in changes] == [["ADDED 0@11"], ["ADDED 1@12"], ["ADDED 2@13"]]


async def test_a_closed_watch_leaves_the_cache() -> None:
    cache = make_cache()
    changes = await cache.watch("a", WatchOptions())
    await changes.aclose()
    await changes.aclose()
    assert cache.watchers == 0
    assert [batch async for batch in changes] == []


def test_an_event_ends_even_a_wait_of_zero_length(monkeypatch: pytest.MonkeyPatch) -> None:
    """uvloop's handle of a timer that is due immediately has no time."""
    monkeypatch.setattr(watcher, "_IDLE_SECONDS", 0.0003)

    async def main() -> list[str]:
        cache, lines = make_cache(thing("x", 5)), list[str]()
        changes = await cache.watch("", WatchOptions(resource_version=10))

        async def read() -> None:
            async for batch in changes:
                lines.extend(lines_of(batch))

        reading = asyncio.ensure_future(read())
        for rv in range(11, 211):
            await asyncio.sleep(0)
            cache.apply("MODIFIED", thing("x", rv))
        changes.end()
        await reading
        return lines

    assert uvloop.run(main()) == [f"MODIFIED x@{rv}" for rv in range(11, 211)]


class Reader:
    """Reads a watch, whose events are sent without it while `accepts`."""

    def __init__(self, changes: CacheWatcher) -> None:
        self.accepts, self.sent, self.read = True, list[str](), list[str]()
        self._changes = changes
        changes.send_with(self._try_send)
        self.task = asyncio.create_task(self._read())

    def _try_send(self, items: Sequence[WatchItem]) -> bool:
        if not self.accepts:
            return False
        self.sent += lines_of(items)
        return True

    async def _read(self) -> None:
        async for batch in self._changes:
            self.read += lines_of(batch)


async def iterations() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_changes_are_sent_without_the_reader_while_it_waits() -> None:
    cache = make_cache()
    reader = Reader(await cache.watch("", WatchOptions(resource_version=10)))
    cache.apply("ADDED", thing("early", 11))
    await iterations()
    assert (reader.sent, reader.read) == ([], ["ADDED early@11"])
    cache.apply("ADDED", thing("x", 12))
    cache.apply("MODIFIED", thing("x", 13))
    await iterations()
    assert reader.sent == ["ADDED x@12", "MODIFIED x@13"]
    assert reader.read == ["ADDED early@11"]
    reader.task.cancel()


async def test_the_reader_sends_what_cannot_be_sent_at_once_in_order() -> None:
    cache = make_cache()
    changes = await cache.watch("", WatchOptions(resource_version=10))
    reader = Reader(changes)
    await iterations()
    cache.apply("ADDED", thing("x", 11))
    await iterations()
    reader.accepts = False
    for rv in (12, 13):
        cache.apply("MODIFIED", thing("x", rv))
    await iterations()
    reader.accepts = True
    cache.apply("MODIFIED", thing("x", 14))
    cache.apply("MODIFIED", thing("x", 15))
    changes.end()
    await asyncio.wait_for(reader.task, timeout=30)
    assert reader.sent == ["ADDED x@11"]
    assert reader.read == [f"MODIFIED x@{rv}" for rv in (12, 13, 14, 15)]


async def test_an_error_of_one_watch_is_left_to_its_reader() -> None:
    cache = make_cache()
    changes = [await cache.watch("", WatchOptions(resource_version=10)) for _ in range(2)]
    broken, other = (Reader(each) for each in changes)

    def fail(items: Sequence[WatchItem]) -> bool:
        raise RuntimeError

    changes[0].send_with(fail)
    await iterations()
    cache.apply("ADDED", thing("x", 11))
    await iterations()
    assert (broken.read, other.sent) == (["ADDED x@11"], ["ADDED x@11"])
    for each in (broken, other):
        each.task.cancel()


async def test_more_events_than_a_batch_are_sent_without_the_reader() -> None:
    cache = make_cache()
    reader = Reader(await cache.watch("", WatchOptions(resource_version=10)))
    await iterations()
    for number in range(600):
        cache.apply("ADDED", thing(f"x{number}", 11 + number))
    await iterations()
    assert reader.sent == [f"ADDED x{number}@{11 + number}" for number in range(600)]
    assert reader.read == []
    reader.task.cancel()
