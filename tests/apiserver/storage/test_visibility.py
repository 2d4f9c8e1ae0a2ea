"""Lists and watches of users who may see some namespaces only (ATTACK-04, ATTACK-05, ATTACK-15)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.meta import errors
from apiserver.meta.resource import Key, Resource
from apiserver.meta.selectors import parse_field_selector, parse_label_selector
from apiserver.request.options import ListOptions, WatchOptions
from apiserver.storage import pagination
from apiserver.storage.event_history import CacheEvent
from apiserver.storage.visibility import EVERYTHING, VisibilityChange, VisibleObjects, intersection, union
from apiserver.storage.watch_cache import CachedObject, HistoryLimits, WatchCache, encode
from apiserver.storage.watcher import Bookmark, CacheWatcher

X_AND_Y = frozenset((Key("a", "x"), Key("b", "y"), Key("b", "missing")))
THINGS = Resource(group="", version="v1", kind="Thing", plural="things", singular="thing", namespaced=True)
WIDE = Resource(group="", version="v1", kind="Wide", plural="wides", singular="wide", namespaced=False)


def thing(name: str, rv: int, namespace: str = "a", **labels: str) -> CachedObject:
    metadata = {"name": name, "namespace": namespace, "uid": name, "resourceVersion": str(rv), "labels": labels}
    return encode(THINGS, {"metadata": metadata, "spec": {"secret": True}})


def make_cache(*objects: CachedObject, rv: int = 10, **settings: Any) -> WatchCache:
    cache = WatchCache(THINGS, **settings)
    cache.replace(objects, rv)
    return cache


def namespaces(*names: str) -> VisibleObjects:
    return VisibleObjects(frozenset(names))


class Reader:
    """A Visibility whose namespaces a test changes; `past_change` is its answer about the past: nothing by default."""

    def __init__(self, *namespaces: str, everything: bool = False) -> None:
        self.visible = EVERYTHING if everything else VisibleObjects(frozenset(namespaces))
        self.past_change: VisibilityChange | None = VisibilityChange(self.visible, self.visible, self.visible, 0)
        self.calls: list[tuple[int, tuple[float, float]]] = []
        self.callbacks: list[Callable[[VisibilityChange], None]] = []

    def change_since(self, rv: int, sent: tuple[float, float]) -> VisibilityChange | None:
        self.calls.append((rv, sent))
        return self.past_change

    def subscribe(self, callback: Callable[[VisibilityChange], None]) -> Callable[[], None]:
        self.callbacks.append(callback)
        return lambda: self.callbacks.remove(callback)

    def set_visible(self, *namespaces: str, rv: int, keys: Iterable[Key] = (), names: Iterable[str] = ()) -> None:
        now = VisibleObjects(frozenset(namespaces), frozenset(keys), frozenset(names))
        before, self.visible = self.visible, now
        for callback in tuple(self.callbacks):
            callback(VisibilityChange(before, before, now, rv))


async def received(watch: CacheWatcher) -> list[tuple[str, str, int]]:
    """The type, name and version of the next batch of events."""
    found: list[tuple[str, str, int]] = []
    for item in await anext(watch):
        if isinstance(item, CacheEvent):
            found.append((item.type, item.object.key.name, item.rv))
        elif isinstance(item, Bookmark):
            found.append(("BOOKMARK", "", item.rv))
    return found


def options(rv: int = 10, **more: Any) -> WatchOptions:
    return WatchOptions(**{"resource_version": rv, "allow_bookmarks": True, **more})


@pytest.mark.parametrize(
    ("visible", "namespace", "names"),
    [
        pytest.param(EVERYTHING, "", ["w", "x", "y", "z"], id="everything"),
        pytest.param(namespaces(), "", [], id="nothing"),
        pytest.param(namespaces("c", "a"), "", ["w", "x", "z"], id="two namespaces"),
        pytest.param(namespaces("a", "nowhere"), "", ["w", "x"], id="an empty namespace"),
        pytest.param(namespaces("a"), "b", [], id="a hidden namespace"),
        pytest.param(namespaces("a"), "a", ["w", "x"], id="a visible namespace"),
        pytest.param(VisibleObjects(keys=X_AND_Y), "", ["x", "y"], id="single objects"),
        pytest.param(VisibleObjects(keys=X_AND_Y), "a", ["x"], id="a single object of a namespace"),
        pytest.param(VisibleObjects(frozenset("a"), X_AND_Y), "", ["w", "x", "y"], id="a namespace and an object"),
        pytest.param(VisibleObjects(frozenset("c"), X_AND_Y), "", ["x", "y", "z"], id="objects before a namespace"),
        pytest.param(VisibleObjects(names=frozenset("wz")), "", ["w", "z"], id="names"),
        pytest.param(VisibleObjects(frozenset("b"), names=frozenset("w")), "", ["w", "y"], id="a namespace and names"),
    ],
)
@pytest.mark.parametrize("search_cost", [0, 1000])
async def test_a_list_has_the_visible_objects(
    visible: VisibleObjects, namespace: str, names: list[str], search_cost: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page is the same if ranges of keys are searched for, and if each object is looked at."""
    monkeypatch.setattr(pagination, "_SEARCH_COST", search_cost)
    cache = make_cache(thing("w", 1, "a"), thing("x", 1, "a"), thing("y", 2, "b"), thing("z", 3, "c"))
    page = await cache.list(namespace, ListOptions(), visible=visible)
    assert [obj.key.name for obj in page.items] == names


