"""A bounded history of changes in resourceVersion order: watches resume from it, and paged lists rewind with it."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Literal

from apiserver.encoding.encoded_object import CachedObject, at_version
from apiserver.encoding.transforms import View
from apiserver.meta.resource import Key, Resource

EventType = Literal["ADDED", "MODIFIED", "DELETED"]

_by_rv = attrgetter("rv")
_REACHED = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryLimits:
    """An event is dropped if there are more than `events` and it is older than `seconds`, or if the objects of all
    events exceed `size` bytes.

    10,000 events cover one change of every object at the scale that the server is designed for. 75 seconds are more
    than the minute between two bookmarks, so that a client that reads bookmarks can always resume.
    """

    events: int = 10_000
    seconds: float = 75.0
    size: int = 64 * 1024 * 1024


class CacheEvent:
    """A change of one object. `previous` is the state before, None if the object did not exist. If the type is DELETED,
    `object` has the last content and the resourceVersion of the deletion. `time` is monotonic, in seconds."""

    __slots__ = ("_added", "_deleted", "_frames", "object", "previous", "time", "type")

    def __init__(
        self, type_: EventType, obj: CachedObject, previous: CachedObject | None = None, time: float = 0.0
    ) -> None:
        self.type: EventType = type_
        self.object = obj
        self.previous = previous
        self.time = time
        self._frames: dict[str, bytes] | None = None
        self._added: CacheEvent | None = None
        self._deleted: CacheEvent | None = None

    @property
    def rv(self) -> int:
        return self.object.rv

    def as_added(self) -> CacheEvent:
        """The event for a client whose selector did not match the previous state (WIRE-F5)."""
        if self._added is None:
            self._added = CacheEvent("ADDED", self.object)
            self._added._frames = {} if self._frames is not None else None
        return self._added

    def as_deleted(self, resource: Resource) -> CacheEvent:
        """The event for a client whose selector no longer matches: DELETED, with the content that the client received
        last (WIRE-F5)."""
        if self._deleted is None:
            last_sent = self.previous or self.object
            self._deleted = CacheEvent("DELETED", at_version(resource, last_sent, self.rv))
            self._deleted._frames = {} if self._frames is not None else None
        return self._deleted

    def frame(self, view: View, now: float) -> bytes:
        """The event encoded for a watch (WIRE-F2). While the event is recent, all clients share the bytes."""
        if self._frames is None:
            return self._encode(view, now)
        found = self._frames.get(view.form)
        if found is None:
            found = self._frames[view.form] = self._encode(view, now)
        return found

    def _encode(self, view: View, now: float) -> bytes:
        return b"".join((b'{"type":"', self.type.encode(), b'","object":', view.single(self.object, now), b"}\n"))

    @property
    def shares_frames(self) -> bool:
        """True if all clients share the bytes of `frame`."""
        return self._frames is not None

    def share_frames(self) -> None:
        self._frames = {}

    def drop_frames(self) -> None:
        """Stop caching frames: most clients have received the event, and others encode it again."""
        for event in (self, self._added, self._deleted):
            if event is not None:
                event._frames = None


class VisibilityEvent(CacheEvent):
    """An event for a single watch whose visibility changed. `cache_rv` is the cache's resourceVersion at that time."""

    __slots__ = ("cache_rv",)

    def __init__(self, type_: EventType, obj: CachedObject, cache_rv: int) -> None:
        super().__init__(type_, obj)
        self.cache_rv = cache_rv


def states_before(events: Sequence[CacheEvent]) -> dict[Key, CachedObject | None]:
    """The objects before all `events`, of those that the events change; None for one that did not exist."""
    return {event.object.key: event.previous for event in reversed(events)}


class EventHistory:
    """Events in resourceVersion order. `since` is the oldest version from which a watch can resume."""

    _RECENT = 128
    _RECENT_SIZE = 8 * 1024 * 1024
    _EVENT_SIZE = 1024
    """Approximate bytes of an event besides its object."""

    def __init__(self, limits: HistoryLimits, since: int) -> None:
        self._limits = limits
        self._events: list[CacheEvent] = []
        self._dropped = 0
        self._size = 0
        self._recent: deque[CacheEvent] = deque()
        self._recent_size = 0
        self._reached: deque[tuple[int, float]] = deque(maxlen=_REACHED)
        self.since = since

    def __len__(self) -> int:
        return len(self._events) - self._dropped

    def append(self, event: CacheEvent) -> None:
        """Add an event that is later than all others; its `time` is now."""
        self._events.append(event)
        self._size += self._cost(event)
        self._cache_frames(event)
        self._trim(event.time)

    def advance(self, rv: int, time: float) -> None:
        """Record that `rv`, which is later than all events, was reached without an event."""
        self._reached.append((rv, time))

    def events_after(self, rv: int) -> Sequence[CacheEvent] | None:
        """The events later than `rv`, None if some of them have been dropped."""
        if rv < self.since:
            return None
        return self._events[max(self._dropped, bisect_right(self._events, rv, key=_by_rv)) :]

    def interval_of(self, rv: int) -> tuple[float, float]:
        """The time from when `rv` was reached, as far as it is known, to the next event; infinite on a side without an
        event."""
        position = bisect_right(self._events, rv, key=_by_rv)
        start = self._events[position - 1].time if position > self._dropped else float("-inf")
        start = max([start, *(time for reached, time in self._reached if reached <= rv)])
        return start, self._events[position].time if position < len(self._events) else float("inf")

    def _cache_frames(self, event: CacheEvent) -> None:
        event.share_frames()
        self._recent.append(event)
        self._recent_size += self._cost(event)
        while len(self._recent) > self._RECENT or (len(self._recent) > 1 and self._recent_size > self._RECENT_SIZE):
            old = self._recent.popleft()
            self._recent_size -= self._cost(old)
            old.drop_frames()

    def _trim(self, now: float) -> None:
        while self._dropped < len(self._events) and self._exceeds_limits(self._events[self._dropped], now):
            oldest = self._events[self._dropped]
            self._size -= self._cost(oldest)
            self.since = oldest.rv
            self._dropped += 1
        # deleting from the front of a list moves the rest, so it is done only when half of the list is dropped
        if self._dropped > len(self._events) // 2:
            del self._events[: self._dropped]
            self._dropped = 0

    def _exceeds_limits(self, oldest: CacheEvent, now: float) -> bool:
        if self._size > self._limits.size:
            return True
        return len(self) > self._limits.events and oldest.time < now - self._limits.seconds

    def _cost(self, event: CacheEvent) -> int:
        return len(event.object.json) + self._EVENT_SIZE
