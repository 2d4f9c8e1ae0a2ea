"""A lean HTTP/1.1 client, so that its own cost does not distort the measurement. A connection has one request at a
time."""

from __future__ import annotations

import asyncio
import ssl
import zlib
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast
from urllib.parse import urlsplit

import orjson

_BUFFER = 4 * 1024 * 1024
# the wbits with which zlib expects a gzip header
_GZIP = 31


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A server and the caller's credentials: a client certificate in `tls`, or `headers`. With an http URL,
    requests are sent in plain text."""

    url: str
    tls: ssl.SSLContext
    headers: Mapping[str, str] = field(default_factory=dict)

    async def connect(self) -> Connection:
        parts = urlsplit(self.url)
        tls = self.tls if parts.scheme == "https" else None
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port, ssl=tls, limit=_BUFFER)
        headers = "".join(f"{name}: {value}\r\n" for name, value in self.headers.items())
        return Connection(reader, writer, f"Host: {parts.netloc}\r\n{headers}")

    async def call(self, method: str, path: str, body: object = None, *, content_type: str = "") -> Any:
        """Sends one request on a connection of its own and returns the parsed document. Raises UnexpectedStatus."""
        connection = await self.connect()
        try:
            return orjson.loads(await connection.call(method, path, body, content_type=content_type))
        finally:
            connection.close()

    async def text(self, path: str) -> str:
        connection = await self.connect()
        try:
            return (await connection.call("GET", path)).decode()
        finally:
            connection.close()


class UnexpectedStatus(OSError):
    """The status of a response is not a success."""

    def __init__(self, status: int, body: bytes) -> None:
        super().__init__(f"{status}: {body[:500]!r}")
        self.status = status


@dataclass(frozen=True, slots=True)
class _Head:
    status: int
    headers: Mapping[bytes, bytes]


@dataclass(frozen=True, slots=True)
class ResponseBody:
    """A body as it was received, so that it can be decompressed after the measurement."""

    content: bytes
    gzipped: bool

    def decompressed(self) -> bytes:
        return zlib.decompress(self.content, _GZIP) if self.gzipped else self.content


class ChunkedLines:
    """Decodes a chunked stream of lines. The last chunk sets `ended`."""

    def __init__(self) -> None:
        self._raw = b""
        self._line = b""
        self.ended = False

    def feed(self, data: bytes) -> Sequence[bytes]:
        """Returns the lines that `data` completes."""
        raw, start, parts = self._raw + data, 0, [self._line]
        while not self.ended and (head := raw.find(b"\r\n", start)) >= 0:
            size = int(raw[start:head].split(b";")[0], 16)
            content = head + 2
            if content + size + 2 > len(raw):
                break
            parts.append(raw[content : content + size])
            start = content + size + 2
            self.ended = size == 0
        self._raw = raw[start:]
        *lines, self._line = b"".join(parts).split(b"\n")
        return lines


class Connection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, headers: str) -> None:
        self._reader = reader
        self._writer = writer
        self._headers = headers
        self.received = 0
        """Size of the last body in bytes as it was received, compressed or not."""

    async def call(
        self, method: str, path: str, body: object = None, *, headers: str = "", content_type: str = ""
    ) -> bytes:
        """Returns the whole body, decompressed. `headers` are lines that end with CRLF. Raises UnexpectedStatus."""
        return (await self.fetch(method, path, body, headers=headers, content_type=content_type)).decompressed()

    async def fetch(
        self, method: str, path: str, body: object = None, *, headers: str = "", content_type: str = ""
    ) -> ResponseBody:
        """Like `call`, but returns the body as it was received."""
        head = await self._send_request(method, path, body, headers, content_type)
        answer = ResponseBody(await self._body(head), head.headers.get(b"content-encoding") == b"gzip")
        self.received = len(answer.content)
        if head.status >= 300:
            raise UnexpectedStatus(head.status, answer.decompressed())
        return answer

    async def stream(self, path: str) -> AsyncIterator[Any]:
        """Yields the parsed events of a watch; the first item is None and marks the arrival of the response headers."""
        await self.watch(path)
        yield None
        async for lines in self.frames():
            for line in lines:
                yield orjson.loads(line)

    async def watch(self, path: str) -> None:
        """Sends a watch request and reads the response headers. Raises UnexpectedStatus."""
        head = await self._send_request("GET", path, None, "", "")
        if head.status != 200:
            raise UnexpectedStatus(head.status, await self._body(head))

    async def frames(self) -> AsyncIterator[Sequence[bytes]]:
        """Yields the unparsed lines of a watch, grouped by the read in which they arrived."""
        frames = ChunkedLines()
        while not frames.ended and (data := await self._reader.read(_BUFFER)):
            if lines := frames.feed(data):
                yield lines

    def stop_reading(self) -> None:
        """Stops reading; the connection stays open."""
        cast("asyncio.Transport", self._writer.transport).pause_reading()

    def close(self) -> None:
        self._writer.close()

    async def _send_request(self, method: str, path: str, body: object, headers: str, content_type: str) -> _Head:
        data = b"" if body is None else orjson.dumps(body)
        if data:
            headers += f"Content-Type: {content_type or 'application/json'}\r\nContent-Length: {len(data)}\r\n"
        self._writer.write(f"{method} {path} HTTP/1.1\r\n{self._headers}{headers}\r\n".encode() + data)
        status, *lines = (await self._reader.readuntil(b"\r\n\r\n"))[:-4].split(b"\r\n")
        pairs = (line.partition(b":") for line in lines)
        return _Head(int(status.split(b" ", 2)[1]), {name.lower(): value.strip() for name, _, value in pairs})

    async def _body(self, head: _Head) -> bytes:
        if head.headers.get(b"transfer-encoding") != b"chunked":
            return await self._reader.readexactly(int(head.headers.get(b"content-length", 0)))
        chunks: list[bytes] = []
        while chunk := await self._chunk():
            chunks.append(chunk)
        return b"".join(chunks)

    async def _chunk(self) -> bytes:
        size = int((await self._reader.readuntil(b"\r\n")).split(b";")[0], 16)
        return (await self._reader.readexactly(size + 2))[:-2]
