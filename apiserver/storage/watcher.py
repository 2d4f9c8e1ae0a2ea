"""One client's watch: a bounded queue of events in order, with bookmarks, a deadline and an end."""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from apiserver.encoding.encoded_object import CachedObject
from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Resource
from apiserver.storage.event_history import CacheEvent, VisibilityEvent
from apiserver.storage.fan_out import FanOut
from apiserver.storage.selection_predicate import SelectionPredicate
from apiserver.storage.visibility import Visibility

INITIAL_EVENTS_END = "k8s.io/initial-events-end"

_BATCH = 256
# of the objects in a batch, unless it is a single one: a client that does not read must not occupy memory for more
_BATCH_BYTES = 64 * 1024
_IDLE_SECONDS = 15.0
_LAST_BOOKMARK_SECONDS = 2.0
_DEFAULT_SECONDS = 1800.0
_JITTER = 0.25


@dataclass(frozen=True, slots=True)
class Bookmark:
    """All events up to `rv` have been sent (WIRE-F16)."""

    rv: int
    annotations: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Failure:
    """The error that ends a watch; nothing is sent after it (WIRE-F14)."""

    error: StatusError


WatchItem = CacheEvent | Bookmark | Failure
TrySend = Callable[[Sequence[WatchItem]], bool]
"""Sends the items at once. Returns False, and sends nothing, if it would have to wait."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchStart:
    """The start of a watch: ADDED events of `initial`, a bookmark after them if `send_initial_events_end`, the events
    of `missed` that are later than `after`, then `visibility_events`: the changes of the user's visibility since the
    client's last watch. Later events are sent only if they are later than `after`, too."""

    initial: Sequence[CachedObject] = ()
    send_initial_events_end: bool = False
    missed: Sequence[CacheEvent] = ()
    after: int = 0
    visibility_events: Sequence[VisibilityEvent] = ()


