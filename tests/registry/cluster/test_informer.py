from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from apiserver.meta import errors
from apiserver.meta.errors import StatusError
from apiserver.meta.resource import GroupResource, Key, Object
from registry.cluster.backoff import Backoff
from registry.cluster.informer import Informer, wait_until_answered
from registry.cluster.interface import NAMESPACES, ClusterUnreachable, WatchEvent
from tests.loop_iterations import count_loop_iterations
from tests.registry.cluster.informer_script import (
    INITIAL,
    RecordingHandler,
    Script,
    at_once,
    bookmark,
    event,
    obj,
    page,
    play,
)


class OrderedHandler(RecordingHandler):
    """Also appends its name to `order` for each call."""

    def __init__(self, name: str, order: list[str]) -> None:
        super().__init__()
        self._name, self._order = name, order

    async def replace(self, items: Sequence[Object], rv: int) -> None:
        self._order.append(self._name)
        await super().replace(items, rv)

    def apply(self, type: str, obj: Object, rv: int) -> None:
        self._order.append(self._name)
        super().apply(type, obj, rv)

    def bookmark(self, rv: int) -> None:
        self._order.append(self._name)
        super().bookmark(rv)


async def test_a_watch_with_initial_events_lists_and_then_watches() -> None:
    run = await play([*INITIAL, event("MODIFIED", "a", 6), event("DELETED", "b", 7), bookmark(9)])
    assert run.handled == [("replace", ["a", "b"], 5), ("MODIFIED", "a", 6), ("DELETED", "b", 7), ("bookmark", 9)]
    assert run.calls == ["watchlist", "watch 9"]
    assert run.informer.synced.is_set()


class SilentCluster(Script):
    """Ends the watch after the initial events, and sends nothing in later ones. Opens these unless it `refuses`."""

    def __init__(self, *, refuses: bool) -> None:
        super().__init__(INITIAL)
        self._refuses = refuses

    def forget_when_confirmed(self, informer: Informer) -> None:
        self._informer = informer

    async def watch(self, *args: Any, **options: Any) -> AsyncIterator[WatchEvent]:
        if not options["send_initial_events"]:
            self._informer.heard_at = None
            if self._refuses:
                self.over.set()
                raise REFUSED
        async for each in super().watch(*args, **options):
            yield each


REFUSED = StatusError(403, "Forbidden", "no")


@pytest.mark.parametrize("refuses", [False, True])
async def test_a_watch_that_is_accepted_confirms_the_objects(refuses: bool) -> None:
    """kube-apiserver sends no bookmarks of a kind of which it has seen no event since its start."""
    cluster = SilentCluster(refuses=refuses)
    informer = Informer(cluster, NAMESPACES, sleep=at_once)  # type: ignore[arg-type]
    cluster.forget_when_confirmed(informer)
    task = asyncio.create_task(informer.run())
    await asyncio.wait_for(cluster.over.wait(), 5)
    assert (informer.heard_at is None) is refuses
    task.cancel()
    await asyncio.wait([task])


@pytest.mark.parametrize("steps", [[INITIAL], [errors.BadRequest("no watch list"), page(5, obj("a", 3))]])
async def test_synced_and_answered_are_set_once_the_handlers_have_processed_the_list(steps: list[Any]) -> None:
    """An event of another kind can come while they do, and the rights of users count from its version on."""
    seen: list[tuple[bool, bool]] = []

    class FlagReader(RecordingHandler):
        async def replace(self, items: Sequence[Object], rv: int) -> None:
            await asyncio.sleep(0)
            seen.append((informer.answered.is_set(), informer.synced.is_set()))

    informer = Informer(Script(*steps), NAMESPACES)  # type: ignore[arg-type]
    informer.add_handler(FlagReader())
    task = asyncio.create_task(informer.run())
    await wait_until_answered([informer])
    assert seen == [(False, False)]
    assert informer.synced.is_set()
    task.cancel()
    await asyncio.wait([task])


