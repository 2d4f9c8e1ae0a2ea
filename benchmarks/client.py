"""A lean HTTP/1.1 client: what it costs itself must not be what is measured. One request at a time a connection."""

from __future__ import annotations

import asyncio
import ssl
import zlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import orjson

_BUFFER = 4 * 1024 * 1024
# wbits of zlib that ask for a gzip header
_GZIP = 31


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A server, and who asks it: a client certificate in `tls`, or `headers`."""

    url: str
    tls: ssl.SSLContext
    headers: Mapping[str, str] = field(default_factory=dict)

    async def connect(self) -> Connection:
        parts = urlsplit(self.url)
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port, ssl=self.tls, limit=_BUFFER)
        given = "".join(f"{name}: {value}\r\n" for name, value in self.headers.items())
        return Connection(reader, writer, f"Host: {parts.netloc}\r\n{given}")

    async def call(self, method: str, path: str, body: object = None, *, content_type: str = "") -> Any:
        """One request on a connection of its own; the document. Raises Unexpected."""
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


class Unexpected(OSError):
    """An answer that is no success."""

    def __init__(self, status: int, body: bytes) -> None:
        super().__init__(f"{status}: {body[:500]!r}")
        self.status = status


@dataclass(frozen=True, slots=True)
class _Head:
    status: int
    headers: Mapping[bytes, bytes]


class Connection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, headers: str) -> None:
        self._reader = reader
        self._writer = writer
        self._headers = headers
        self.received = 0
        """Bytes of the last body as they came, compressed or not."""

    async def call(
        self, method: str, path: str, body: object = None, *, headers: str = "", content_type: str = ""
    ) -> bytes:
        """The whole body, unpacked. `headers` are lines that end with CRLF. Raises Unexpected."""
        head = await self._ask(method, path, body, headers, content_type)
        content = await self._body(head)
        self.received = len(content)
        if head.headers.get(b"content-encoding") == b"gzip":
            content = zlib.decompress(content, _GZIP)
        if head.status >= 300:
            raise Unexpected(head.status, content)
        return content

    async def stream(self, path: str) -> AsyncIterator[Any]:
        """The frames of a watch, parsed; the first item is None and comes with the response's head."""
        head = await self._ask("GET", path, None, "", "")
        if head.status != 200:
            raise Unexpected(head.status, await self._body(head))
        yield None
        rest = b""
        while chunk := await self._chunk():
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                yield orjson.loads(line)

    def close(self) -> None:
        self._writer.close()

    async def _ask(self, method: str, path: str, body: object, headers: str, content_type: str) -> _Head:
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