class CacheWatcher(AsyncIterator[Sequence[WatchItem]]):
    """Iterates over batches of events to send.

    It yields an empty batch at least every 15 seconds, so that the reader can check whether its client is connected.
    The iteration ends at the deadline, after `end`, after a Failure, and when the reader falls so far behind that the
    history has dropped its next event (WIRE-F20).

    While the reader waits, and after it has called `send_with`, changes are sent without it: to wake a task for each of
    a thousand watches takes longer than to write the event.
    """

    def __init__(
        self,
        *,
        resource: Resource,
        selection: SelectionPredicate,
        start: WatchStart,
        current_rv: Callable[[], int],
        fan_out: FanOut,
        on_close: Callable[[CacheWatcher], None],
        bookmark_interval: float | None,
        timeout_seconds: float | None,
        visibility: Visibility | None = None,
    ) -> None:
        """`current_rv` returns the cache's resourceVersion. `on_close` is called once, when the watch ends. Without a
        `bookmark_interval` there are no bookmarks. Only objects that `visibility` allows are sent."""
        self._resource = resource
        self.selection = selection
        self._visibility = visibility
        self._initial = deque(start.initial)
        self._send_initial_events_end = start.send_initial_events_end
        self._after = start.after
        self._pending: deque[WatchItem] = deque()
        self._current_rv = current_rv
        self._fan_out = fan_out
        self._try_send: TrySend | None = None
        self._is_due = False
        self._on_close = on_close
        self._ended = False
        self._wake: asyncio.Future[None] | None = None
        self._wait_until = 0.0
        self._timer: asyncio.Handle | None = None
        # uvloop's timer handles do not expose their time
        self._timer_due = 0.0
        self._on_terminate: Callable[[], None] | None = None
        self._loop = asyncio.get_running_loop()
        self._time = self._loop.time
        # watches that started simultaneously must not all end simultaneously (WIRE-F4)
        seconds = timeout_seconds or random.uniform(_DEFAULT_SECONDS, 2 * _DEFAULT_SECONDS)
        self.deadline = self._time() + seconds
        self._bookmark_interval = bookmark_interval
        self._next_bookmark = self._schedule()
        for event in start.missed:
            self.add(event)
        self.add_visibility_events(start.visibility_events)

    def add(self, event: CacheEvent) -> None:
        """Queue a change if the watch selects it. Called by the cache, in resourceVersion order."""
        if event.rv <= self._after or self._ended:
            return
        if self._visibility is not None and not self._visibility.visible.includes(self._resource, event.object.key):
            return
        selected = self.selection.event_for_client(event, self._resource)
        if selected is not None:
            self._pending.append(selected)
            if self._try_send is None:
                self._notify()
            elif self._wake is not None and not self._is_due:
                self._is_due = True
                self._fan_out.schedule(self)

    def send_with(self, try_send: TrySend) -> None:
        """Send with this function while the reader waits."""
        self._try_send = try_send

    def push(self) -> None:
        """Send what is pending, by the reader if it cannot be sent at once."""
        self._is_due = False
        if self._wake is None or self._wake.done() or not self._pending:
            return
        batch = self._take()
        if not self._is_sent(batch):
            self._pending.extendleft(reversed(batch))
            self._notify()
        elif self._pending:
            self._is_due = True
            self._fan_out.schedule(self)

    def _is_sent(self, batch: Sequence[WatchItem]) -> bool:
        try:
            return self._try_send is not None and self._try_send(batch)
        except Exception:
            # the reader sends it then, and an error of this watch is none of others
            return False

    def add_visibility_events(self, events: Sequence[VisibilityEvent]) -> None:
        """Queue the events of a changed visibility, and a bookmark: a watch cannot resume from the resourceVersions of
        these events."""
        if not events or self._ended:
            return
        self._pending.extend(events)
        if self._bookmark_interval is not None:
            self._pending.append(Bookmark(self._current_rv()))
        self._notify()

    def terminate_if_behind(self, since: int) -> None:
        """End the watch if the history has dropped its next event: the client does not read, and its pending events
        must not occupy memory only for this watch."""
        first = _first_event(self._pending)
        if first is not None and _cache_rv_of(first) <= since and not self._ended:
            self._pending.clear()
            self.end()
            if self._on_terminate is not None:
                self._on_terminate()

    def on_terminate(self, callback: Callable[[], None]) -> None:
        """Call `callback` when `terminate_if_behind` ends the watch: the reader may be blocked writing to its
        client."""
        self._on_terminate = callback

    def fail(self, error: StatusError) -> None:
        """Drop pending events, send `error` and end."""
        self._initial.clear()
        self._pending.clear()
        self._pending.append(Failure(error))
        self.end()

    def end(self) -> None:
        """End cleanly, after the pending events."""
        if not self._ended:
            self._ended = True
            if self._timer is not None:
                self._timer.cancel()
            self._on_close(self)
            self._notify()

    async def aclose(self) -> None:
        self._initial.clear()
        self._pending.clear()
        self.end()

    async def __anext__(self) -> Sequence[WatchItem]:
        if self._time() >= self.deadline:
            await self.aclose()
        batch = self._take()
        if batch:
            return batch
        if self._ended:
            raise StopAsyncIteration
        await self._wait()
        batch = self._take()
        if not batch and self._ended:
            raise StopAsyncIteration
        if not batch and self._time() >= self._next_bookmark:
            return self._bookmark()
        return batch

    def _take(self) -> list[WatchItem]:
        if self._initial or self._send_initial_events_end:
            return self._take_initial()
        pending, batch, size = self._pending, list[WatchItem](), 0
        while pending and len(batch) < _BATCH:
            size += _size_of(pending[0])
            if batch and size > _BATCH_BYTES:
                break
            batch.append(pending.popleft())
        return batch

    def _take_initial(self) -> list[WatchItem]:
        initial, batch, size = self._initial, list[WatchItem](), 0
        while initial and len(batch) < _BATCH:
            size += len(initial[0].json)
            if batch and size > _BATCH_BYTES:
                break
            batch.append(CacheEvent("ADDED", initial.popleft()))
        if self._send_initial_events_end and not initial:
            self._send_initial_events_end = False
            batch.append(Bookmark(self._after, {INITIAL_EVENTS_END: "true"}))
        return batch

    def _bookmark(self) -> list[WatchItem]:
        self._next_bookmark = self._schedule()
        rv = self._current_rv()
        # a watch that starts in the future must not get a bookmark before its start
        return [Bookmark(rv)] if rv >= self._after else []

    def _schedule(self) -> float:
        """The time of the next bookmark: after the interval, and once more shortly before the deadline."""
        if self._bookmark_interval is None:
            return float("inf")
        now = self._time()
        due = now + self._bookmark_interval * (1 + random.random() * _JITTER)
        last = self.deadline - _LAST_BOOKMARK_SECONDS
        return min(due, last) if last > now else due

    async def _wait(self) -> None:
        """Wait until there is an event to send, or for the idle interval, the deadline or the next bookmark."""
        self._wait_until = min(self._time() + _IDLE_SECONDS, self.deadline, self._next_bookmark)
        # a new timer for every wait would be a sixth of the cost of sending an event
        if self._timer is None or self._timer_due > self._wait_until:
            self._set_timer()
        self._wake = self._loop.create_future()
        try:
            await self._wake
        finally:
            self._wake = None

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_due = self._wait_until
        self._timer = self._loop.call_at(self._timer_due, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        if self._wake is not None and self._time() < self._wait_until:
            # the timer was set for an earlier wait
            self._set_timer()
        else:
            self._notify()

    def _notify(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)


def _first_event(items: Iterable[WatchItem]) -> CacheEvent | None:
    for item in items:
        if isinstance(item, CacheEvent):
            return item
    return None


def _cache_rv_of(event: CacheEvent) -> int:
    return event.cache_rv if isinstance(event, VisibilityEvent) else event.rv


def _size_of(item: WatchItem) -> int:
    return len(item.object.json) if isinstance(item, CacheEvent) else 0