async def test_pages_and_remaining_counts_include_only_visible_objects() -> None:
    cache = make_cache(*(thing(f"x{number}", number + 1, "abcd"[number % 4]) for number in range(8)))
    visible = namespaces("b", "d")
    first = await cache.list("", ListOptions(limit=3), visible=visible)
    assert ([obj.key.name for obj in first.items], first.remaining) == (["x1", "x5", "x3"], 1)
    rest = await cache.list("", ListOptions(limit=3, continue_token=first.continue_token), visible=visible)
    assert [obj.key.name for obj in rest.items] == ["x7"]
    of_other_user = await cache.list("", ListOptions(continue_token=first.continue_token), visible=namespaces("a"))
    assert of_other_user.items == []


async def test_selectors_apply_to_visible_objects() -> None:
    cache = make_cache(thing("x", 1, "a", k="v"), thing("y", 2, "b", k="v"), thing("z", 3, "a"))
    by_label = ListOptions(label_selector=parse_label_selector("k=v"))
    by_name = ListOptions(field_selector=parse_field_selector("metadata.name=y"))
    assert [obj.key.name for obj in (await cache.list("", by_label, visible=namespaces("a"))).items] == ["x"]
    assert (await cache.list("", by_name, visible=namespaces("a"))).items == []


async def test_objects_of_a_cluster_scoped_kind_are_visible_by_name() -> None:
    cache = WatchCache(WIDE)
    cache.replace([encode(WIDE, {"metadata": {"name": name, "resourceVersion": "1"}}) for name in ("a", "b", "c")], 5)
    page = await cache.list("", ListOptions(limit=1), visible=namespaces("b", "c"))
    assert ([obj.key.name for obj in page.items], page.remaining) == (["b"], 1)


async def test_a_watch_receives_events_of_visible_namespaces_only() -> None:
    cache, reader = make_cache(), Reader("a")
    watch = await cache.watch("", options(), visibility=reader)
    cache.apply("ADDED", thing("y", 11, "b"))
    cache.apply("ADDED", thing("x", 12, "a"))
    cache.apply("DELETED", thing("y", 13, "b"))
    assert await received(watch) == [("ADDED", "x", 12)]


async def test_initial_events_include_visible_objects_only() -> None:
    cache = make_cache(thing("x", 1, "a"), thing("y", 2, "b"))
    watch = await cache.watch("", options(0, send_initial_events=True), visibility=Reader("b"))
    assert await received(watch) == [("ADDED", "y", 2), ("BOOKMARK", "", 10)]


