"""Writes the frames of a watch, so that a client that does not read them occupies little memory."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Final

from aiohttp import web

from apiserver.encoding.encoded_object import to_json
from apiserver.encoding.transforms import View, bookmark_metadata
from apiserver.meta.errors import StatusError
from apiserver.request.bytes_in_flight import Reservation
from apiserver.storage.event_history import CacheEvent
from apiserver.storage.watcher import Bookmark, WatchItem

# aiohttp copies each piece, and the transport keeps two of them for a client that does not read
_PIECE_BYTES: Final = 32 * 1024
# The time that a client has to receive a large frame whose bytes it does not share with others.
_LARGE_FRAME_SECONDS: Final = 30.0


class FrameWriter:
    """Writes the frames of one watch to `response`.

    Most frames are shared: a thousand clients that do not read the same large event occupy its memory once. Those of
    initial and of old events are not, so that their bytes count as those of the user's bodies do: while the user has
    too many, further watches wait, and one that does not receive such a frame is disconnected (ATTACK-19).
    """

    def __init__(
        self, http: web.BaseRequest, response: web.StreamResponse, reservation: Reservation, view: View
    ) -> None:
        self._http = http
        self._response = response
        self._reservation = reservation
        self._view = view
        self._frames: list[bytes] = []
        self._size = 0

    def try_write(self, batch: Sequence[WatchItem]) -> bool:
        """Writes frames that are shared, if the client has received all that was written before: to the connection,
        without a coroutine and the layers of aiohttp, which are two thirds of the cost of an event. Returns False, and
        writes nothing, otherwise."""
        transport = self._http.transport
        if transport is None or transport.is_closing() or transport.get_write_buffer_size():
            return False
        frames, view, now = list[bytes](), self._view, time.time()
        for item in batch:
            if isinstance(item, CacheEvent) and not item.shares_frames:
                return False
            frames.append(_encode(item, view, now))
            view = view.for_next_event()
        data = frames[0] if len(frames) == 1 else b"".join(frames)
        if len(data) > _PIECE_BYTES:
            return False
        self._view = view
        transport.write(b"%x\r\n%b\r\n" % (len(data), data) if self._response.chunked else data)
        return True

    async def write(self, batch: Sequence[WatchItem]) -> None:
        """Raises ConnectionError, and TimeoutError if the client does not receive a large frame."""
        now = time.time()
        for item in batch:
            if isinstance(item, CacheEvent) and not item.shares_frames and len(item.object.json) > _PIECE_BYTES:
                await self._flush()
                await self._write_large(item, now)
            else:
                await self._add(_encode(item, self._view, now))
            self._view = self._view.for_next_event()
        await self._flush()

    async def _add(self, frame: bytes) -> None:
        if self._size + len(frame) > _PIECE_BYTES:
            await self._flush()
        self._frames.append(frame)
        self._size += len(frame)

    async def _flush(self) -> None:
        frames, size, self._frames, self._size = self._frames, self._size, [], 0
        if frames:
            if size > _PIECE_BYTES:
                await self._reservation.turn()
            await self._write(frames[0] if len(frames) == 1 else b"".join(frames))

    async def _write_large(self, event: CacheEvent, now: float) -> None:
        # the turn comes first: while it waits, it holds no memory that the user's other requests need
        await self._reservation.turn()
        async with self._reservation.held(len(event.object.json)), asyncio.timeout(_LARGE_FRAME_SECONDS):
            await self._write(event.frame(self._view, now))

    async def _write(self, data: bytes) -> None:
        for start in range(0, len(data), _PIECE_BYTES):
            await self._response.write(data[start : start + _PIECE_BYTES])


def _encode(item: WatchItem, view: View, now: float) -> bytes:
    if isinstance(item, CacheEvent):
        return item.frame(view, now)
    if isinstance(item, Bookmark):
        return _frame("BOOKMARK", view.bookmark(bookmark_metadata(item.rv, item.annotations)))
    return error_frame(item.error)


def error_frame(error: StatusError) -> bytes:
    return _frame("ERROR", to_json(error.status()))


def _frame(type_: str, document: bytes) -> bytes:
    return b"".join((b'{"type":"', type_.encode(), b'","object":', document, b"}\n"))
