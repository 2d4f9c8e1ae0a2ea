"""The event loop of the servers: uvloop's, with connections that close their descriptor once."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar, cast

import uvloop

T = TypeVar("T")
P = TypeVar("P", bound=asyncio.BaseProtocol)


class EventLoop(uvloop.Loop):
    """When a connection breaks just as `create_connection` takes over its socket, uvloop 0.23 closes the descriptor,
    but the Python socket keeps its number, and closes that again when it is garbage-collected: much later, if the
    traceback of an exception refers to it. By then the number can be another connection's, which loses its descriptor
    to a third one; or libuv aborts the process, without a word. aiohttp creates all connections from sockets."""

    async def create_connection(  # type: ignore[override]
        self,
        protocol_factory: Callable[[], P],
        host: str | None = None,
        port: int | None = None,
        *,
        sock: socket.socket | None = None,
        **options: Any,
    ) -> tuple[asyncio.Transport, P]:
        """As in asyncio. Of a socket that does not become an open connection, `sock` no longer has the descriptor."""
        # the overloads of the stubs leave out options
        create: Callable[..., Coroutine[Any, Any, tuple[asyncio.Transport, P]]] = cast(Any, super()).create_connection
        if sock is None:
            return await create(protocol_factory, host, port, **options)
        try:
            transport, protocol = await create(protocol_factory, host, port, sock=sock, **options)
        except BaseException:
            sock.detach()
            raise
        if transport.is_closing():
            sock.detach()
        return transport, protocol


def run(main: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine, as `asyncio.run` does, on a new EventLoop."""
    return uvloop.run(main, loop_factory=EventLoop)