async def test_newly_visible_objects_are_added_at_their_own_version_followed_by_a_bookmark() -> None:
    cache, reader = make_cache(thing("x", 1, "a"), thing("y", 2, "b"), thing("z", 3, "b")), Reader("a")
    watch = await cache.watch("", options(), visibility=reader)
    cache.advance(40)
    reader.set_visible("a", "b", rv=30)
    assert await received(watch) == [("ADDED", "y", 2), ("ADDED", "z", 3), ("BOOKMARK", "", 40)]


async def test_hidden_objects_are_deleted_at_the_version_of_the_revocation_without_their_content() -> None:
    cache, reader = make_cache(thing("x", 1, "a"), thing("y", 2, "b")), Reader("a", "b")
    watch = await cache.watch("", options(), visibility=reader)
    reader.set_visible("b", rv=30)
    [event, bookmark] = await anext(watch)
    assert isinstance(event, CacheEvent)
    assert (event.type, event.rv) == ("DELETED", 30)
    assert orjson.loads(event.object.json) == {
        "apiVersion": "v1",
        "kind": "Thing",
        "metadata": {"name": "x", "namespace": "a", "uid": "x", "resourceVersion": "30"},
    }
    assert isinstance(bookmark, Bookmark)
    # no events of the hidden object follow
    cache.apply("DELETED", thing("x", 41, "a"))
    cache.apply("MODIFIED", thing("y", 42, "b"))
    assert await received(watch) == [("MODIFIED", "y", 42)]


async def test_visibility_changes_send_no_bookmark_to_a_client_without_bookmarks() -> None:
    cache, reader = make_cache(thing("x", 1, "a")), Reader()
    watch = await cache.watch("", options(allow_bookmarks=False), visibility=reader)
    reader.set_visible("a", rv=30)
    assert await received(watch) == [("ADDED", "x", 1)]


async def test_visibility_changes_respect_the_selectors_of_a_watch() -> None:
    cache, reader = make_cache(thing("x", 1, "a", k="v"), thing("y", 2, "a"), thing("z", 3, "b", k="v")), Reader()
    selected = options(label_selector=parse_label_selector("k=v"))
    everywhere = await cache.watch("", selected, visibility=reader)
    in_b = await cache.watch("b", selected, visibility=reader)
    reader.set_visible("a", "b", rv=30)
    assert await received(everywhere) == [("ADDED", "x", 1), ("ADDED", "z", 3), ("BOOKMARK", "", 10)]
    assert await received(in_b) == [("ADDED", "z", 3), ("BOOKMARK", "", 10)]


async def test_an_old_object_that_becomes_visible_does_not_make_a_client_look_slow() -> None:
    cache, reader = make_cache(thing("x", 1, "a"), history=HistoryLimits(events=3, seconds=0)), Reader()
    watch = await cache.watch("", options(), visibility=reader)
    for rv in range(11, 20):
        cache.apply("MODIFIED", thing("y", rv, "b"))
    reader.set_visible("a", "b", rv=30)
    cache.apply("MODIFIED", thing("y", 20, "b"))
    assert ("ADDED", "x", 1) in await received(watch)


async def test_a_closed_watch_ends_its_visibility_subscription() -> None:
    cache, reader = make_cache(), Reader()
    watch = await cache.watch("", options(), visibility=reader)
    await watch.aclose()
    assert reader.callbacks == []


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


async def test_a_resumed_watch_receives_the_visibility_changes_since_its_version() -> None:
    clock = Clock()
    cache = make_cache(thing("x", 1, "a"), thing("y", 2, "b"), thing("z", 3, "c"), clock=clock)
    cache.apply("MODIFIED", thing("x", 11, "a"))
    clock.now = 200.0
    cache.apply("ADDED", thing("new", 12, "b"))
    cache.apply("DELETED", thing("y", 13, "b"))
    cache.apply("ADDED", thing("later", 14, "a"))
    reader = Reader("a", "c")
    reader.past_change = VisibilityChange(namespaces("a", "b"), namespaces("a"), reader.visible, 20)
    watch = await cache.watch("", options(11), visibility=reader)
    # the client had y, which is no longer visible; it never received `new`
    assert await received(watch) == [
        ("ADDED", "later", 14),
        ("DELETED", "y", 20),
        ("ADDED", "z", 3),
        ("BOOKMARK", "", 14),
    ]
    assert reader.calls == [(11, (100.0, 200.0))]


