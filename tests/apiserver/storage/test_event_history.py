"""The limits of the event history, resuming from it, and sharing of encoded frames."""

from __future__ import annotations

from apiserver.encoding.encoded_object import CachedObject, encode
from apiserver.encoding.transforms import TableView, WholeView
from apiserver.meta.resource import Resource
from apiserver.storage.event_history import CacheEvent, EventHistory, HistoryLimits

THINGS = Resource(group="", version="v1", kind="Thing", plural="things", singular="thing", namespaced=False)
WHOLE = WholeView(THINGS)


def thing(rv: int, padding: int = 0) -> CachedObject:
    return encode(THINGS, {"metadata": {"name": "x", "resourceVersion": str(rv)}, "spec": "x" * padding})


def history_of(*events: tuple[int, float], limits: HistoryLimits, padding: int = 0) -> EventHistory:
    history = EventHistory(limits, 10)
    for rv, time in events:
        history.append(CacheEvent("MODIFIED", thing(rv, padding), None, time))
    return history


def versions(history: EventHistory, rv: int) -> list[int] | None:
    events = history.events_after(rv)
    return None if events is None else [event.rv for event in events]


def test_a_watch_can_resume_from_every_version_since_the_first_list() -> None:
    history = history_of((12, 0), (15, 0), limits=HistoryLimits())
    assert [versions(history, rv) for rv in (9, 10, 11, 12, 14, 15, 20)] == [
        None,
        [12, 15],
        [12, 15],
        [15],
        [15],
        [],
        [],
    ]


def test_a_version_was_sent_after_it_was_reached_and_before_the_next_event() -> None:
    history, never = history_of((12, 100.0), (15, 200.0), limits=HistoryLimits()), float("inf")
    history.advance(20, 300.0)
    expected = {10: (-never, 100.0), 12: (100.0, 200.0), 14: (100.0, 200.0), 15: (200.0, never), 19: (200.0, never)}
    assert {rv: history.interval_of(rv) for rv in expected} == expected
    assert history.interval_of(20) == history.interval_of(21) == (300.0, never)


def test_old_events_are_dropped_above_the_limit() -> None:
    history = history_of(*((rv, rv * 100.0) for rv in range(11, 21)), limits=HistoryLimits(events=3))
    assert (len(history), history.since, versions(history, 17), versions(history, 16)) == (3, 17, [18, 19, 20], None)


def test_recent_events_are_kept_above_the_limit() -> None:
    history = history_of(*((rv, 1.0) for rv in range(11, 21)), limits=HistoryLimits(events=3, seconds=75))
    assert (len(history), history.since) == (10, 10)


def test_recent_events_are_dropped_above_the_size_limit() -> None:
    limits = HistoryLimits(size=10_000)
    history = history_of(*((rv, 1.0) for rv in range(11, 21)), limits=limits, padding=3000)
    assert (len(history), history.since) == (2, 18)


def test_a_frame_is_encoded_once_for_all_clients_with_the_same_view() -> None:
    history = EventHistory(HistoryLimits(), 0)
    event = CacheEvent("ADDED", thing(1))
    history.append(event)
    assert event.frame(WHOLE, 0) is event.frame(WholeView(THINGS), 9)
    assert event.frame(TableView(THINGS), 0) is not event.frame(TableView(THINGS).for_next_event(), 0)


def test_frames_of_old_events_are_not_cached() -> None:
    history = EventHistory(HistoryLimits(), 0)
    event = CacheEvent("ADDED", thing(1))
    history.append(event)
    first = event.frame(WHOLE, 0)
    for rv in range(2, 200):
        history.append(CacheEvent("MODIFIED", thing(rv)))
    assert event.frame(WHOLE, 0) == first
    assert event.frame(WHOLE, 0) is not event.frame(WHOLE, 0)


def test_events_that_a_selector_changes_are_created_once() -> None:
    event = CacheEvent("MODIFIED", thing(2), thing(1))
    assert event.as_added() is event.as_added()
    assert event.as_deleted(THINGS) is event.as_deleted(THINGS)
    assert (event.as_deleted(THINGS).type, event.as_deleted(THINGS).rv) == ("DELETED", 2)
