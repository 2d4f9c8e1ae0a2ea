from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import Any

import pytest

from apiserver.meta import errors
from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Key, Object
from registry.cluster.backoff import Backoff
from registry.cluster.informer import Informer
from registry.cluster.interface import NAMESPACES, ClusterResource, ClusterUnreachable, WatchEvent
from registry.cluster.watch_decoder import MalformedStream
from tests.loop_iterations import count_loop_iterations

_END = {"annotations": {"k8s.io/initial-events-end": "true"}}


def obj(name: str, rv: int) -> Object:
    return {"metadata": {"name": name, "resourceVersion": str(rv), "managedFields": [{}]}}


def event(type_: str, name: str, rv: int) -> WatchEvent:
    return WatchEvent(type_, obj(name, rv))


def bookmark(rv: int, **metadata: Any) -> WatchEvent:
    return WatchEvent("BOOKMARK", {"metadata": {"resourceVersion": str(rv), **metadata}})


def page(rv: int, *items: Object) -> Object:
    return {"metadata": {"resourceVersion": str(rv)}, "items": list(items)}


class Script:
    """A ClusterClient that plays a script of lists and watches, followed by a watch without events."""

    def __init__(self, *steps: Object | StatusError | Sequence[WatchEvent | Exception]) -> None:
        self._steps = list(steps)
        self.calls: list[str] = []
        self.over = asyncio.Event()

    async def list(self, res: ClusterResource, namespace: str = "", *, limit: int, **options: Any) -> Object:
        assert limit == 1
        self.calls.append("probe")
        return self._answer()

    async def each_list_item(
        self,
        res: ClusterResource,
        namespace: str = "",
        *,
        visit: Callable[[Object], None],
        resource_version: str,
        **options: Any,
    ) -> str:
        self.calls.append(f"list {resource_version}".rstrip())
        answer = self._answer()
        for item in answer["items"]:
            visit(item)
        version: str = answer["metadata"]["resourceVersion"]
        return version

    def _answer(self) -> Object:
        step = self._steps.pop(0)
        if isinstance(step, StatusError):
            raise step
        assert isinstance(step, Mapping)
        return dict(step)

    async def watch(
        self,
        res: ClusterResource,
        namespace: str = "",
        *,
        resource_version: str,
        send_initial_events: bool,
        **options: Any,
    ) -> AsyncIterator[WatchEvent]:
        self.calls.append("watchlist" if send_initial_events else f"watch {resource_version}")
        if not self._steps:
            self.over.set()
            await asyncio.Event().wait()
        step = self._steps.pop(0)
        if isinstance(step, StatusError):
            raise step
        assert isinstance(step, Sequence)
        for each in step:
            if isinstance(each, Exception):
                raise each
            yield each


class RecordingHandler:
    def __init__(self) -> None:
        self.handled: list[Any] = []
        self.objects: list[Object] = []

    async def replace(self, items: Sequence[Object], rv: int) -> None:
        self.objects += items
        self.handled.append(("replace", [item["metadata"]["name"] for item in items], rv))

    def apply(self, type: str, obj: Object, rv: int) -> None:
        self.objects.append(obj)
        self.handled.append((type, obj["metadata"]["name"], rv))

    def bookmark(self, rv: int) -> None:
        self.handled.append(("bookmark", rv))

    def set_cluster_error(self, error: StatusError | None) -> None:
        self.handled.append(("unreachable", error.code if error else None))


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


class Run:
    def __init__(self, script: Script, informer: Informer, record: RecordingHandler, delays: list[float]) -> None:
        self.calls, self.informer, self.delays = script.calls, informer, delays
        self.handled, self.objects = record.handled, record.objects


def whole(obj: Object) -> Object:
    return obj


async def play(*steps: Any, store_objects: bool = True, transform: Callable[[Object], Object] = whole) -> Run:
    """Runs an informer through the script without delays."""
    script, record, delays = Script(*steps), RecordingHandler(), list[float]()

    async def sleep(seconds: float) -> None:
        delays.append(seconds)

    backoff = Backoff(jitter=lambda: 0.0)
    informer = Informer(
        script,  # type: ignore[arg-type]
        NAMESPACES,
        store_objects=store_objects,
        transform=transform,
        backoff=backoff,
        sleep=sleep,
    )
    informer.add_handler(record)
    task = asyncio.create_task(informer.run())
    await asyncio.wait_for(script.over.wait(), 5)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    return Run(script, informer, record, delays)


INITIAL = [event("ADDED", "a", 3), event("ADDED", "b", 2), bookmark(5, **_END)]


