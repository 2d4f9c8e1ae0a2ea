"""Finds the end of a request body, without its content."""

from __future__ import annotations

import re
from typing import Protocol

from aiohttp.http_exceptions import BadHttpMessage

_MAX_LINE = 256
"""Bytes of the line before a chunk: its size, and extensions, which nobody uses."""
_MAX_TRAILERS = 1024
_SIZE = re.compile(rb"[0-9a-fA-F]{1,16}(?=[;\r])")


class BodyFraming(Protocol):
    @property
    def ended(self) -> bool: ...

    def feed(self, data: bytes) -> int:
        """The number of bytes at the beginning of `data` that belong to the body. Raises BadHttpMessage."""
        ...


class LengthFraming:
    """A body with a Content-Length."""

    __slots__ = ("_left",)

    def __init__(self, length: int) -> None:
        self._left = length

    @property
    def ended(self) -> bool:
        return not self._left

    def feed(self, data: bytes) -> int:
        used = min(self._left, len(data))
        self._left -= used
        return used


class ChunkedFraming:
    """A chunked body. Its chunk extensions and trailers, which may be endless in HTTP, are limited."""

    __slots__ = ("_in_trailers", "_left", "_line", "_trailers", "ended")

    def __init__(self) -> None:
        self.ended = False
        self._left = 0
        self._line = b""
        self._in_trailers = False
        self._trailers = 0

    def feed(self, data: bytes) -> int:
        position = 0
        while position < len(data) and not self.ended:
            if self._left:
                used = min(self._left, len(data) - position)
                self._left -= used
                position += used
            else:
                position = self._read_line(data, position)
        return position

    def _read_line(self, data: bytes, start: int) -> int:
        end = data.find(b"\n", start, start + _MAX_LINE)
        if end < 0:
            self._line += data[start : start + _MAX_LINE]
            if len(self._line) >= _MAX_LINE:
                raise BadHttpMessage("the line before a chunk, or a trailer, is too long")
            return len(data)
        line = self._line + data[start:end]
        self._line = b""
        if self._in_trailers:
            self._end_trailer(line)
        else:
            self._begin_chunk(line)
        return end + 1

    def _begin_chunk(self, line: bytes) -> None:
        found = _SIZE.match(line)
        if found is None:
            raise BadHttpMessage("Invalid character in chunk size")
        if size := int(found[0], 16):
            # the line break after the chunk's content is skipped with it
            self._left = size + 2
        else:
            self._in_trailers = True

    def _end_trailer(self, line: bytes) -> None:
        self._trailers += len(line)
        if self._trailers > _MAX_TRAILERS:
            raise BadHttpMessage("the trailers are too long")
        self.ended = not line.strip()