@pytest.mark.parametrize(
    "missed",
    [
        pytest.param([], id="unchanged"),
        pytest.param([("MODIFIED", "x")], id="changed"),
        pytest.param([("MODIFIED", "y")], id="no longer selected"),
        pytest.param([("MODIFIED", "y"), ("MODIFIED", "x")], id="selected once more"),
        pytest.param([("DELETED", "x")], id="deleted"),
        pytest.param([("DELETED", "x"), ("ADDED", "x")], id="recreated"),
        pytest.param([("DELETED", "x"), ("ADDED", "y")], id="recreated, not selected"),
        pytest.param([("DELETED", "x"), ("ADDED", "x"), ("DELETED", "x")], id="recreated and deleted"),
    ],
)
async def test_a_resumed_watch_deletes_hidden_objects_that_the_client_had(missed: list[tuple[Any, str]]) -> None:
    """ATTACK-05: whatever has become of them since."""
    cache, reader = make_cache(thing("t", 1, "a", team="x")), Reader()
    for rv, (type_, team) in enumerate(missed, start=11):
        cache.apply(type_, thing("t", rv, "a", team=team))
    reader.past_change = VisibilityChange(namespaces("a"), namespaces(), reader.visible, 20)
    selector = parse_label_selector("team=x")
    watch = await cache.watch("", options(10, label_selector=selector), visibility=reader)
    assert await received(watch) == [("DELETED", "t", 20), ("BOOKMARK", "", 10 + len(missed))]


async def test_a_resumed_watch_deletes_hidden_objects_that_an_old_version_may_have_hidden_from_it() -> None:
    """A client that resumes at the version of an object that became visible may have received later events."""
    cache, reader = make_cache(thing("t", 1, "a", team="y")), Reader()
    cache.apply("MODIFIED", thing("t", 11, "a", team="x"))
    reader.past_change = VisibilityChange(namespaces("a"), namespaces(), reader.visible, 20)
    watch = await cache.watch("", options(10, label_selector=parse_label_selector("team=x")), visibility=reader)
    assert await received(watch) == [("DELETED", "t", 20), ("BOOKMARK", "", 11)]


@pytest.mark.parametrize(
    "missed",
    [
        pytest.param([("ADDED", "x")], id="created"),
        pytest.param([("ADDED", "y"), ("MODIFIED", "x")], id="selected later"),
        pytest.param([("ADDED", "x"), ("DELETED", "x")], id="deleted"),
    ],
)
async def test_a_resumed_watch_does_not_tell_of_objects_that_were_created_meanwhile_and_are_hidden(
    missed: list[tuple[Any, str]],
) -> None:
    cache, reader = make_cache(), Reader()
    for rv, (type_, team) in enumerate(missed, start=11):
        cache.apply(type_, thing("t", rv, "a", team=team))
    reader.past_change = VisibilityChange(namespaces("a"), namespaces(), reader.visible, 20)
    selector = parse_label_selector("team=x")
    watch = await cache.watch("", options(10, label_selector=selector, timeout_seconds=1), visibility=reader)
    assert await received(watch) == []


async def test_a_resumed_watch_requests_visibility_changes_since_its_last_event() -> None:
    clock, reader = Clock(), Reader("a")
    cache = make_cache(clock=clock)
    await cache.watch("", options(10), visibility=reader)
    cache.apply("ADDED", thing("x", 11, "a"))
    await cache.watch("", options(11), visibility=reader)
    assert reader.calls == [(10, (float("-inf"), float("inf"))), (11, (100.0, float("inf")))]


async def test_a_watch_expires_if_past_visibility_is_unknown() -> None:
    reader = Reader("a")
    reader.past_change = None
    with pytest.raises(errors.Expired):
        await make_cache().watch("", options(10), visibility=reader)