async def test_a_watch_with_initial_events_lists_and_then_watches() -> None:
    run = await play([*INITIAL, event("MODIFIED", "a", 6), event("DELETED", "b", 7), bookmark(9)])
    assert run.handled == [("replace", ["a", "b"], 5), ("MODIFIED", "a", 6), ("DELETED", "b", 7), ("bookmark", 9)]
    assert run.calls == ["watchlist", "watch 9"]
    assert run.informer.synced.is_set()


@pytest.mark.parametrize("steps", [[INITIAL], [errors.BadRequest("no watch list"), page(5, obj("a", 3))]])
async def test_listed_is_set_before_the_handlers_have_finished(steps: list[Any]) -> None:
    seen: list[tuple[bool, bool]] = []

    class FlagReader(RecordingHandler):
        async def replace(self, items: Sequence[Object], rv: int) -> None:
            seen.append((informer.listed.is_set(), informer.synced.is_set()))

    script = Script(*steps)
    informer = Informer(script, NAMESPACES)  # type: ignore[arg-type]
    informer.add_handler(FlagReader())
    before = informer.listed.is_set()
    task = asyncio.create_task(informer.run())
    await asyncio.wait_for(script.over.wait(), 5)
    task.cancel()
    await asyncio.wait([task])
    assert (before, seen) == (False, [(True, False)])
    assert informer.synced.is_set()


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


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(errors.Expired("too old resource version"), id="too old"),
        pytest.param(errors.TooLargeResourceVersion(9, 4), id="larger than the latest version"),
    ],
)
async def test_an_unavailable_version_is_followed_by_a_new_list(error: StatusError) -> None:
    run = await play(INITIAL, [error], [event("ADDED", "c", 20), bookmark(21, **_END)])
    assert run.calls == ["watchlist", "watch 5", "watchlist", "watch 21"]
    assert run.handled == [("replace", ["a", "b"], 5), ("replace", ["c"], 21)]


async def test_a_new_list_is_not_older_than_the_last_event_unless_that_version_is_unavailable() -> None:
    expired, future = errors.Expired("too old resource version"), errors.TooLargeResourceVersion(6, 4)
    rejected = StatusError(422, "Invalid", "")
    run = await play(rejected, page(5), [event("ADDED", "a", 6), expired], future, page(4), [event("ADDED", "b", 5)])
    assert run.calls == ["watchlist", "list 0", "watch 5", "list 6", "list", "watch 4", "watch 5"]
    assert run.handled[-2:] == [("replace", [], 4), ("ADDED", "b", 5)]


async def test_expired_watches_are_followed_by_lists() -> None:
    expired = errors.Expired("too old resource version")
    run = await play(expired, page(5, obj("a", 1)), expired, page(7, obj("a", 1)), [event("MODIFIED", "a", 8)])
    assert run.calls == ["watchlist", "list 0", "watch 5", "list 5", "watch 7", "watch 8"]
    assert run.handled == [("replace", ["a"], 5), ("replace", ["a"], 7), ("MODIFIED", "a", 8)]


async def test_handlers_see_an_outage_and_its_end_and_no_event_is_lost() -> None:
    outage = ClusterUnreachable()
    run = await play(INITIAL, [outage], outage, outage, page(9), [event("MODIFIED", "a", 8)])
    assert run.calls == ["watchlist", "watch 5", "probe", "probe", "probe", "watch 5", "watch 8"]
    assert run.handled[1:] == [
        ("unreachable", 503),
        ("unreachable", 503),
        ("unreachable", 503),
        ("unreachable", None),
        ("MODIFIED", "a", 8),
    ]


async def test_the_delay_grows_during_an_outage() -> None:
    outage = [ClusterUnreachable(retry_after=0) for _ in range(8)]
    run = await play(*outage, page(1), INITIAL)
    assert run.delays[:8] == [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0]


async def test_the_delay_is_reset_after_an_outage() -> None:
    outage = [ClusterUnreachable(retry_after=0) for _ in range(6)]
    run = await play(INITIAL, *outage, page(1), [errors.Expired("too old")], [bookmark(30, **_END)])
    assert run.delays[6:8] == [30.0, 0.8]
    assert run.handled[-1] == ("replace", [], 30)


async def test_retry_after_is_honoured_up_to_a_limit() -> None:
    for seconds, expected in ((7, 7), (10_000, 30)):
        later = errors.TooManyRequests("later", retry_after=seconds)
        run = await play(later, later, page(1), page(1, obj("a", 1)))
        assert run.delays[0] == expected


