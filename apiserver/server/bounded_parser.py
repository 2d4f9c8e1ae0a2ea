"""Bounds the heads of requests before aiohttp's parser sees them (ATTACK-19).

The parser gets each head as a whole, once: its time is then linear however small the pieces are in which the head
arrives, and an unfinished head costs no more memory than its bytes. It gets the next head only when the request before
it has finished.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from aiohttp import HttpVersion11
from aiohttp.http_exceptions import HttpProcessingError, InvalidURLError
from aiohttp.http_parser import HttpRequestParser, RawRequestMessage
from aiohttp.streams import StreamReader

from apiserver.meta.errors import BadRequest, TooManyRequests
from apiserver.request.bytes_in_flight import Reservation
from apiserver.server.body_framing import BodyFraming, ChunkedFraming, LengthFraming

# aiohttp rejects line breaks without a carriage return, but only once it sees the head
_END_OF_HEAD: Final = re.compile(rb"\n\r?\n")
_LINE_BREAKS: Final = b"\r\n"
# Nearly all heads are smaller, and are not counted.
_SMALL_BYTES, _SMALL_LINES = 4096, 128
_MAX_READ_AHEAD: Final = 16 * 1024
# The memory of a parsed header besides its bytes.
_HEADER_BYTES: Final = 256

Messages = Sequence[tuple[RawRequestMessage, StreamReader]]
_NOTHING: Final = ((), False, b"")
_UNSUPPORTED_VERSION: Final = "the version of HTTP is not supported"


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadLimits:
    """Limits of a request's head, in bytes and headers. Those that begin with `proxied` apply to connections of a
    verified front proxy, which sends the groups of its users as headers.

    The request line of a proxy has the same limit as others, because it is the user's.
    """

    line: int = 32 * 1024
    head: int = 64 * 1024
    headers: int = 1000
    proxied_head: int = 1024 * 1024
    proxied_headers: int = 10_000


class HeadTooLarge(HttpProcessingError):
    code = 431


class RequestLineTooLong(HttpProcessingError):
    code = 414


class TooManyLargeHeads(HttpProcessingError):
    code = 429


class UnsupportedEncoding(HttpProcessingError):
    code = 501


class UnsupportedVersion(HttpProcessingError):
    code = 505


class BoundedParser:
    """Stands in for the HttpRequestParser of a connection. `create` returns one for a number of headers.

    Connections share the memory for large heads of requests that are not authenticated yet: `reservation`.
    """

    __slots__ = (
        "_buffer",
        "_busy",
        "_create",
        "_failed",
        "_framing",
        "_handling",
        "_is_front_proxy",
        "_large_head",
        "_limits",
        "_parser",
        "_payload",
        "_reservation",
        "_searched",
    )

    def __init__(
        self,
        create: Callable[[int], HttpRequestParser],
        limits: HeadLimits,
        *,
        reservation: Reservation,
        is_front_proxy: Callable[[], bool],
    ) -> None:
        self._create = create
        self._limits = limits
        self._reservation = reservation
        self._is_front_proxy = is_front_proxy
        self._parser = create(limits.headers)
        # what has arrived of the heads after the current request, and how much of it has no end of a head
        self._buffer = bytearray()
        self._searched = 0
        # a request is being handled; or its body is still arriving
        self._handling = False
        self._busy = False
        self._failed = False
        self._large_head = 0
        self._payload: StreamReader | None = None
        self._framing: BodyFraming | None = None

    @property
    def is_holding(self) -> bool:
        """True if nothing more should be read before the current request has finished. Until then the end of the
        connection would not be noticed, so that a little is read ahead."""
        return self._busy and len(self._buffer) > _MAX_READ_AHEAD

    def finish_request(self) -> bool:
        """Returns True if bytes of the next request have already arrived: `feed_data` then parses them."""
        self._handling = False
        self._busy = self._payload is not None
        if self._large_head:
            self.claim_head()
        return bool(self._buffer)

    def claim_head(self) -> int:
        """The memory of the current request's head if it is large, else 0. Its reservation ends: from now on the user
        of the request accounts for it."""
        claimed, self._large_head = self._large_head, 0
        if claimed:
            self._account()
        return claimed

    def close(self) -> None:
        """Release everything: the connection is lost. The parser refers to the connection, and their memory would wait
        for a garbage collection."""
        self._failed = True
        del self._create, self._is_front_proxy, self._parser
        self._buffer.clear()
        self._large_head = 0
        self._reservation.resize(0)

    # the methods that aiohttp's protocol calls

    def feed_data(self, data: bytes) -> tuple[Messages, bool, bytes]:
        """Raises HttpProcessingError; all data after that is ignored."""
        if self._failed:
            return _NOTHING
        end = data.find(b"\r\n\r\n")
        try:
            if (
                0 < end == len(data) - 4
                and not self._busy
                and not self._buffer
                and len(data) <= _SMALL_BYTES
                and data.count(b"\n") <= _SMALL_LINES
            ):
                # almost every request: a head without a body, which arrives as a whole
                return self._parse(data), False, b""
            return self._feed(data), False, b""
        except TooManyRequests as error:
            self._fail(error.message)
            raise TooManyLargeHeads(message=error.message) from error
        except HttpProcessingError as error:
            self._fail(describe_error(error))
            raise

    def pause_reading(self) -> None:
        self._parser.pause_reading()

    def message_consumed(self) -> None:
        self._parser.message_consumed()

    def set_upgraded(self, value: bool) -> None:
        self._parser.set_upgraded(value)

    # the parts of feed_data

    def _feed(self, data: bytes) -> Messages:
        if self._payload is not None:
            data = self._feed_body(self._payload, data)
        self._buffer += data
        messages = self._parse_buffer() if self._buffer and not self._busy else ()
        if messages and self._payload is not None and self._buffer:
            self._buffer = bytearray(self._feed_body(self._payload, bytes(self._buffer)))
        self._account()
        return messages

    def _feed_body(self, payload: StreamReader, data: bytes) -> bytes:
        """Returns what follows the body. Without data, a parser that has paused continues."""
        used = self._framing.feed(data) if self._framing is not None else 0
        _, upgraded, _ = self._parser.feed_data(data[:used])
        if upgraded:
            self._parser.set_upgraded(False)
        if payload.is_eof():
            self._payload = self._framing = None
            self._busy = self._handling
        return data[used:]

    def _parse_buffer(self) -> Messages:
        buffer = self._buffer
        if not self._searched:
            # as in aiohttp, empty lines before a request are skipped
            buffer = self._buffer = buffer.lstrip(_LINE_BREAKS)
        end = _END_OF_HEAD.search(buffer, self._searched)
        size = end.end() if end is not None else len(buffer)
        self._check_size(size)
        if end is None:
            self._searched = max(0, size - len(_LINE_BREAKS))
            return ()
        head = bytes(buffer[:size])
        self._buffer, self._searched = buffer[size:], 0
        if size > _SMALL_BYTES or head.count(b"\n") > _SMALL_LINES:
            self._prepare_for_large(head)
        return self._parse(head)

    def _check_size(self, size: int) -> None:
        limits = self._limits
        if size > limits.line and self._buffer.find(b"\n", 0, limits.line) < 0:
            raise RequestLineTooLong(message=f"the request line is longer than {limits.line} bytes")
        limit = limits.head
        if size > limit and self._is_front_proxy():
            limit = limits.proxied_head
        if size > limit:
            raise HeadTooLarge(message=f"the request line and the headers are longer than {limit} bytes")

    def _prepare_for_large(self, head: bytes) -> None:
        """Check the number of headers, and reserve their memory."""
        headers, limit = head.count(b"\n") - 2, self._limits.headers
        if headers > limit and self._is_front_proxy():
            limit = self._limits.proxied_headers
            self._parser = self._create(limit)
        if headers > limit:
            raise HeadTooLarge(message=f"the request has more than {limit} headers")
        self._large_head = len(head) + headers * _HEADER_BYTES
        self._account()

    def _account(self) -> None:
        buffered = len(self._buffer)
        needed = self._large_head + (buffered if buffered > _SMALL_BYTES else 0)
        if needed and self._is_front_proxy():
            # those of a proxy count for its users, once they are known
            needed = 0
        self._reservation.resize(needed)

    def _parse(self, head: bytes) -> Messages:
        messages: Messages
        messages, upgraded, _ = self._parser.feed_data(head)
        if upgraded:
            # no upgrade is supported: what follows is another request
            self._parser.set_upgraded(False)
        if not messages:
            # the first bytes of HTTP/2 look like a head
            raise UnsupportedVersion(message=_UNSUPPORTED_VERSION)
        for message, payload in messages:
            _check_protocol(message)
            self._handling = self._busy = True
            if not payload.is_eof():
                self._payload, self._framing = payload, _framing_of(message)
        return messages

    def _fail(self, why: str) -> None:
        """Let the current request fail at once if it waits for the rest of its body."""
        self._failed = True
        self._buffer.clear()
        self._large_head = 0
        self._reservation.resize(0)
        if self._payload is not None and not self._payload.is_eof():
            self._payload.set_exception(BadRequest(f"malformed request: {why}"))
            self._payload.feed_eof()


def _check_protocol(message: RawRequestMessage) -> None:
    """Refuses requests that aiohttp accepts: of a later version, and those with a body that is also compressed, or has
    chunks in HTTP/1.0, where another server may find its end elsewhere."""
    if message.version > HttpVersion11:
        raise UnsupportedVersion(message=_UNSUPPORTED_VERSION)
    # an empty one is none for aiohttp
    encodings = message.headers.getall("Transfer-Encoding", ())
    if encodings and (message.version < HttpVersion11 or ",".join(encodings).strip().lower() != "chunked"):
        raise UnsupportedEncoding(message="the Transfer-Encoding is not supported")


def _framing_of(message: RawRequestMessage) -> BodyFraming:
    return ChunkedFraming() if message.chunked else LengthFraming(int(message.headers.get("Content-Length", "0")))


def describe_error(error: HttpProcessingError) -> str:
    """A description of the error without the bytes that the client sent."""
    if isinstance(error, InvalidURLError):
        return "the target is not a valid URL"
    return error.message.partition("\n")[0].partition(": b")[0].rstrip(":.")