@pytest.mark.parametrize("steps", [[INITIAL], [errors.BadRequest("no watch list"), page(5, obj("a", 3), obj("b", 2))]])
async def test_a_late_handler_waits_and_misses_no_event(steps: list[Any]) -> None:
    script = Script(*steps, [event("MODIFIED", "a", 6), bookmark(7)])
    informer, order = Informer(script, NAMESPACES), list[str]()  # type: ignore[arg-type]
    waiting, may_continue = asyncio.Event(), asyncio.Event()

    async def until() -> None:
        waiting.set()
        await may_continue.wait()

    first, late_handler = OrderedHandler("first", order), OrderedHandler("late", order)
    informer.add_handler(late_handler, late=True)
    informer.add_handler(first)
    informer.delay_late_handlers(until)
    task = asyncio.create_task(informer.run())
    await asyncio.wait_for(waiting.wait(), 5)
    assert (order, informer.synced.is_set(), informer.late_synced.is_set()) == (["first"], True, False)
    may_continue.set()
    await asyncio.wait_for(script.over.wait(), 5)
    task.cancel()
    await asyncio.wait([task])
    assert informer.late_synced.is_set()
    assert order == ["first", "late", "first", "late", "first", "late"]
    assert first.handled == late_handler.handled == [("replace", ["a", "b"], 5), ("MODIFIED", "a", 6), ("bookmark", 7)]


async def test_a_late_handler_sees_an_outage_and_its_end() -> None:
    late_handler = RecordingHandler()
    script = Script(INITIAL, ClusterUnreachable(), page(6), page(8, obj("c", 8)))
    backoff = Backoff(jitter=lambda: 0.0)
    informer = Informer(script, NAMESPACES, backoff=backoff, sleep=lambda seconds: asyncio.sleep(0))  # type: ignore[arg-type]
    informer.add_handler(late_handler, late=True)
    task = asyncio.create_task(informer.run())
    await asyncio.wait_for(script.over.wait(), 5)
    task.cancel()
    await asyncio.wait([task])
    assert [each for each in late_handler.handled if each[0] == "unreachable"] == [
        ("unreachable", 503),
        ("unreachable", None),
    ]


async def test_the_store_has_the_current_objects_without_managed_fields() -> None:
    run = await play([*INITIAL, event("MODIFIED", "a", 6), event("DELETED", "b", 7)])
    assert list(run.informer.store.items()) == [{"metadata": {"name": "a", "resourceVersion": "6"}}]
    assert run.informer.store.get(Key("", "b")) is None


@pytest.mark.parametrize(
    "initial",
    [
        pytest.param([INITIAL], id="watched"),
        pytest.param([errors.BadRequest("no watch list"), page(5, obj("a", 3), obj("b", 2))], id="listed"),
    ],
)
async def test_the_store_and_the_handlers_see_transformed_objects(initial: list[Any]) -> None:
    changes = [event("MODIFIED", "a", 6), event("DELETED", "b", 7)]
    run = await play(*initial, changes, transform=lambda each: {**each, "transformed": True})
    assert [each["transformed"] for each in run.informer.store.items()] == [True]
    assert [each.get("transformed") for each in run.objects] == [True] * 4


def is_kept(found: Object) -> bool:
    """Only even versions are."""
    return int(found["metadata"]["resourceVersion"]) % 2 == 0


@pytest.mark.parametrize(
    "initial",
    [
        pytest.param([INITIAL], id="watched"),
        pytest.param([errors.BadRequest("no watch list"), page(5, obj("a", 3), obj("b", 2))], id="listed"),
    ],
)
async def test_an_object_that_is_not_kept_does_not_exist_for_the_handlers(initial: list[Any]) -> None:
    changes = [
        event("MODIFIED", "a", 7),
        event("MODIFIED", "a", 8),
        event("MODIFIED", "b", 9),
        event("DELETED", "b", 11),
    ]
    run = await play(*initial, changes, keeps=is_kept)
    assert run.handled == [("replace", ["b"], 5), ("MODIFIED", "a", 8), ("DELETED", "b", 9)]
    assert [each["metadata"]["name"] for each in run.informer.store.items()] == ["a"]
    assert run.informer.resource_version == 11


