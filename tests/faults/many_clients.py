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

_AT_ONCE = 50
_SMALL_BUFFER = 4096
# of what a reader that stopped reading still takes
_LIMIT = 1024


@dataclass(slots=True)
class Line:
    """An open connection, plain if it has no TLS."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def ask(self, head: str) -> None:
        await self.say(f"{head}\r\nHost: localhost\r\n\r\n")

    async def say(self, part: str) -> None:
        self.writer.write(part.encode())
        await self.writer.drain()

    async def head(self) -> bytes:
        return await self.reader.readuntil(b"\r\n\r\n")

    async def is_ended(self) -> bool:
        """Waits for it: whether the server has said that there is nothing more to come."""
        with contextlib.suppress(OSError):
            while await self.reader.read(65536):
                pass
        return True

    def leave(self) -> None:
        self.writer.transport.abort()


@dataclass(slots=True)
class Crowd:
    """Connections to the server of `client`, as its user; all are left with the context."""

    client: Client
    lines: list[Line] = field(default_factory=list)

    async def __aenter__(self) -> Crowd:
        return self

    async def __aexit__(self, *exception: object) -> None:
        for each in self.lines:
            each.leave()
        # the end of a connection takes a turn of the loop
        await asyncio.sleep(0)

    async def gather(self, count: int, *, tls: bool = True, reads: bool = True) -> Sequence[Line]:
        """So many more. Those that do not read have small buffers, and leave what does not fit into them unread."""
        made = await in_parallel([lambda: self._open(tls, reads)] * count)
        self.lines.extend(made)
        return made

    async def _open(self, tls: bool, reads: bool) -> Line:
        parts = urlsplit(self.client.url)
        plain = socket.socket()
        plain.setblocking(False)
        if not reads:
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _SMALL_BUFFER)
        await asyncio.get_running_loop().sock_connect(plain, (parts.hostname, parts.port))
        given = {"ssl": self.client.tls, "server_hostname": parts.hostname, "ssl_handshake_timeout": 60} if tls else {}
        return Line(*await asyncio.open_connection(sock=plain, limit=65536 if reads else _LIMIT, **given))  # type: ignore[arg-type]


async def in_parallel(calls: Sequence[Callable[[], Awaitable[T]]]) -> list[T]:
    """A few at a time: a listener's queue is short."""
    room = asyncio.Semaphore(_AT_ONCE)

    async def one(call: Callable[[], Awaitable[T]]) -> T:
        async with room:
            return await call()

    return list(await asyncio.gather(*map(one, calls)))
