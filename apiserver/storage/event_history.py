"""What changed, in resourceVersion order, as far back as a bound allows; watches resume from it, pages rewind by it."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Literal

from apiserver.encoding.encoded_object import CachedObject, at_version
from apiserver.encoding.transforms import View
from apiserver.meta.resource import Resource

EventType = Literal["ADDED", "MODIFIED", "DELETED"]

_by_rv = attrgetter("rv")


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryLimits:
    """An event is dropped when more than `events` are held and it is older than `seconds`, or when the states that
    the events hold exceed `size` bytes.

    10,000 events are a change of every object at the size that the server is built for; 75 seconds outlast the
    minute between bookmarks, so a client that sees them can always resume.
    """

    events: int = 10_000
    seconds: float = 75.0
    size: int = 64 * 1024 * 1024


class Event:
    """A change of one object. `previous` is its state before, None if it was not there; on DELETED `object` has the
    last content and the deletion's resourceVersion."""

    __slots__ = ("_entered", "_frames", "_left", "object", "previous", "time", "type")

    def __init__(
        self, type_: EventType, obj: CachedObject, previous: CachedObject | None = None, time: float = 0.0
    ) -> None:
        self.type: EventType = type_
        self.object = obj
        self.previous = previous
        self.time = time
        self._frames: dict[str, bytes] | None = None
        self._entered: Event | None = None
        self._left: Event | None = None

    @property
    def rv(self) -> int:
        return self.object.rv

    def as_added(self) -> Event:
        """The same change to a client whose selector the object did not match before (WIRE-F5)."""
        if self._entered is None:
            self._entered = Event("ADDED", self.object)
            self._entered._frames = {} if self._frames is not None else None
        return self._entered

    def as_deleted(self, resource: Resource) -> Event:
        """The same change to a client whose selector the object no longer matches: gone, with the content that the
        client knew (WIRE-F5)."""
        if self._left is None:
            known = self.previous or self.object
            self._left = Event("DELETED", at_version(resource, known, self.rv))
            self._left._frames = {} if self._frames is not None else None
        return self._left

    def frame(self, view: View, now: float) -> bytes:
        """The event as a watch sends it (WIRE-F2); shared between clients while it is news."""
        if self._frames is None:
            return self._encode(view, now)
        found = self._frames.get(view.form)
        if found is None:
            found = self._frames[view.form] = self._encode(view, now)
        return found

    def _encode(self, view: View, now: float) -> bytes:
        return b"".join((b'{"type":"', self.type.encode(), b'","object":', view.single(self.object, now), b"}\n"))

    def share_frames(self) -> None:
        self._frames = {}

    def drop_frames(self) -> None:
        """Frames are worth keeping while many clients are about to want them; later they are made anew."""
        for event in (self, self._entered, self._left):
            if event is not None:
                event._frames = None


class VisibilityEvent(Event):
    """An event for one watch alone, since what it may see has changed; `at` is how far the cache was."""

    __slots__ = ("cache_rv",)

    def __init__(self, type_: EventType, obj: CachedObject, cache_rv: int) -> None:
        super().__init__(type_, obj)
        self.cache_rv = cache_rv


class EventHistory:
    """Events in resourceVersion order. `since` is the least version from which everything later is held."""

    _RECENT = 128
    _RECENT_SIZE = 8 * 1024 * 1024
    _EVENT_SIZE = 1024
    """What an event costs besides the bytes of its object, about."""

    def __init__(self, limits: HistoryLimits, since: int) -> None:
        self._limits = limits
        self._events: list[Event] = []
        self._dropped = 0
        self._size = 0
        self._recent: deque[Event] = deque()
        self._recent_size = 0
        self.since = since

    def __len__(self) -> int:
        return len(self._events) - self._dropped

    def append(self, event: Event) -> None:
        """`event` is later than all that are held; its `time` is now."""
        self._events.append(event)
        self._size += self._cost(event)
        self._cache_frames(event)
        self._trim(event.time)

    def events_after(self, rv: int) -> Sequence[Event] | None:
        """The events later than `rv`, None if some of them are no longer held."""
        if rv < self.since:
            return None
        return self._events[max(self._dropped, bisect_right(self._events, rv, key=_by_rv)) :]

    def interval_of(self, rv: int) -> tuple[float, float]:
        """When `rv` was the version of what is there: from the last event up to it until the next one; infinite where
        none is held."""
        position = bisect_right(self._events, rv, key=_by_rv)
        start = self._events[position - 1].time if position > self._dropped else float("-inf")
        return start, self._events[position].time if position < len(self._events) else float("inf")

    def _cache_frames(self, event: Event) -> None:
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
        # deleting from the front of a list moves the rest, so it is done by halves
        if self._dropped > len(self._events) // 2:
            del self._events[: self._dropped]
            self._dropped = 0

    def _exceeds_limits(self, oldest: Event, now: float) -> bool:
        if self._size > self._limits.size:
            return True
        return len(self) > self._limits.events and oldest.time < now - self._limits.seconds

    def _cost(self, event: Event) -> int:
        return len(event.object.json) + self._EVENT_SIZE
