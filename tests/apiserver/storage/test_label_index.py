"""The index of labels: lists by label are what a scan finds, and do not take longer among more objects."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.meta.resource import Key
from apiserver.meta.selectors import parse_label_selector
from apiserver.request.options import EXACT, ListOptions, WatchOptions
from apiserver.storage.label_index import LabelIndex, LabelIndexLimits
from apiserver.storage.pagination import ContinueToken, Page, encode_token
from apiserver.storage.visibility import EVERYTHING, VisibleObjects
from apiserver.storage.watch_cache import CachedObject, WatchCache
from tests.apiserver.storage.test_watch_cache import THINGS, make_cache, thing
from tests.apiserver.storage.test_watcher import lines_of
from tests.cpu_time import least_ratio

_ALWAYS = LabelIndexLimits(objects=0, labels=2)
_NEVER = LabelIndexLimits(objects=10**9)
_NAMES, _NAMESPACES, _VALUES = "vwxyz", "ab", ("", "1", "2", "3")
_SELECTORS = (
    "p=1",
    "p in (1,2),q=3",
    "p",
    "p,q!=1",
    "q notin (1,2)",
    "!p",
    "p=none",
    "r in (1,3)",
    "p in (1,2,3),p!=2",
    "q>1",
)
_labels = st.fixed_dictionaries({}, optional={name: st.sampled_from(_VALUES) for name in "pqr"})
_change = st.tuples(st.booleans(), st.sampled_from(_NAMES), st.sampled_from(_NAMESPACES), _labels)
_question = st.tuples(
    st.sampled_from(_SELECTORS),
    st.sampled_from(("", *_NAMESPACES)),
    st.sampled_from((0, 1, 3)),
    st.sampled_from((EVERYTHING, VisibleObjects(frozenset("a"), frozenset({Key("b", "x")})), VisibleObjects())),
)


def _shown(page: Page) -> tuple[list[CachedObject], int, str, int | None]:
    return list(page.items), page.resource_version, page.continue_token, page.remaining


@given(st.lists(st.one_of(_change, _question), max_size=60))
def test_an_index_finds_what_a_scan_finds(steps: list[tuple[object, ...]]) -> None:
    """In every page, after any changes, for any selector and visibility."""
    indexed, scanned = make_cache(rv=1, label_index=_ALWAYS), make_cache(rv=1, label_index=_NEVER)

    async def ask(selector: str, namespace: str, limit: int, visible: VisibleObjects) -> None:
        token = ""
        while True:
            options = ListOptions(label_selector=parse_label_selector(selector), limit=limit, continue_token=token)
            pages = [await cache.list(namespace, options, visible=visible) for cache in (indexed, scanned)]
            assert _shown(pages[0]) == _shown(pages[1])
            token = pages[0].continue_token
            if not token:
                return

    async def play() -> None:
        for rv, step in enumerate(steps, 2):
            match step:
                case (bool(deleted), str(name), str(namespace), dict(labels)):
                    changed = thing(name, rv, namespace=namespace, **labels)
                    for cache in (indexed, scanned):
                        cache.apply("DELETED" if deleted else "MODIFIED", changed)
                case (str(selector), str(namespace), int(limit), VisibleObjects() as visible):
                    await ask(selector, namespace, limit, visible)

    asyncio.run(play())


async def test_the_index_follows_a_new_list_of_the_cluster_also_an_older_one() -> None:
    cache = make_cache(thing("x", 1, p="1"), thing("y", 2, p="2"), thing("z", 3), label_index=_ALWAYS)
    options = ListOptions(label_selector=parse_label_selector("p=2"))
    for _ in range(3):
        assert [each.key.name for each in (await cache.list("", options)).items] == ["y"]
    cache.replace([thing("x", 11, p="2"), thing("z", 12, p="2")], 12)
    assert [each.key.name for each in (await cache.list("", options)).items] == ["x", "z"]
    cache.replace([thing("y", 4, p="2")], 5)
    assert [each.key.name for each in (await cache.list("", options)).items] == ["y"]


async def test_a_watch_begins_with_what_a_scan_finds() -> None:
    objects = [thing(name, number, p=str(number % 3)) for number, name in enumerate("uvwxyz", 1)]
    cache = make_cache(*objects, label_index=_ALWAYS)
    for selector in ("p=1", "p in (0,2)", "p"):
        wanted = parse_label_selector(selector)
        for _ in range(3):
            watch = await cache.watch("", WatchOptions(label_selector=wanted))
            lines = lines_of(await anext(watch))
            assert lines == [f"ADDED {each.key.name}@{each.rv}" for each in objects if wanted.matches(each.labels)]
            await watch.aclose()


def _found(index: LabelIndex, selector: str, objects: list[CachedObject]) -> list[str] | None:
    found = index.find(parse_label_selector(selector), objects)
    return None if found is None else [key.name for key in found]


def test_a_label_is_indexed_from_the_second_list_that_selects_by_it() -> None:
    index, objects = LabelIndex(limits=_ALWAYS), [thing(name, 1, p=name) for name in "xyz"]
    assert _found(index, "p=x", objects) is None
    assert _found(index, "p=x", objects) == ["x"]
    assert _found(index, "p=y", objects) == ["y"]
    assert _found(index, "p!=y", objects) is None


def test_a_requirement_that_half_of_the_objects_meet_is_left_to_the_scan() -> None:
    index, objects = LabelIndex(limits=_ALWAYS), [thing(name, 1, p="1", q=name) for name in "vwxyz"]
    for _ in range(2):
        index.find(parse_label_selector("p,q"), objects)
    assert _found(index, "p=1", objects) is None
    assert _found(index, "p=1,q in (w,v)", objects) == ["v", "w"]


def test_few_labels_are_indexed_and_one_that_is_not_used_makes_room() -> None:
    now = 0.0
    index, objects = LabelIndex(limits=_ALWAYS, clock=lambda: now), [thing("x", 1), thing("y", 1)]
    for label in "pqr":
        for _ in range(2):
            index.find(parse_label_selector(label), objects)
    assert [_found(index, label, objects) for label in "pqr"] == [[], [], None]
    now = 59.0
    assert _found(index, "q", objects) == []
    now = 61.0
    assert [_found(index, label, objects) for label in "rqp"] == [[], [], None]


@pytest.mark.parametrize("selector", ["p=none", "p in (7,8)", "p=7,q!=1"])
def test_a_list_by_label_costs_the_same_among_many_objects(selector: str) -> None:
    options = ListOptions(label_selector=parse_label_selector(selector))
    few, many = (_numbered(count) for count in (2000, 20_000))

    async def lists(cache: WatchCache) -> None:
        for _ in range(200):
            await cache.list("", options)

    with asyncio.Runner() as runner:
        for cache in (few, many):
            runner.run(lists(cache))
        assert least_ratio(lambda: runner.run(lists(many)), lambda: runner.run(lists(few)), below=2) < 2


@pytest.mark.parametrize(
    ("matching", "other"),
    [
        pytest.param("p=101", "p=none", id="a label that thousands of hidden objects have"),
        pytest.param("p in (101,102)", "p in (103,104)", id="several values"),
        pytest.param("q", "r", id="a key that thousands of hidden objects have"),
    ],
)
@pytest.mark.parametrize(
    "visible", [VisibleObjects(), VisibleObjects(frozenset("b"))], ids=["without rights", "in one namespace"]
)
def test_the_time_of_a_list_does_not_tell_how_many_hidden_objects_match(
    matching: str, other: str, visible: VisibleObjects
) -> None:
    """ATTACK-15, also after others have used the index."""
    cache = WatchCache(THINGS)
    labels = {"p": "101", "q": "1"}
    objects = [thing(f"t{n:05}", n + 1, **(labels if n % 3 else {})) for n in range(9_000)]
    objects.append(thing("shown", 9_001, namespace="b", **labels))
    cache.replace(sorted(objects, key=lambda each: each.key), 9_001)

    async def lists(selector: str) -> None:
        options = ListOptions(label_selector=parse_label_selector(selector))
        for _ in range(50):
            await cache.list("", options, visible=visible)

    with asyncio.Runner() as runner:
        for selector in (matching, other) * 2:
            options = ListOptions(label_selector=parse_label_selector(selector))
            runner.run(cache.list("", options))
        assert least_ratio(lambda: runner.run(lists(matching)), lambda: runner.run(lists(other)), below=1.5) < 1.5


def test_lists_of_an_older_version_cost_a_user_who_sees_little_the_same_among_many_objects() -> None:
    """Both with a version that the list names, and with a continue token that the user made up."""
    few, many = (_changed(count) for count in (1000, 30_000))
    exact = ListOptions(resource_version=few.rv - 20, resource_version_match=EXACT)
    visible = VisibleObjects(frozenset("b"))

    def lists(runner: asyncio.Runner, cache: WatchCache) -> None:
        rv = cache.rv - 20
        token = encode_token(ContinueToken(rv, Key("a", "")))

        async def read() -> None:
            for _ in range(50):
                await cache.list("", replace(exact, resource_version=rv), visible=visible)
                await cache.list("", ListOptions(continue_token=token), visible=visible)

        runner.run(read())

    with asyncio.Runner() as runner:
        assert least_ratio(lambda: lists(runner, many), lambda: lists(runner, few), below=3) < 3


def _changed(count: int) -> WatchCache:
    """A cache whose last 20 events were changes of hidden objects."""
    cache = WatchCache(THINGS)
    cache.replace([thing(f"t{n:05}", n + 1) for n in range(count)], count)
    for n in range(1, 21):
        cache.apply("MODIFIED", thing(f"t{n:05}", count + n))
    return cache


def _numbered(count: int) -> WatchCache:
    """Ten objects of each value up to 100, and the others have 101."""
    cache = WatchCache(THINGS)
    cache.replace([thing(f"t{n:05}", n + 1, p=str(min(n // 10, 101))) for n in range(count)], count + 1)
    return cache
