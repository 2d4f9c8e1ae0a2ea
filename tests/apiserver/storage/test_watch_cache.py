"""The watch cache as its writer feeds it and its readers read it (WIRE-D59 to WIRE-D63)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apiserver.meta import errors
from apiserver.meta.resource import Key, Resource
from apiserver.meta.selectors import parse_field_selector, parse_label_selector
from apiserver.request.options import ListOptions
from apiserver.storage import progress
from apiserver.storage.pagination import Page
from apiserver.storage.watch_cache import CachedObject, CacheEvent, EventType, HistoryLimits, WatchCache, encode

THINGS = Resource(group="", version="v1", kind="Thing", plural="things", singular="thing", namespaced=True)
ALL = ListOptions()


def thing(name: str, rv: int, *, namespace: str = "a", uid: str = "", **labels: str) -> CachedObject:
    metadata = {"name": name, "namespace": namespace, "uid": uid or name, "resourceVersion": str(rv), "labels": labels}
    return encode(THINGS, {"metadata": metadata})


def make_cache(*objects: CachedObject, rv: int = 10, **settings_: Any) -> WatchCache:
    cache = WatchCache(THINGS, **settings_)
    cache.replace(objects, rv)
    return cache


def record_events(cache: WatchCache) -> list[tuple[str, str, int, str]]:
    """The events that a listener receives: type, name, version, uid."""
    events: list[tuple[str, str, int, str]] = []
    cache.subscribe(lambda event: events.append((event.type, event.object.key.name, event.rv, event.object.uid)))
    return events


def versions_of(objects: Sequence[CachedObject]) -> list[str]:
    return [f"{obj.key.name}@{obj.rv}" for obj in objects]


@pytest.fixture
def short_timeouts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_READY_SECONDS", 0.01)
    monkeypatch.setattr(progress, "_CATCH_UP_SECONDS", 0.01)


# The writer's side.


def test_the_first_list_is_sent_to_listeners_as_events() -> None:
    cache = WatchCache(THINGS)
    events = record_events(cache)
    cache.replace([thing("x", 5), thing("y", 3)], 10)
    assert events == [("ADDED", "y", 3, "y"), ("ADDED", "x", 5, "x")]
    assert (cache.ready, cache.rv) == (True, 10)


def test_the_cache_derives_event_types_from_its_content() -> None:
    cache = make_cache(thing("x", 5))
    events = record_events(cache)
    cache.apply("ADDED", thing("x", 11))
    cache.apply("MODIFIED", thing("y", 12))
    cache.apply("DELETED", thing("z", 13))
    cache.apply("DELETED", thing("x", 14))
    assert events == [("MODIFIED", "x", 11, "x"), ("ADDED", "y", 12, "y"), ("DELETED", "x", 14, "x")]
    assert (versions_of(list(cache)), cache.rv) == (["y@12"], 14)


def test_old_changes_are_ignored() -> None:
    cache = make_cache(thing("x", 5))
    events = record_events(cache)
    cache.apply("MODIFIED", thing("x", 5))
    cache.apply("DELETED", thing("x", 10))
    assert (events, versions_of(list(cache))) == ([], ["x@5"])


def test_a_recreated_object_is_deleted_and_added() -> None:
    cache = make_cache(thing("x", 5, uid="old"))
    events = record_events(cache)
    cache.apply("MODIFIED", thing("x", 15, uid="new"))
    assert events == [("DELETED", "x", 11, "old"), ("ADDED", "x", 15, "new")]


def test_a_relist_becomes_the_missed_events() -> None:
    cache = make_cache(thing("gone", 1), thing("kept", 2), thing("changed", 3), thing("again", 4, uid="old"))
    events = record_events(cache)
    listed = [thing("kept", 2), thing("changed", 11), thing("again", 14, uid="new"), thing("new", 15)]
    cache.replace(listed, 20)
    assert events == [
        ("MODIFIED", "changed", 11, "changed"),
        ("DELETED", "again", 12, "old"),
        ("DELETED", "gone", 13, "gone"),
        ("ADDED", "again", 14, "new"),
        ("ADDED", "new", 15, "new"),
    ]
    assert cache.rv == 20


@pytest.mark.parametrize("change", ["MODIFIED", "DELETED"])
def test_a_replaced_object_drops_its_gzip_blocks(change: EventType) -> None:
    """The blocks would keep old states of its neighbours alive."""
    before = thing("x", 5)
    cache = make_cache(before)
    before.gzip_blocks = {"": object()}
    cache.apply(change, thing("x", 11))
    assert not before.gzip_blocks


def test_an_ended_subscription_receives_no_events() -> None:
    cache = make_cache()
    events: list[CacheEvent] = []
    stop = cache.subscribe(events.append)
    stop()
    cache.apply("ADDED", thing("x", 11))
    assert events == []


def test_objects_are_in_key_order() -> None:
    cache = make_cache(thing("b", 1), thing("a", 2, namespace="b"), thing("c", 3))
    cache.apply("ADDED", thing("a", 11))
    assert [obj.key for obj in cache.items()] == [Key("a", "a"), Key("a", "b"), Key("a", "c"), Key("b", "a")]
    assert [obj.key for obj in cache.items("b")] == [Key("b", "a")]
    assert cache.peek(Key("a", "c")) is not None
    assert len(cache) == 4


# The readers' side.


@pytest.mark.usefixtures("short_timeouts")
async def test_a_read_from_an_empty_cache_gets_a_retry_after() -> None:
    with pytest.raises(errors.TooManyRequests) as error:
        await WatchCache(THINGS).list("", ALL)
    assert (error.value.message, error.value.retry_after) == ("storage is (re)initializing", 1)


async def test_a_read_waits_until_the_cache_is_ready() -> None:
    cache = WatchCache(THINGS)
    reading = asyncio.create_task(cache.get(Key("a", "x")))
    await asyncio.sleep(0)
    cache.replace([thing("x", 5)], 10)
    assert await reading is cache.peek(Key("a", "x"))


async def test_a_read_waits_for_the_writes_of_this_process() -> None:
    cache = make_cache()
    cache.expect_version(Key("a", "x"), 11)
    reading = asyncio.create_task(cache.get(Key("a", "x")))
    await asyncio.sleep(0)
    assert not reading.done()
    cache.apply("ADDED", thing("x", 11))
    assert (await reading) is not None


async def test_a_read_waits_for_no_write_to_another_object_but_a_list_does() -> None:
    cache = make_cache(thing("x", 5), thing("y", 6))
    cache.expect_version(Key("a", "y"), 11)
    cache.expect_deletion(Key("a", "z"), "z")
    assert await asyncio.wait_for(cache.get(Key("a", "x")), 1) is not None
    listing = asyncio.create_task(cache.list("", ALL))
    await asyncio.sleep(0)
    assert not listing.done()
    cache.apply("MODIFIED", thing("y", 11))
    assert versions_of((await listing).items) == ["x@5", "y@11"]


async def test_a_read_waits_for_the_later_of_two_writes_to_its_object() -> None:
    cache = make_cache(thing("x", 5))
    cache.expect_version(Key("a", "x"), 13)
    cache.expect_version(Key("a", "y"), 12)
    cache.expect_version(Key("a", "x"), 11)
    reading = asyncio.create_task(cache.get(Key("a", "x")))
    cache.apply("MODIFIED", thing("x", 11))
    cache.apply("ADDED", thing("y", 12))
    await asyncio.sleep(0)
    assert not reading.done()
    cache.apply("MODIFIED", thing("x", 13))
    found = await reading
    assert found is not None
    assert found.rv == 13


async def test_a_read_waits_for_a_deletion_whose_version_is_unknown() -> None:
    cache = make_cache(thing("x", 5))
    cache.expect_deletion(Key("a", "x"), "x")
    reading = asyncio.create_task(cache.get(Key("a", "x")))
    await asyncio.sleep(0)
    cache.advance(11)
    await asyncio.sleep(0)
    assert not reading.done()
    cache.apply("DELETED", thing("x", 12))
    assert await reading is None


async def test_a_read_waits_for_a_deletion_even_if_the_creation_is_still_pending() -> None:
    cache = make_cache()
    cache.expect_version(Key("a", "x"), 11)
    cache.expect_deletion(Key("a", "x"), "x")
    reading = asyncio.create_task(cache.get(Key("a", "x")))
    await asyncio.sleep(0)
    cache.apply("ADDED", thing("x", 11))
    await asyncio.sleep(0)
    assert not reading.done()
    cache.apply("DELETED", thing("x", 12))
    assert await reading is None


async def test_a_recreated_object_is_not_mistaken_for_the_deleted_one() -> None:
    cache = make_cache(thing("x", 5, uid="new"))
    cache.expect_deletion(Key("a", "x"), "old")
    assert await cache.get(Key("a", "x")) is not None


@pytest.mark.usefixtures("short_timeouts")
async def test_a_future_version_is_too_large() -> None:
    with pytest.raises(errors.TooLargeResourceVersion) as error:
        await make_cache().get(Key("a", "x"), at_least=11)
    assert error.value.message == "Timeout: Too large resource version: 11, current: 10"
    assert error.value.causes == [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]


async def test_a_caller_can_wait_for_one_version_and_no_other_write() -> None:
    cache = make_cache(thing("x", 5))
    cache.expect_version(Key("a", "x"), 100)
    assert await cache.reaches(10, 1)
    waiting = asyncio.ensure_future(cache.reaches(12, 5))
    await asyncio.sleep(0)
    assert not waiting.done()
    cache.apply("MODIFIED", thing("x", 12))
    assert await waiting
    assert not await cache.reaches(13, 0.01)


@pytest.mark.usefixtures("short_timeouts")
async def test_a_pending_write_is_given_up_after_half_a_minute() -> None:
    now = 0.0
    cache = make_cache(thing("x", 5), clock=lambda: now)
    cache.expect_version(Key("a", "x"), 11)
    cache.expect_deletion(Key("a", "x"), "x")
    now = 29.0
    with pytest.raises(errors.TooLargeResourceVersion):
        await cache.list("", ALL)
    now = 30.0
    assert versions_of((await cache.list("", ALL)).items) == ["x@5"]


async def test_a_list_is_filtered_by_namespace_and_selectors() -> None:
    cache = make_cache(
        thing("x", 1, tier="web"), thing("y", 2), thing("x", 3, namespace="b"), thing("x", 4, namespace="a-b")
    )

    async def names(namespace: str, labels: str = "", fields: str = "") -> list[str]:
        options = ListOptions(label_selector=parse_label_selector(labels), field_selector=parse_field_selector(fields))
        return versions_of((await cache.list(namespace, options)).items)

    assert await names("") == ["x@1", "y@2", "x@4", "x@3"]
    assert await names("a") == ["x@1", "y@2"]
    assert await names("", "tier=web") == ["x@1"]
    assert await names("", "", "metadata.name=x") == ["x@1", "x@4", "x@3"]
    assert await names("a", "", "metadata.name=y") == ["y@2"]
    assert await names("", "", "metadata.namespace=b") == ["x@3"]
    assert await names("a", "", "metadata.namespace=b") == []
    assert await names("a", "", "metadata.name!=x") == ["y@2"]


async def all_pages(cache: WatchCache, options: ListOptions) -> list[Page]:
    pages = [await cache.list("", options)]
    while pages[-1].continue_token:
        following = ListOptions(
            label_selector=options.label_selector, limit=options.limit, continue_token=pages[-1].continue_token
        )
        pages.append(await cache.list("", following))
    return pages


async def test_all_pages_of_a_list_have_the_same_version_despite_changes() -> None:
    cache = make_cache(*(thing(name, 1) for name in "abcde"))
    first = await cache.list("", ListOptions(limit=2))
    cache.apply("DELETED", thing("d", 11))
    cache.apply("ADDED", thing("bb", 12))
    second = await cache.list("", ListOptions(limit=2, continue_token=first.continue_token))
    third = await cache.list("", ListOptions(limit=2, continue_token=second.continue_token))
    assert [versions_of(page.items) for page in (first, second, third)] == [["a@1", "b@1"], ["c@1", "d@1"], ["e@1"]]
    assert [page.resource_version for page in (first, second, third)] == [10, 10, 10]
    assert [page.remaining for page in (first, second, third)] == [3, 1, None]
    assert not third.continue_token


async def test_another_replica_serves_the_next_page_from_its_history() -> None:
    objects = [thing(name, 1) for name in "abc"]
    first = await make_cache(*objects).list("", ListOptions(limit=1))
    replica = make_cache(*objects)
    replica.apply("DELETED", thing("b", 11))
    replica.apply("MODIFIED", thing("c", 12))
    rest = await replica.list("", ListOptions(continue_token=first.continue_token))
    assert (versions_of(rest.items), rest.resource_version) == (["b@1", "c@1"], 10)


async def test_an_expired_token_is_answered_with_a_token_to_continue() -> None:
    first = await make_cache(*(thing(name, 1) for name in "abc"), rv=5).list("", ListOptions(limit=1))
    replica = make_cache(*(thing(name, 7) for name in "abd"), rv=10)
    with pytest.raises(errors.Expired) as expired:
        await replica.list("", ListOptions(limit=1, continue_token=first.continue_token))
    assert expired.value.message.startswith("The provided continue parameter is too old to display a consistent list")
    page = await replica.list("", ListOptions(limit=1, continue_token=expired.value.metadata["continue"]))
    assert (versions_of(page.items), page.resource_version) == (["b@7"], 10)
    last = await replica.list("", ListOptions(continue_token=page.continue_token))
    assert versions_of(last.items) == ["d@7"]


async def test_pages_of_a_selection_have_no_remaining_count() -> None:
    cache = make_cache(*(thing(name, 1, l="1") for name in "abc"), thing("d", 1))
    pages = await all_pages(cache, ListOptions(label_selector=parse_label_selector("l"), limit=2))
    assert [versions_of(page.items) for page in pages] == [["a@1", "b@1"], ["c@1"]]
    assert [page.remaining for page in pages] == [None, None]


async def test_an_empty_page_has_no_continue_token() -> None:
    page = await make_cache(thing("x", 1)).list("none", ListOptions(limit=1))
    assert (list(page.items), page.continue_token, page.resource_version) == ([], "", 10)


async def test_a_list_at_version_0_ignores_the_limit() -> None:
    page = await make_cache(thing("x", 1), thing("y", 2)).list("", ListOptions(limit=1, resource_version=0))
    assert (versions_of(page.items), page.continue_token) == (["x@1", "y@2"], "")


@pytest.mark.parametrize(
    ("options", "expected", "version"),
    [
        pytest.param(
            ListOptions(resource_version=11, resource_version_match="Exact"),
            ["x@11"],
            11,
            id="exactly the version of a change",
        ),
        pytest.param(
            ListOptions(resource_version=10, resource_version_match="Exact"),
            ["x@5"],
            10,
            id="exactly the version of the first list",
        ),
        pytest.param(
            ListOptions(resource_version=12, resource_version_match="Exact"),
            ["x@11"],
            12,
            id="exactly a version between two changes",
        ),
        pytest.param(ListOptions(resource_version=11, limit=5), ["x@11"], 11, id="a limit makes it exact"),
        pytest.param(ListOptions(resource_version=11), ["y@14"], 14, id="not older than"),
        pytest.param(
            ListOptions(resource_version=11, resource_version_match="NotOlderThan", limit=5),
            ["y@14"],
            14,
            id="not older than, with a limit",
        ),
    ],
)
async def test_a_list_is_served_at_the_requested_version(
    options: ListOptions, expected: list[str], version: int
) -> None:
    cache = make_cache(thing("x", 5))
    cache.apply("MODIFIED", thing("x", 11))
    cache.advance(12)
    cache.apply("DELETED", thing("x", 13))
    cache.apply("ADDED", thing("y", 14))
    page = await cache.list("", options)
    assert (versions_of(page.items), page.resource_version) == (expected, version)


async def test_an_exact_version_older_than_the_history_is_too_old() -> None:
    cache = make_cache(thing("x", 5), history=HistoryLimits(size=1))
    cache.apply("MODIFIED", thing("x", 11))
    with pytest.raises(errors.Expired) as expired:
        await cache.list("", ListOptions(resource_version=10, resource_version_match="Exact"))
    assert expired.value.message == "The resourceVersion for the provided list is too old."


names = st.sampled_from("abcdef")


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["set", "delete", "relist"]), names), max_size=12), st.integers(1, 3))
def test_every_past_state_can_be_listed_in_pages(steps: list[tuple[str, str]], limit: int) -> None:
    cache = make_cache(thing("a", 1))
    current = {"a": thing("a", 1)}
    states = {10: dict(current)}
    for rv, (action, name) in enumerate(steps, start=11):
        if action == "set":
            current[name] = thing(name, rv)
            cache.apply("MODIFIED", current[name])
        elif action == "relist":
            current.pop(name, None)
            cache.replace(list(current.values()), rv)
        elif current.pop(name, None) is not None:
            cache.apply("DELETED", thing(name, rv))
        else:
            cache.advance(rv)
        states[rv] = dict(current)

    async def check() -> None:
        for rv, state in states.items():
            expected = [f"{name}@{obj.rv}" for name, obj in sorted(state.items())]
            pages = await all_pages(cache, ListOptions(resource_version=rv, limit=limit))
            assert [item for page in pages for item in versions_of(page.items)] == expected
            assert {page.resource_version for page in pages} == {rv}

    asyncio.run(check())
