"""A watch that is merged of the watches of its parts, and follows grants and revocations."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from apiserver.endpoints.handlers.watch_frames import error_frame
from apiserver.meta.errors import Expired, StatusError, TooManyRequests
from apiserver.meta.resource import Object
from apiserver.request.options import check_watch_query
from apiserver.request.request_info import Query
from registry.cluster.watch_decoder import parse_watch_event
from tenant_apiserver.proxy.merged import frames
from tenant_apiserver.proxy.merged.caller_requests import CallerRequests
from tenant_apiserver.proxy.merged.frames import NO_FORM, Form
from tenant_apiserver.proxy.merged.part import CollectionPart, selection_of
from tenant_apiserver.proxy.merged.part_stream import Complete, PartStream, Streams
from tenant_apiserver.proxy.merged.positions import Position, position_of
from tenant_apiserver.proxy.merged.sent_objects import SentObjects
from tenant_apiserver.proxy.merged.stream_slots import WatchSlots

_PASSED: Final = ("resourceVersion", "timeoutSeconds")
GONE: Final = Expired("the objects that have become invisible are not known: list again")
EVERYTHING: Final = Expired("everything has become visible: list again")


@dataclass(frozen=True, slots=True)
class WatchQuery:
    """The options of a merged watch. `start` is the query with which each part is watched."""

    selection: Mapping[str, str]
    start: Mapping[str, str]
    bookmarks: bool
    wants_initial: bool

    @property
    def version(self) -> str:
        return self.start.get("resourceVersion", "")

    @property
    def is_resumed(self) -> bool:
        """True for a client that has a state, and wants what follows."""
        return not self.wants_initial and self.version not in ("", "0")


def parse_watch_query(query: Query) -> WatchQuery:
    """Raises BadRequest and Invalid. Wrong selectors are refused by the cluster."""
    _, initial = check_watch_query(query)
    start = {name: query.get(name) for name in _PASSED if name in query}
    return WatchQuery(selection_of(query), start, bool(query.flag("allowWatchBookmarks")), bool(initial))


@dataclass(frozen=True, slots=True)
class Start:
    """The state of the client at the start: it has the `known` parts up to `version`, and no others than the
    `possible` ones. `sent_objects` are its objects, None if they are not known."""

    known: frozenset[str] = frozenset()
    possible: frozenset[str] = frozenset()
    version: int = 0
    sent_objects: SentObjects | None = None
    form: Form = NO_FORM


NOTHING: Final = Start(sent_objects=SentObjects())
"""The state of a client whose watch begins with all objects."""


class WatchOfParts:
    """`names` returns the visible parts at any time, None if everything is; `part` makes one of a name. The owner calls
    `changed` after each change of them."""

    def __init__(
        self,
        requests: CallerRequests,
        query: WatchQuery,
        *,
        names: Callable[[], frozenset[str] | None],
        max_parts: int,
        part: Callable[[str], CollectionPart],
        slots: WatchSlots,
        remember: Callable[[str, Position], None],
    ) -> None:
        self._query = query
        self._names = names
        self._max_parts = max_parts
        self._part = part
        self._slots = slots
        self._remember = remember
        self._streams = Streams(requests, query.selection, slots.waiting)
        self._open: dict[str, PartStream] = {}
        self._sent_objects: SentObjects | None = SentObjects()
        self._form = Form()
        self._bookmarked = 0
        self._is_over = False
        self._owes_initial_end = query.wants_initial

    def changed(self) -> None:
        """The visible parts have changed."""
        self._streams.changed.set()

    def end(self) -> None:
        """Ends the watch after the events that have been taken."""
        self._is_over = True
        self._streams.changed.set()

    async def begin(self, start: Start) -> bool:
        """Opens the watches. False if the cluster refuses all. Raises the StatusError of one that fails, Expired if
        objects would have to be deleted that are not known, and TooManyRequests."""
        visible = self._names() or frozenset()
        self._slots.resize(len(visible))
        self._sent_objects = start.sent_objects.copy() if start.sent_objects is not None else None
        self._form, self._bookmarked = start.form, start.version
        self._bound_sent_objects()
        if self._sent_objects is None and start.possible - visible:
            raise GONE
        for name in sorted(visible):
            self._open_stream(name, granted=self._query.is_resumed and name not in start.known, version=start.version)
        openings = [each.opened for each in self._open.values() if not each.granted]
        if openings:
            # a client that disconnects meanwhile cancels this, but not what the streams go on to tell until they end
            await asyncio.wait(openings)
        for each in openings:
            if (error := each.exception()) is not None:
                raise error
        return not all(each.is_refused for each in self._open.values())

    async def close(self) -> None:
        try:
            await self._streams.close(*self._open.values())
        finally:
            # clients disconnect while their watch ends, which cancels this
            self._slots.close()

    async def frames(self) -> bytes:
        """The next events, each a line, after the client has got those before. Empty at the end of the watch."""
        self._streams.sent()
        while True:
            self._streams.changed.clear()
            if self._is_over:
                return b""
            collected = b"".join([*await self._follow_changes(), *self._events()])
            if self._streams.ended:
                self._is_over = True
            if collected or self._is_over:
                return collected
            await self._streams.changed.wait()

    def _open_stream(self, name: str, *, granted: bool, version: int) -> None:
        query = dict(self._query.start)
        if granted:
            query.pop("resourceVersion", None)
        elif version:
            query["resourceVersion"] = str(version)
        begins = granted or self._query.wants_initial
        stream = PartStream(self._part(name), query, 0 if begins else version, granted=granted, begins=begins)
        self._open[name] = stream
        self._streams.open(stream)

    async def _follow_changes(self) -> list[bytes]:
        """Opens the watches of granted parts, and ends those of revoked ones. The events by which the client forgets
        the latter's objects."""
        visible = self._names()
        if visible is None:
            # the cluster itself answers the next watch, without the objects that exist already
            self._is_over = True
            return [error_frame(EVERYTHING)]
        if len(visible) > self._max_parts or not self._has_room(len(visible)):
            # the next watch is refused
            self._streams.ended = True
            return []
        has = set(self._open) | set(self._sent_objects.parts if self._sent_objects is not None else ())
        version = max(self._safe_version(), self._bookmarked, 1)
        lost = [self._open.pop(name) for name in sorted(set(self._open) - visible)]
        await self._streams.close(*lost)
        for name in sorted(visible - set(self._open)):
            self._open_stream(name, granted=True, version=0)
        forgotten = sorted(has - visible)
        if self._sent_objects is None and forgotten:
            self._is_over = True
            return [error_frame(GONE)]
        if self._sent_objects is None:
            return []
        return [
            frames.deleted_frame(self._form, key, uid, version)
            for name in forgotten
            for key, uid in self._sent_objects.take(name)
        ]

    def _has_room(self, count: int) -> bool:
        try:
            self._slots.resize(count)
        except TooManyRequests:
            return False
        return True

    def _events(self) -> Iterator[bytes]:
        while not self._is_over and (taken := self._streams.take()) is not None:
            stream, line = taken
            if isinstance(line, Complete):
                self._form, stream.begins = line.form, False
                yield self._bookmark(stream, line.version)
                continue
            try:
                event = parse_watch_event(line)
            except StatusError as error:
                # nothing follows an ERROR event
                self._is_over = True
                yield error_frame(error)
                return
            if event.type == "BOOKMARK":
                self._form = self._form if self._form.kind else frames.form_of_object(event.object)
                yield self._bookmark(stream, frames.version_of(event.object))
            else:
                self._note(stream, event.type, event.object)
                yield line.rstrip(b"\n") + b"\n"

    def _note(self, stream: PartStream, type_: str, obj: Object) -> None:
        """Remembers what the client has after an event."""
        metadata = frames.metadata_of(obj)
        version = frames.version_of(obj)
        if not stream.begins:
            stream.version = max(stream.version, version)
        if not self._form.kind or self._form.kind == "Table":
            self._form = frames.form_of_object(obj)
        if self._sent_objects is not None:
            if type_ == "DELETED":
                self._sent_objects.discard(stream.part.name, frames.key_of(metadata))
            else:
                self._sent_objects.add(stream.part.name, frames.key_of(metadata), frames.uid_of(metadata))
            self._bound_sent_objects()
        if safe := self._safe_version():
            self._remember(str(version), position_of(safe, self._sent_objects, self._form))

    def _bound_sent_objects(self) -> None:
        """Forgets the objects if the watches of the user have too many: after a revocation, clients list again."""
        if self._sent_objects is not None and not self._slots.has_room_for(self._sent_objects.size):
            self._sent_objects = None

    def _bookmark(self, stream: PartStream, part_version: int) -> bytes:
        """The bookmark of the whole, empty if it is not due, after the client has a part up to a version."""
        stream.version = max(stream.version, part_version)
        version = self._safe_version()
        is_due = version > self._bookmarked or (self._owes_initial_end and version)
        if not is_due or not self._query.bookmarks:
            return b""
        self._bookmarked = version
        self._remember(str(version), position_of(version, self._sent_objects, self._form))
        ends_initial, self._owes_initial_end = self._owes_initial_end, False
        return frames.bookmark_frame(self._form, version, ends_initial=ends_initial)

    def _safe_version(self) -> int:
        """The version up to which the client has all events of all parts, 0 if it is not known."""
        streams = [each for each in self._open.values() if not each.is_refused]
        return min((0 if each.begins else each.version for each in streams), default=0)