async def test_a_client_that_loses_full_visibility_receives_deletions_of_all_hidden_namespaces() -> None:
    cache, reader = make_cache(thing("x", 1, "a"), thing("y", 2, "b")), Reader(everything=True)
    watch = await cache.watch("", options(), visibility=reader)
    reader.set_visible("b", rv=30)
    assert await received(watch) == [("DELETED", "x", 30), ("BOOKMARK", "", 10)]


async def test_single_objects_that_become_visible_and_hidden_are_added_and_deleted() -> None:
    """Also for watches of one namespace or name. Other objects of the namespace are never sent."""
    cache, reader = make_cache(thing("x", 1, "a"), thing("y", 2, "a"), thing("z", 3, "b")), Reader()
    one = options(field_selector=parse_field_selector("metadata.name=x"))
    watches = [
        await cache.watch(namespace, each, visibility=reader) for namespace in ("", "a") for each in (options(), one)
    ]
    reader.set_visible(keys=[Key("a", "x")], rv=30)
    for watch in watches:
        assert await received(watch) == [("ADDED", "x", 1), ("BOOKMARK", "", 10)]
    cache.apply("MODIFIED", thing("y", 31, "a"))
    cache.apply("MODIFIED", thing("x", 32, "a"))
    reader.set_visible(rv=33)
    cache.apply("MODIFIED", thing("x", 34, "a"))
    for watch in watches:
        assert await received(watch) == [("MODIFIED", "x", 32), ("DELETED", "x", 33), ("BOOKMARK", "", 32)]


async def test_a_name_makes_objects_of_every_namespace_visible() -> None:
    cache, reader = make_cache(thing("x", 1, "a"), thing("x", 2, "b"), thing("y", 3, "b")), Reader()
    watch = await cache.watch("", options(), visibility=reader)
    reader.set_visible(names=["x"], rv=30)
    assert await received(watch) == [("ADDED", "x", 1), ("ADDED", "x", 2), ("BOOKMARK", "", 10)]
    # x of b remains visible, by its namespace
    reader.set_visible("b", rv=31)
    assert await received(watch) == [("DELETED", "x", 31), ("ADDED", "y", 3), ("BOOKMARK", "", 10)]


some = st.frozensets(st.sampled_from("abc"))
keys = st.frozensets(st.builds(Key, st.sampled_from("abc"), st.sampled_from("xy")))
visible_sets = st.builds(VisibleObjects, st.none() | some, keys, st.frozensets(st.sampled_from("xyz")))


@given(visible_sets, visible_sets, visible_sets)
def test_sets_of_visible_objects_behave_like_sets(
    one: VisibleObjects, other: VisibleObjects, now: VisibleObjects
) -> None:
    """An object that two sets have for different reasons need not be in their intersection: it is then sent again."""
    ever, always = union(one, other), intersection(one, other)
    change = VisibilityChange(ever, always, now, 1)
    for key in (Key(namespace, name) for namespace in "abcd" for name in "wxy"):
        in_one, in_other, is_now = (each.includes(THINGS, key) for each in (one, other, now))
        assert ever.includes(THINGS, key) == (in_one or in_other)
        assert (in_one and in_other) or not always.includes(THINGS, key)
        assert intersection(one, one).includes(THINGS, key) == in_one
        assert change.lost(THINGS, key) == ((in_one or in_other) and not is_now)
        assert change.gained(THINGS, key) or not is_now or (in_one and in_other)
        assert is_now or not change.gained(THINGS, key)
        if change.gained(THINGS, key) or change.lost(THINGS, key):
            assert change.affected.includes(THINGS, key)


@pytest.mark.parametrize("visible", [EVERYTHING, namespaces("a"), VisibleObjects(keys=X_AND_Y)])
def test_nothing_is_affected_if_nothing_has_changed(visible: VisibleObjects) -> None:
    """Administrators who resume their watches must not make the server look at every object."""
    assert VisibilityChange(visible, visible, visible, 1).affected == namespaces()


def test_the_key_of_an_object_has_its_namespace() -> None:
    assert thing("x", 1, "a").key == Key("a", "x")