@pytest.mark.parametrize(
    "invalid",
    [
        pytest.param(MalformedStream("no event"), id="an undecodable event"),
        pytest.param(WatchEvent("MODIFIED", {"metadata": {"name": "a"}}), id="an object without a version"),
        pytest.param(
            WatchEvent("MODIFIED", {"metadata": {"name": "a", "resourceVersion": "x"}}),
            id="a version that is not a number",
        ),
        pytest.param(WatchEvent("MODIFIED", {}), id="no metadata"),
    ],
)
async def test_an_invalid_event_is_followed_by_a_new_list(invalid: WatchEvent | Exception) -> None:
    answers: list[Any] = [page(1)] if isinstance(invalid, Exception) else []
    run = await play([*INITIAL, invalid], *answers, [event("ADDED", "c", 8), bookmark(8, **_END)])
    assert ("replace", ["c"], 8) in run.handled


async def test_an_invalid_list_is_repeated() -> None:
    rejected = StatusError(422, "Invalid", "")
    run = await play(rejected, {"metadata": {}}, page(5, {"metadata": {}}), page(6, obj("a", 3)))
    assert run.calls == ["watchlist", "list 0", "list", "list", "watch 6"]
    assert run.handled == [("replace", ["a"], 6)]


async def test_a_handler_that_fails_does_not_end_the_informer() -> None:
    script = Script(INITIAL, INITIAL)

    class Failing(RecordingHandler):
        async def replace(self, items: Sequence[Object], rv: int) -> None:
            await super().replace(items, rv)
            if len(self.handled) == 1:
                raise RuntimeError("a bug")

    async def sleep(seconds: float) -> None:
        return None

    handler = Failing()
    informer = Informer(script, NAMESPACES, sleep=sleep)  # type: ignore[arg-type]
    informer.add_handler(handler)
    task = asyncio.create_task(informer.run())
    await asyncio.wait_for(script.over.wait(), 5)
    task.cancel()
    await asyncio.wait([task])
    assert len(handler.handled) == 2


async def test_retry_now_ends_the_delay() -> None:
    script = Script(ClusterUnreachable(), page(1), INITIAL)
    waiting = asyncio.Event()

    async def sleep(seconds: float) -> None:
        waiting.set()
        await asyncio.Event().wait()

    informer = Informer(script, NAMESPACES, sleep=sleep)  # type: ignore[arg-type]
    task = asyncio.create_task(informer.run())
    await asyncio.wait_for(waiting.wait(), 5)
    informer.retry_now()
    await asyncio.wait_for(informer.synced.wait(), 5)
    task.cancel()
    await asyncio.wait([task])


def _jitters() -> Iterator[float]:
    yield from (0.0, 0.5, 1.0, 1.0, 1.0, 1.0, 1.0)


def test_backoff_doubles_to_its_limit_with_jitter_and_restarts_after_a_reset() -> None:
    jitters = _jitters()
    backoff = Backoff(first=1.0, longest=5.0, jitter=lambda: next(jitters))
    assert [backoff.next() for _ in range(4)] == [1.0, 3.0, 5.0, 5.0]
    backoff.reset()
    assert backoff.next() == 2.0


def table(rv: int) -> Object:
    """A response in the Table format."""
    row = {"cells": ["a"], "object": {"kind": "PartialObjectMetadata", "metadata": {"name": "a"}}}
    return {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {"resourceVersion": str(rv)}, "rows": [row]}


async def test_tables_are_not_processed_as_objects() -> None:
    """A reflector that accepted them would store rows instead of objects, or sync with nothing (WIRE-J21)."""
    whole_state = [event("ADDED", "a", 3), bookmark(6, **_END)]
    run = await play([WatchEvent("ADDED", table(4)), bookmark(5, **_END)], whole_state)
    assert run.handled == [("replace", ["a"], 6)]
    run = await play([bookmark(5, **_END), WatchEvent("ADDED", table(6))], whole_state)
    assert run.handled == [("replace", [], 5), ("replace", ["a"], 6)]


async def test_the_informer_yields_to_the_event_loop_during_a_burst_of_events(monkeypatch: pytest.MonkeyPatch) -> None:
    """kube-apiserver sends all pending events at once."""
    monkeypatch.setattr("apiserver.cooperative._SLICE_SECONDS", 0.0)
    async with count_loop_iterations() as counted:
        run = await play([*INITIAL, *(event("MODIFIED", "a", 6 + number) for number in range(50))])
    assert [rv for _, _, rv in run.handled[1:]] == list(range(6, 56))
    assert counted.count > 50
