"""The watch of one part of a merged watch, and the buffer in which the events of all of them wait for the client."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol

from apiserver.meta.errors import StatusError, TooManyRequests
from apiserver.request.bytes_in_flight import Reservation
from registry.cluster.watch_decoder import parse_watch_event
from tenant_apiserver.proxy.merged.frames import Form
from tenant_apiserver.proxy.merged.packed_list import PackedList, added_frames
from tenant_apiserver.proxy.merged.part import CollectionPart

_logger = logging.getLogger(__name__)
# events and their bytes, of all parts together: what a slow client makes wait is not read from the cluster
_WAITING: Final = 256
_WAITING_BYTES: Final = 1024 * 1024
# of an event that counts only when there is room for it: all others count as soon as they are read
_SMALL_BYTES: Final = 16 * 1024
_AT_ONCE: Final = 16
# objects: all parts wait with their first pages until the client can read, and then one with a further page
_FIRST_PAGE, _PAGE = 5, 100
# the cluster learns of a grant at another time than the proxy
_RETRIES: Final = (0.1, 0.25, 0.5, 1.0, 2.0)
_REFUSED = 403
# in the message of a kube-apiserver whose etcd, older than 3.4.31 or 3.5.13, cannot say how far a watch is: it takes
# allowWatchBookmarks without a version for sendInitialEvents
_NO_PROGRESS: Final = "RequestWatchProgress"


class PartRequests(Protocol):
    """Requests of the caller. Both raise the cluster's StatusError, ServiceUnavailable, and `held` TooManyRequests."""

    def held(self, target: str) -> AbstractAsyncContextManager[PackedList]:
        """The list at a path and query, which is in memory for the block."""
        ...

    def events(self, target: str) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """The lines of a watch."""
        ...


@dataclass(eq=False, slots=True)
class PartStream:
    """`query` is the start of the watch. `version` is that up to which the client has the part's events, 0 if it is not
    known. A client is sent all objects of a part that `begins` first. A part is `granted` to a client that has the
    others already: the cluster may refuse it at first."""

    part: CollectionPart
    query: Mapping[str, str]
    version: int
    granted: bool = False
    begins: bool = False
    task: asyncio.Task[None] | None = None
    opened: asyncio.Future[bool] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    """False if the cluster refuses the watch."""

    @property
    def is_refused(self) -> bool:
        return self.opened.done() and self.opened.exception() is None and not self.opened.result()


class Complete(NamedTuple):
    """In the place of a line: the client has all objects of a list."""

    version: int
    form: Form


