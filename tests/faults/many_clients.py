"""Very many connections to one server, held by one event loop."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar
from urllib.parse import urlsplit

from tests.e2e.support.https_client import Client

T = TypeVar("T")

_PARALLEL_CALLS = 50
_SMALL_BUFFER = 4096
# of what a reader that stopped reading still takes
_READ_LIMIT = 1024


@dataclass(slots=True)
class Connection:
    """An open connection, plain if it has no TLS."""

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
        """Waits for it: whether the server has said that there is nothing more to come."""
        with contextlib.suppress(OSError):
            while await self.reader.read(65536):
                pass
        return True

    def abort(self) -> None:
        self.writer.transport.abort()


@dataclass(slots=True)
class ClientConnections:
    """Connections to the server of `client`, as its user; all are left with the context."""

    client: Client
    connections: list[Connection] = field(default_factory=list)

    async def __aenter__(self) -> ClientConnections:
        return self

    async def __aexit__(self, *exception: object) -> None:
        for each in self.connections:
            each.abort()
        # the end of a connection takes a turn of the loop
        await asyncio.sleep(0)

    async def open(self, count: int, *, tls: bool = True, reading: bool = True) -> Sequence[Connection]:
        """So many more. Those that do not read have small buffers, and leave what does not fit into them unread."""
        made = await in_parallel([lambda: self._open(tls, reading)] * count)
        self.connections.extend(made)
        return made

    async def _open(self, tls: bool, reading: bool) -> Connection:
        parts = urlsplit(self.client.url)
        plain = socket.socket()
        plain.setblocking(False)
        if not reading:
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _SMALL_BUFFER)
        await asyncio.get_running_loop().sock_connect(plain, (parts.hostname, parts.port))
        given = {"ssl": self.client.tls, "server_hostname": parts.hostname, "ssl_handshake_timeout": 60} if tls else {}
        return Connection(*await asyncio.open_connection(sock=plain, limit=65536 if reading else _READ_LIMIT, **given))  # type: ignore[arg-type]


async def in_parallel(calls: Sequence[Callable[[], Awaitable[T]]]) -> list[T]:
    """A few at a time: a listener's queue is short."""
    room = asyncio.Semaphore(_PARALLEL_CALLS)

    async def one(call: Callable[[], Awaitable[T]]) -> T:
        async with room:
            return await call()

    return list(await asyncio.gather(*map(one, calls)))
