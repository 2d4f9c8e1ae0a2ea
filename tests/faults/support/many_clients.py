"""Thousands of connections to one server, on one event loop."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar
from urllib.parse import urlsplit

from tests.e2e.support.http.https_client import Client

T = TypeVar("T")

_PARALLEL_CALLS = 50
_SMALL_BUFFER = 4096
# for a StreamReader that is never read: it pauses the transport above twice this many bytes
_READ_LIMIT = 1024


@dataclass(slots=True)
class Connection:
    """An open connection, with or without TLS."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send_request(self, head: str) -> None:
        await self.send(f"{head}\r\nHost: localhost\r\n\r\n")

    async def send(self, part: str) -> None:
        self.writer.write(part.encode())
        await self.writer.drain()

    async def read_head(self) -> bytes:
        return await self.reader.readuntil(b"\r\n\r\n")

    async def wait_until_closed(self) -> bool:
        """Reads until the server closes the connection, and returns True."""
        with contextlib.suppress(OSError):
            while await self.reader.read(65536):
                pass
        return True

    def abort(self) -> None:
        self.writer.transport.abort()


@dataclass(slots=True)
class ClientConnections:
    """Connections to the server of `client` as its user, which are all aborted at the end of the context."""

    client: Client
    connections: list[Connection] = field(default_factory=list)

    async def __aenter__(self) -> ClientConnections:
        return self

    async def __aexit__(self, *exception: object) -> None:
        for each in self.connections:
            each.abort()
        # aborting a transport takes an iteration of the event loop
        await asyncio.sleep(0)

    async def open(self, count: int, *, tls: bool = True, reading: bool = True) -> Sequence[Connection]:
        """Opens this many more connections. Without `reading` they have small buffers, and stop receiving once these
        are full."""
        opened = await in_parallel([lambda: self._open(tls, reading)] * count)
        self.connections.extend(opened)
        return opened

    async def _open(self, tls: bool, reading: bool) -> Connection:
        parts = urlsplit(self.client.url)
        plain = socket.socket()
        plain.setblocking(False)
        if not reading:
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _SMALL_BUFFER)
        await asyncio.get_running_loop().sock_connect(plain, (parts.hostname, parts.port))
        options = {"ssl": self.client.tls, "server_hostname": parts.hostname, "ssl_handshake_timeout": 60}
        limit = 65536 if reading else _READ_LIMIT
        return Connection(*await asyncio.open_connection(sock=plain, limit=limit, **(options if tls else {})))  # type: ignore[arg-type]


async def in_parallel(calls: Sequence[Callable[[], Awaitable[T]]]) -> list[T]:
    """Limits the number of calls at a time, since the accept queue of a listener is short."""
    semaphore = asyncio.Semaphore(_PARALLEL_CALLS)

    async def limited(call: Callable[[], Awaitable[T]]) -> T:
        async with semaphore:
            return await call()

    return list(await asyncio.gather(*map(limited, calls)))