async def test_without_store_objects_the_store_stays_empty() -> None:
    run = await play(INITIAL, store_objects=False)
    assert len(run.informer.store) == 0
    assert run.handled == [("replace", ["a", "b"], 5)]


@pytest.mark.parametrize("code", [400, 422, 429, 500])
async def test_without_initial_events_the_informer_lists_from_the_watch_cache(code: int) -> None:
    rejected = StatusError(code, "Invalid", "sendInitialEvents is forbidden")
    run = await play(rejected, page(5, obj("a", 3), obj("b", 2)), [event("ADDED", "c", 6)])
    assert run.calls == ["watchlist", "list 0", "watch 5", "watch 6"]
    assert run.handled == [("replace", ["a", "b"], 5), ("ADDED", "c", 6)]


async def test_initial_events_that_end_early_are_followed_by_a_list() -> None:
    run = await play([event("ADDED", "a", 3)], page(5, obj("a", 3)))
    assert run.calls[:2] == ["watchlist", "list 0"]
    assert run.handled == [("replace", ["a"], 5)]


async def test_repeated_events_are_ignored() -> None:
    run = await play([*INITIAL, event("MODIFIED", "a", 6)], [event("MODIFIED", "a", 6), event("MODIFIED", "a", 7)])
    assert run.handled[1:] == [("MODIFIED", "a", 6), ("MODIFIED", "a", 7)]


async def test_the_informer_yields_to_the_event_loop_during_a_burst_of_events(monkeypatch: pytest.MonkeyPatch) -> None:
    """kube-apiserver sends all pending events at once."""
    monkeypatch.setattr("apiserver.cooperative._SLICE_SECONDS", 0.0)
    async with count_loop_iterations() as counted:
        run = await play([*INITIAL, *(event("MODIFIED", "a", 6 + number) for number in range(50))])
    assert [rv for _, _, rv in run.handled[1:]] == list(range(6, 56))
    assert counted.count > 50


async def test_a_list_that_is_older_than_the_minimum_version_is_read_from_etcd() -> None:
    """The watch cache of a kube-apiserver beside an old etcd keeps the version of the last change of the resource."""
    refused = errors.BadRequest("no watch list")
    run = await play(refused, page(5, obj("a", 3)), page(9, obj("a", 3)), minimum_version=lambda: 7)
    assert run.calls == ["watchlist", "list 0", "list", "watch 9"]
    assert run.handled == [("replace", ["a"], 9)]
    recent = await play(refused, page(7, obj("a", 3)), minimum_version=lambda: 7)
    assert recent.calls == ["watchlist", "list 0", "watch 7"]


async def test_objects_are_listed_again_when_a_bookmark_shows_that_they_are_older_than_the_minimum_version() -> None:
    """The minimum is known only after the first list, because the cluster refused the lists that it comes from."""
    minimum = iter([0, 8, 8, 8])
    run = await play(
        [*INITIAL, bookmark(6)], page(6, obj("a", 3)), page(9, obj("a", 3)), minimum_version=lambda: next(minimum)
    )
    assert run.calls == ["watchlist", "list 6", "list", "watch 9"]
    assert [each for each in run.handled if each[0] == "replace"] == [("replace", ["a", "b"], 5), ("replace", ["a"], 9)]


async def test_answered_is_set_by_a_list_and_by_an_error() -> None:
    listed = await play(INITIAL)
    assert (listed.informer.answered.is_set(), listed.informer.first_version) == (True, 5)
    refused = errors.Forbidden(GroupResource("", "namespaces"), "", "the account may not list them")
    informer = Informer(Script(refused, refused, refused), NAMESPACES)  # type: ignore[arg-type]
    task = asyncio.create_task(informer.run())
    await wait_until_answered([informer])
    assert (informer.synced.is_set(), informer.first_version) == (False, 0)
    task.cancel()
    await asyncio.wait([task])
