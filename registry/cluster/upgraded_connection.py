"""A connection to the cluster that asks to switch protocols (RFC 9110, 7.8): websocket or SPDY, for exec and the like.

Only after a 101 do bytes pass unread. Any other answer is read to its end, and the connection is closed: bytes that a
client sends to a server that still speaks HTTP would be requests of this process (CVE-2018-1002105).
"""

from __future__ import annotations

import asyncio
import http.client
import io
import re
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, cast

from multidict import CIMultiDict

_SECONDS: Final = 60.0
_MAX_HEAD: Final = 64 * 1024
# of a refusal, which is a Status or a page of an application behind services/proxy
_MAX_BODY: Final = 192 * 1024
ANSWER_BYTES: Final = _MAX_HEAD + _MAX_BODY
"""The memory that an answer takes at most until it is complete."""
_WRITE_BUFFER: Final = 64 * 1024
_SWITCHED: Final = 101
# such as 103 Early Hints: the answer follows
_INTERIM: Final = re.compile(rb"HTTP/1\.[01] 1(?!01)\d\d\b")


@dataclass(frozen=True, slots=True)
class UpgradeAnswer:
    """`transport` is set for a 101, and paused; `rest` are the bytes that came with it. Otherwise the connection is
    closed, and `rest` is the body."""

    status: int
    reason: str
    headers: CIMultiDict[str]
    rest: bytes
    transport: asyncio.Transport | None = None


class UpgradeProtocol(asyncio.Protocol):
    """The protocol of the connection until the answer is complete."""

    def __init__(self) -> None:
        self._received = bytearray()
        self._arrived = asyncio.Event()
        self._ended = False
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(_WRITE_BUFFER)
        read_nothing_ahead(self._transport)

    def data_received(self, data: bytes) -> None:
        self._received += data
        self._arrived.set()
        if len(self._received) > ANSWER_BYTES and self._transport is not None:
            self._transport.pause_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        self._ended = True
        self._arrived.set()

    async def exchange(self, method: str, target: str, headers: CIMultiDict[str]) -> UpgradeAnswer:
        """Raises OSError, or TimeoutError after a minute."""
        assert self._transport is not None
        lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
        if any("\r" in line or "\n" in line for line in lines):
            raise OSError("a header has a line break")
        try:
            self._transport.write("\r\n".join((*lines, "", "")).encode("utf-8", "surrogateescape"))
            async with asyncio.timeout(_SECONDS):
                answer = await self._answer()
        except BaseException:
            self._transport.abort()
            raise
        if answer.transport is None:
            self._transport.close()
        return answer

    async def _answer(self) -> UpgradeAnswer:
        while _INTERIM.match(self._received[: (end := await self._end_of_head())]):
            del self._received[: end + 4]
        head = _parse(bytes(self._received[: end + 4]))
        headers = CIMultiDict(head.getheaders())
        if head.status == _SWITCHED:
            assert self._transport is not None
            self._transport.pause_reading()
            rest = bytes(self._received[end + 4 :])
            return UpgradeAnswer(head.status, head.reason, headers, rest, self._transport)
        while not self._is_complete(end + 4, headers):
            if len(self._received) > ANSWER_BYTES:
                raise OSError("the refusal of an upgrade is too large")
            await self._more()
        with suppress(http.client.IncompleteRead):
            return UpgradeAnswer(head.status, head.reason, headers, _parse(bytes(self._received)).read())
        raise OSError("the connection broke in the middle of the refusal of an upgrade")

    async def _end_of_head(self) -> int:
        while (end := self._received.find(b"\r\n\r\n")) < 0:
            if self._ended or len(self._received) > _MAX_HEAD:
                raise OSError("the answer to an upgrade is no HTTP response")
            await self._more()
        return end

    def _is_complete(self, start: int, headers: CIMultiDict[str]) -> bool:
        if self._ended:
            return True
        if headers.get("Transfer-Encoding", "").lower() == "chunked":
            return self._received.endswith(b"0\r\n\r\n")
        length = headers.get("Content-Length", "")
        return length.isdecimal() and len(self._received) - start >= int(length)

    async def _more(self) -> None:
        self._arrived.clear()
        if not self._ended:
            await self._arrived.wait()


def read_nothing_ahead(transport: Any) -> None:
    """Leaves what arrives while reading is paused in the socket.

    TLS of uvloop reads 256 KiB ahead, and discards them if the connection ends before reading goes on: a client that
    reads slowly would miss the end of what a command has written.
    """
    if transport.get_extra_info("ssl_object") is not None:
        transport.set_read_buffer_limits(high=1, low=0)


class _Received:
    """A socket of which http.client reads what has been received."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def makefile(self, mode: str) -> io.BytesIO:
        return io.BytesIO(self._content)


def _parse(content: bytes) -> http.client.HTTPResponse:
    """Raises OSError."""
    response = http.client.HTTPResponse(cast("http.client.socket", _Received(content)))  # type: ignore[name-defined]
    try:
        response.begin()
    except (http.client.HTTPException, ValueError) as e:
        raise OSError("the answer to an upgrade is no HTTP response") from e
    return response