class Streams:
    """Reads the watches of all parts. A watch that ends, or fails, ends the whole: its client goes on from the latest
    version that it has."""

    def __init__(self, requests: PartRequests, selection: Mapping[str, str], waiting: Reservation) -> None:
        """`waiting` is the memory of the events that the client has not got yet."""
        self._requests = requests
        self._selection = selection
        self._lines: deque[tuple[PartStream, bytes | Complete]] = deque()
        self._waiting = waiting
        self._bytes = 0
        self._taken = 0
        self._room = asyncio.Event()
        self._openings = asyncio.Semaphore(_AT_ONCE)
        self._paging = asyncio.Lock()
        self.changed = asyncio.Event()
        """Set when there is something to do: a line, or the end."""
        self.ended = False

    def open(self, stream: PartStream) -> None:
        stream.task = asyncio.create_task(self._follow(stream), name=f"watch-of-{stream.part.name}")

    def take(self) -> tuple[PartStream, bytes | Complete] | None:
        """The next line, None if there is none yet."""
        if not self._lines:
            return None
        self._room.set()
        taken = self._lines.popleft()
        self._bytes -= _size(taken[1])
        self._taken += _size(taken[1])
        return taken

    def sent(self) -> None:
        """The client has got what was taken."""
        self._waiting.subtract(self._taken)
        self._taken = 0
        self._room.set()

    async def close(self, *streams: PartStream) -> None:
        """Ends streams, so that nothing more of them is taken."""
        tasks = [each.task for each in streams if each.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._lines = deque(each for each in self._lines if each[0] not in streams)
        before, self._bytes = self._bytes, sum(_size(line) for _, line in self._lines)
        self._waiting.subtract(before - self._bytes)
        self._room.set()

    async def _follow(self, stream: PartStream) -> None:
        try:
            for seconds in _RETRIES if stream.granted else ():
                if await self._read(stream):
                    return
                await asyncio.sleep(seconds)
            if not await self._read(stream):
                stream.opened.set_result(False)
        except Exception as error:
            # of any kind: a client whose watch does not end waits for what it is not sent
            if not isinstance(error, StatusError):
                _logger.exception("the watch of %s failed", stream.part.name)
            if not stream.opened.done() and not stream.granted:
                stream.opened.set_exception(error)
                # asyncio logs what nobody asks for, such as when the client has disconnected
                stream.opened.exception()
            self._end()

    async def _read(self, stream: PartStream) -> bool:
        """Reads to the end. False if the cluster refuses the list or the watch."""
        try:
            start = {**stream.query, **await self._list(stream)} if stream.begins else stream.query
            query = {**start, "watch": "true"}
            if not await self._read_lines(stream, {**query, "allowWatchBookmarks": "true"}):
                await self._read_lines(stream, query)
        except StatusError as error:
            if stream.opened.done() or error.code != _REFUSED:
                raise
            return False
        self._end()
        return True

    async def _list(self, stream: PartStream) -> Mapping[str, str]:
        """Lists the objects that the client gets first, in pages. The version with which the watch goes on. Not all
        clusters have watches that begin with them, and no other says where they end."""
        start = stream.query.get("resourceVersion", "")
        # a list of any version has no limit
        query = {"resourceVersion": start, "resourceVersionMatch": "NotOlderThan"} if start not in ("", "0") else {}
        async with AsyncExitStack() as held:
            async with self._openings:
                page = await held.enter_async_context(self._page(stream, {**query, "limit": str(_FIRST_PAGE)}))
            stream.opened.set_result(True)
            await self._put_objects(stream, page)
            form, metadata = page.form, page.metadata
        while following := metadata.get("continue"):
            async with self._paging, self._page(stream, {"limit": str(_PAGE), "continue": following}) as page:
                await self._put_objects(stream, page)
                metadata = page.metadata
        version = str(metadata.get("resourceVersion") or "")
        await self._put(stream, Complete(int(version) if version.isdecimal() else 0, form))
        return {"resourceVersion": version}

    def _page(self, stream: PartStream, query: Mapping[str, str]) -> AbstractAsyncContextManager[PackedList]:
        return self._requests.held(stream.part.target(self._selection, **query))

    async def _put_objects(self, stream: PartStream, page: PackedList) -> None:
        for line in added_frames(page):
            await self._put(stream, line)

    async def _read_lines(self, stream: PartStream, query: Mapping[str, str]) -> bool:
        """False if the cluster has no bookmarks for this watch."""
        async with AsyncExitStack() as opened:
            async with self._openings:
                events = self._requests.events(stream.part.target(self._selection, **query))
                lines = await opened.enter_async_context(events)
            if not stream.opened.done():
                stream.opened.set_result(True)
            first = await anext(lines, None)
            if first is None:
                return True
            if "allowWatchBookmarks" in query and _lacks_bookmarks(first):
                return False
            await self._put(stream, first)
            async for line in lines:
                await self._put(stream, line)
        return True

    async def _put(self, stream: PartStream, line: bytes | Complete) -> None:
        """Raises TooManyRequests if what waits for the clients of a user, who do not read it, leaves no room: the watch
        ends, and its client goes on from the version that it has."""
        size = _size(line)
        counted = size if size > _SMALL_BYTES else 0
        self._waiting.add(counted)
        try:
            while self._is_full or self._has_to_wait(size - counted):
                self._room.clear()
                await self._room.wait()
            self._waiting.add(size - counted)
        except BaseException:
            self._waiting.subtract(counted)
            raise
        self._lines.append((stream, line))
        self._bytes += size
        self.changed.set()

    @property
    def _is_full(self) -> bool:
        return len(self._lines) >= _WAITING or self._bytes >= _WAITING_BYTES

    def _has_to_wait(self, size: int) -> bool:
        """True if there is no room for an event until the client has got others."""
        if not self._bytes and not self._taken:
            return False
        try:
            self._waiting.check(size)
        except TooManyRequests:
            return True
        return False

    def _end(self) -> None:
        self.ended = True
        self.changed.set()


def _lacks_bookmarks(line: bytes) -> bool:
    if _NO_PROGRESS.encode() not in line:
        return False
    try:
        parse_watch_event(line)
    except StatusError as error:
        return _NO_PROGRESS in error.message
    return False


def _size(line: bytes | Complete) -> int:
    return len(line) if isinstance(line, bytes) else 0
