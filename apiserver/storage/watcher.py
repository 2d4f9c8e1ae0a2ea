"""One client's watch: what it is still to be told, bounded, in order, with bookmarks and an end."""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from apiserver.encoding.encoded_object import CachedObject
from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Resource
from apiserver.storage.event_history import Event, VisibilityEvent
from apiserver.storage.selection_predicate import Selection
from apiserver.storage.visibility import Visibility, is_visible, namespace_of

INITIAL_EVENTS_END = "k8s.io/initial-events-end"

_BATCH = 256
_IDLE_SECONDS = 15.0
_LAST_BOOKMARK_SECONDS = 2.0
_DEFAULT_SECONDS = 1800.0
_JITTER = 0.25


@dataclass(frozen=True, slots=True)
class Bookmark:
    """Everything up to `rv` has been sent (WIRE-F16)."""

    rv: int
    annotations: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Failure:
    """Why the watch cannot go on; the last thing it sends (WIRE-F14)."""

    error: StatusError


Item = Event | Bookmark | Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchStart:
    """How a watch begins: with ADDED of `initial`, a bookmark that marks their end if `mark_end`, then what of
    `missed` is news; events up to `after` are none of its business. `disclosed` is what the reader came to see, or no
    longer sees, while there was no watch."""

    initial: Sequence[CachedObject] = ()
    mark_end: bool = False
    missed: Sequence[Event] = ()
    after: int = 0
    visibility_events: Sequence[VisibilityEvent] = ()


class CacheWatcher(AsyncIterator[Sequence[Item]]):
    """Iterates over batches of what is to be sent.

    An empty batch comes at least every 15 seconds, so that the reader can look whether its client is still there.
    The iteration ends at the deadline, after `end`, after a Failure, and when the reader falls so far behind that
    the history no longer holds what comes next (WIRE-F20).
    """

    def __init__(
        self,
        *,
        resource: Resource,
        selection: Selection,
        start: WatchStart,
        position: Callable[[], int],
        closed: Callable[[CacheWatcher], None],
        bookmark_interval: float | None,
        timeout_seconds: float | None,
        visibility: Visibility | None = None,
    ) -> None:
        """`position` tells how far the cache is, `closed` is called once when the watch is over; without a
        `bookmark_interval` there are no bookmarks. Of what is out of `visibility` nothing is told."""
        self._resource = resource
        self.selection = selection
        self._visibility = visibility
        self._initial = deque(start.initial)
        self._mark_end = start.mark_end
        self._after = start.after
        self._pending: deque[Item] = deque()
        self._position = position
        self._closed = closed
        self._ended = False
        self._wake: asyncio.Future[None] | None = None
        self._due = 0.0
        self._alarm: asyncio.Handle | None = None
        # when it rings: uvloop's handles do not know
        self._rings = 0.0
        self._on_cut: Callable[[], None] | None = None
        self._loop = asyncio.get_running_loop()
        self._time = self._loop.time
        # WIRE-F4: watches that began together shall not all end together
        seconds = timeout_seconds or random.uniform(_DEFAULT_SECONDS, 2 * _DEFAULT_SECONDS)
        self.deadline = self._time() + seconds
        self._bookmark_interval = bookmark_interval
        self._next_bookmark = self._schedule()
        for event in start.missed:
            self.add(event)
        self.add_visibility_events(start.visibility_events)

    def add(self, event: Event) -> None:
        """Take a change into account: called by the cache, in resourceVersion order."""
        if event.rv <= self._after or self._ended:
            return
        if self._visibility is not None and not is_visible(
            self._visibility.namespaces, namespace_of(self._resource, event.object.key)
        ):
            return
        shown = self.selection.shows(event, self._resource)
        if shown is not None:
            self._pending.append(shown)
            self._notify()

    def add_visibility_events(self, events: Sequence[VisibilityEvent]) -> None:
        """Take into account that the reader sees more, or less. A bookmark follows, because these events have
        versions of their own and say nothing of how far the watch is."""
        if not events or self._ended:
            return
        self._pending.extend(events)
        if self._bookmark_interval is not None:
            self._pending.append(Bookmark(self._position()))
        self._notify()

    def cut_if_behind(self, since: int) -> None:
        """End the watch if what it is to send next is older than all that the history holds: its reader is stuck,
        and what it waits for must not be kept for it alone."""
        first = self._pending[0] if self._pending else None
        if isinstance(first, Event) and _sent_at(first) <= since and not self._ended:
            self._pending.clear()
            self.end()
            if self._on_cut is not None:
                self._on_cut()

    def on_cut(self, callback: Callable[[], None]) -> None:
        """Have `callback` called when the watch is cut, for a reader that waits for its client to take more."""
        self._on_cut = callback

    def fail(self, error: StatusError) -> None:
        """Send `error` and end."""
        self._initial.clear()
        self._pending.clear()
        self._pending.append(Failure(error))
        self.end()

    def end(self) -> None:
        """End cleanly, after what is already to be sent."""
        if not self._ended:
            self._ended = True
            if self._alarm is not None:
                self._alarm.cancel()
            self._closed(self)
            self._notify()

    async def aclose(self) -> None:
        self._initial.clear()
        self._pending.clear()
        self.end()

    async def __anext__(self) -> Sequence[Item]:
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

    def _take(self) -> list[Item]:
        if self._initial or self._mark_end:
            return self._take_initial()
        pending = self._pending
        return [pending.popleft() for _ in range(min(len(pending), _BATCH))]

    def _take_initial(self) -> list[Item]:
        initial = self._initial
        batch: list[Item] = [Event("ADDED", initial.popleft()) for _ in range(min(len(initial), _BATCH))]
        if self._mark_end and not initial:
            self._mark_end = False
            batch.append(Bookmark(self._after, {INITIAL_EVENTS_END: "true"}))
        return batch

    def _bookmark(self) -> list[Item]:
        self._next_bookmark = self._schedule()
        rv = self._position()
        # a watch that starts in the future has been sent nothing up to its start yet
        return [Bookmark(rv)] if rv >= self._after else []

    def _schedule(self) -> float:
        """When the next bookmark is due: after the interval, and again shortly before the deadline."""
        if self._bookmark_interval is None:
            return float("inf")
        now = self._time()
        due = now + self._bookmark_interval * (1 + random.random() * _JITTER)
        last = self.deadline - _LAST_BOOKMARK_SECONDS
        return min(due, last) if last > now else due

    async def _wait(self) -> None:
        """Until there is something to tell, or it is time to look around."""
        self._due = min(self._time() + _IDLE_SECONDS, self.deadline, self._next_bookmark)
        # an alarm of its own for every wait would be a sixth of what telling a change costs
        if self._alarm is None or self._rings > self._due:
            self._set_alarm()
        self._wake = self._loop.create_future()
        try:
            await self._wake
        finally:
            self._wake = None

    def _set_alarm(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        self._rings = self._due
        self._alarm = self._loop.call_at(self._rings, self._ring)

    def _ring(self) -> None:
        self._alarm = None
        if self._wake is not None and self._time() < self._due:
            # it was set for a wait that ended before
            self._set_alarm()
        else:
            self._notify()

    def _notify(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)


def _sent_at(event: Event) -> int:
    return event.at if isinstance(event, VisibilityEvent) else event.rv
