"""Lists and watches of readers who do not see everything (ATTACK-04, ATTACK-05, ATTACK-15)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.meta import errors
from apiserver.meta.resource import Key, Resource
from apiserver.meta.selectors import parse_field_selector, parse_label_selector
from apiserver.request.options import ListOptions, WatchOptions
from apiserver.storage.event_history import Event
from apiserver.storage.visibility import VisibilityChange, VisibleNamespaces, intersection, is_visible, union
from apiserver.storage.watch_cache import CachedObject, HistoryLimits, WatchCache, encode
from apiserver.storage.watcher import Bookmark, CacheWatcher

THINGS = Resource(group="", version="v1", kind="Thing", plural="things", singular="thing", namespaced=True)
WIDE = Resource(group="", version="v1", kind="Wide", plural="wides", singular="wide", namespaced=False)


def thing(name: str, rv: int, namespace: str = "a", **labels: str) -> CachedObject:
    metadata = {"name": name, "namespace": namespace, "uid": name, "resourceVersion": str(rv), "labels": labels}
    return encode(THINGS, {"metadata": metadata, "spec": {"secret": True}})


def filled(*objects: CachedObject, rv: int = 10, **settings: Any) -> WatchCache:
    cache = WatchCache(THINGS, **settings)
    cache.replace(objects, rv)
    return cache


class Reader:
    """A Visibility whose namespaces a test changes; `past_change` is its answer about the past: nothing by default."""

    def __init__(self, *namespaces: str, everything: bool = False) -> None:
        self.namespaces: VisibleNamespaces = None if everything else frozenset(namespaces)
        self.past_change: VisibilityChange | None = VisibilityChange(
            self.namespaces, self.namespaces, self.namespaces, 0
        )
        self.calls: list[tuple[int, tuple[float, float]]] = []
        self.callbacks: list[Callable[[VisibilityChange], None]] = []

    def change_since(self, rv: int, sent: tuple[float, float]) -> VisibilityChange | None:
        self.calls.append((rv, sent))
        return self.past_change

    def subscribe(self, callback: Callable[[VisibilityChange], None]) -> Callable[[], None]:
        self.callbacks.append(callback)
        return lambda: self.callbacks.remove(callback)

    def set_visible(self, *namespaces: str, rv: int) -> None:
        before, self.namespaces = self.namespaces, frozenset(namespaces)
        for callback in tuple(self.callbacks):
            callback(VisibilityChange(before, before, self.namespaces, rv))


async def told(watch: CacheWatcher) -> list[tuple[str, str, int]]:
    """Type, name and version of what is to be sent now."""
    found: list[tuple[str, str, int]] = []
    for item in await anext(watch):
        if isinstance(item, Event):
            found.append((item.type, item.object.key.name, item.rv))
        elif isinstance(item, Bookmark):
            found.append(("BOOKMARK", "", item.rv))
    return found


def options(rv: int = 10, **more: Any) -> WatchOptions:
    return WatchOptions(**{"resource_version": rv, "allow_bookmarks": True, **more})


@pytest.mark.parametrize(
    ("places", "namespace", "shown"),
    [
        pytest.param(None, "", ["x", "y", "z"], id="everything"),
        pytest.param(frozenset(), "", [], id="nothing"),
        pytest.param(frozenset(("c", "a")), "", ["x", "z"], id="two namespaces"),
        pytest.param(frozenset(("a", "nowhere")), "", ["x"], id="one that is empty"),
        pytest.param(frozenset(("a",)), "b", [], id="a namespace that is hidden"),
        pytest.param(frozenset(("a",)), "a", ["x"], id="a namespace that is seen"),
    ],
)
async def test_a_list_holds_what_is_seen(places: VisibleNamespaces, namespace: str, shown: list[str]) -> None:
    cache = filled(thing("x", 1, "a"), thing("y", 2, "b"), thing("z", 3, "c"))
    page = await cache.list(namespace, ListOptions(), visible=places)
    assert [obj.key.name for obj in page.items] == shown


async def test_pages_and_what_remains_are_of_what_is_seen() -> None:
    cache = filled(*(thing(f"x{number}", number + 1, "abcd"[number % 4]) for number in range(8)))
    seen = frozenset(("b", "d"))
    first = await cache.list("", ListOptions(limit=3), visible=seen)
    assert ([obj.key.name for obj in first.items], first.remaining) == (["x1", "x5", "x3"], 1)
    rest = await cache.list("", ListOptions(limit=3, continue_token=first.continue_token), visible=seen)
    assert [obj.key.name for obj in rest.items] == ["x7"]
    stolen = await cache.list("", ListOptions(continue_token=first.continue_token), visible=frozenset("a"))
    assert stolen.items == []


async def test_selectors_narrow_what_is_seen() -> None:
    cache = filled(thing("x", 1, "a", k="v"), thing("y", 2, "b", k="v"), thing("z", 3, "a"))
    by_label = ListOptions(label_selector=parse_label_selector("k=v"))
    by_name = ListOptions(field_selector=parse_field_selector("metadata.name=y"))
    assert [obj.key.name for obj in (await cache.list("", by_label, visible=frozenset("a"))).items] == ["x"]
    assert (await cache.list("", by_name, visible=frozenset("a"))).items == []


async def test_of_a_kind_without_namespaces_the_names_count() -> None:
    cache = WatchCache(WIDE)
    cache.replace([encode(WIDE, {"metadata": {"name": name, "resourceVersion": "1"}}) for name in ("a", "b", "c")], 5)
    page = await cache.list("", ListOptions(limit=1), visible=frozenset(("b", "c")))
    assert ([obj.key.name for obj in page.items], page.remaining) == (["b"], 1)


async def test_a_watch_is_told_of_what_is_seen_and_of_nothing_else() -> None:
    cache, reader = filled(), Reader("a")
    watch = await cache.watch("", options(), visibility=reader)
    cache.apply("ADDED", thing("y", 11, "b"))
    cache.apply("ADDED", thing("x", 12, "a"))
    cache.apply("DELETED", thing("y", 13, "b"))
    assert await told(watch) == [("ADDED", "x", 12)]


async def test_a_watch_begins_with_what_is_seen() -> None:
    cache = filled(thing("x", 1, "a"), thing("y", 2, "b"))
    watch = await cache.watch("", options(0, send_initial_events=True), visibility=Reader("b"))
    assert await told(watch) == [("ADDED", "y", 2), ("BOOKMARK", "", 10)]


async def test_what_comes_into_sight_is_added_under_its_own_version_and_a_bookmark_follows() -> None:
    cache, reader = filled(thing("x", 1, "a"), thing("y", 2, "b"), thing("z", 3, "b")), Reader("a")
    watch = await cache.watch("", options(), visibility=reader)
    cache.advance(40)
    reader.set_visible("a", "b", rv=30)
    assert await told(watch) == [("ADDED", "y", 2), ("ADDED", "z", 3), ("BOOKMARK", "", 40)]


async def test_what_leaves_sight_is_deleted_under_the_version_of_the_revocation_with_its_name_alone() -> None:
    cache, reader = filled(thing("x", 1, "a"), thing("y", 2, "b")), Reader("a", "b")
    watch = await cache.watch("", options(), visibility=reader)
    reader.set_visible("b", rv=30)
    [event, bookmark] = await anext(watch)
    assert isinstance(event, Event)
    assert (event.type, event.rv) == ("DELETED", 30)
    assert orjson.loads(event.object.json) == {
        "apiVersion": "v1",
        "kind": "Thing",
        "metadata": {"name": "x", "namespace": "a", "uid": "x", "resourceVersion": "30"},
    }
    assert isinstance(bookmark, Bookmark)
    # nothing of it is told any more
    cache.apply("DELETED", thing("x", 41, "a"))
    cache.apply("MODIFIED", thing("y", 42, "b"))
    assert await told(watch) == [("MODIFIED", "y", 42)]


async def test_who_did_not_ask_for_bookmarks_gets_none() -> None:
    cache, reader = filled(thing("x", 1, "a")), Reader()
    watch = await cache.watch("", options(allow_bookmarks=False), visibility=reader)
    reader.set_visible("a", rv=30)
    assert await told(watch) == [("ADDED", "x", 1)]


async def test_only_what_is_selected_comes_and_goes() -> None:
    cache, reader = filled(thing("x", 1, "a", k="v"), thing("y", 2, "a"), thing("z", 3, "b", k="v")), Reader()
    selected = options(label_selector=parse_label_selector("k=v"))
    everywhere = await cache.watch("", selected, visibility=reader)
    in_b = await cache.watch("b", selected, visibility=reader)
    reader.set_visible("a", "b", rv=30)
    assert await told(everywhere) == [("ADDED", "x", 1), ("ADDED", "z", 3), ("BOOKMARK", "", 10)]
    assert await told(in_b) == [("ADDED", "z", 3), ("BOOKMARK", "", 10)]


async def test_an_object_of_old_that_comes_into_sight_does_not_look_like_a_reader_who_is_stuck() -> None:
    cache, reader = filled(thing("x", 1, "a"), history=HistoryLimits(events=3, seconds=0)), Reader()
    watch = await cache.watch("", options(), visibility=reader)
    for rv in range(11, 20):
        cache.apply("MODIFIED", thing("y", rv, "b"))
    reader.set_visible("a", "b", rv=30)
    cache.apply("MODIFIED", thing("y", 20, "b"))
    assert ("ADDED", "x", 1) in await told(watch)


async def test_a_watch_that_is_over_hears_nothing() -> None:
    cache, reader = filled(), Reader()
    watch = await cache.watch("", options(), visibility=reader)
    await watch.aclose()
    assert reader.callbacks == []


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


async def test_a_watch_that_goes_on_is_told_what_came_into_sight_and_left_it_meanwhile() -> None:
    clock = Clock()
    cache = filled(thing("x", 1, "a"), thing("y", 2, "b"), thing("z", 3, "c"), clock=clock)
    cache.apply("MODIFIED", thing("x", 11, "a"))
    clock.now = 200.0
    cache.apply("ADDED", thing("new", 12, "b"))
    cache.apply("DELETED", thing("y", 13, "b"))
    cache.apply("ADDED", thing("later", 14, "a"))
    reader = Reader("a", "c")
    reader.past_change = VisibilityChange(frozenset("ab"), frozenset("a"), reader.namespaces, 20)
    watch = await cache.watch("", options(11), visibility=reader)
    # y was known and is no longer seen; new came and left unseen
    assert await told(watch) == [("ADDED", "later", 14), ("DELETED", "y", 20), ("ADDED", "z", 3), ("BOOKMARK", "", 14)]
    assert reader.calls == [(11, (100.0, 200.0))]


async def test_a_watch_that_goes_on_from_the_last_event_asks_for_all_that_happened_since() -> None:
    clock, reader = Clock(), Reader("a")
    cache = filled(clock=clock)
    await cache.watch("", options(10), visibility=reader)
    cache.apply("ADDED", thing("x", 11, "a"))
    await cache.watch("", options(11), visibility=reader)
    assert reader.calls == [(10, (float("-inf"), float("inf"))), (11, (100.0, float("inf")))]


async def test_who_may_see_what_cannot_be_told_from_too_far_back() -> None:
    reader = Reader("a")
    reader.past_change = None
    with pytest.raises(errors.Expired):
        await filled().watch("", options(10), visibility=reader)


async def test_who_sees_everything_is_told_of_every_place_that_is_lost() -> None:
    cache, reader = filled(thing("x", 1, "a"), thing("y", 2, "b")), Reader(everything=True)
    watch = await cache.watch("", options(), visibility=reader)
    reader.set_visible("b", rv=30)
    assert await told(watch) == [("DELETED", "x", 30), ("BOOKMARK", "", 10)]


places = st.none() | st.frozensets(st.sampled_from("abc"))


@given(places, places, places)
def test_sets_of_places_are_sets(ever: VisibleNamespaces, always: VisibleNamespaces, now: VisibleNamespaces) -> None:
    change = VisibilityChange(ever, always, now, 1)
    for place in "abcd":
        assert is_visible(union(ever, now), place) == (is_visible(ever, place) or is_visible(now, place))
        assert is_visible(intersection(ever, now), place) == (is_visible(ever, place) and is_visible(now, place))
        assert change.gained(place) == (is_visible(now, place) and not is_visible(always, place))
        if change.gained(place) or change.lost(place):
            assert is_visible(change.affected, place)


def test_the_key_of_a_thing_says_where_it_is() -> None:
    assert thing("x", 1, "a").key == Key("a", "x")
