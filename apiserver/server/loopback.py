"""A listener on loopback without TLS, for a page in the browser of the same machine."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Sequence
from functools import partial
from typing import Any, Final, cast

from aiohttp import web

from apiserver.authentication.peers import Peers
from apiserver.request.bytes_in_flight import BytesInFlight
from apiserver.server.bounded_parser import HeadLimits
from apiserver.server.http_protocol import Bounds, HttpProtocol
from apiserver.server.listener import CannotListen
from apiserver.tls.connections import Connections

# a browser keeps six connections to a server; the rest is for clients that log in, or try to
_MOST_CONNECTIONS: Final = 200
_IDLE_SECONDS: Final = 100.0
_SHUTDOWN_SECONDS: Final = 0.5
_ADDRESSES: Final = {"127.0.0.1": socket.AF_INET, "::1": socket.AF_INET6}
_BACKLOG: Final = 100
_MOST_TRIES: Final = 20
_NO_SUCH_ADDRESS: Final = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)


class LoopbackConnection(HttpProtocol):
    """A connection that tells the listener when it opens and closes, which the TLS transports do on the HTTPS port.
    `is_trusted` is for the application, None until it has judged the connection."""

    __slots__ = ("_opened", "is_trusted")

    def __init__(self, manager: web.Server, *, connections: Connections, **options: Any) -> None:
        super().__init__(manager, connections=connections, **options)
        self._opened = connections
        self.is_trusted: bool | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        # a transport of uvloop is no subclass of asyncio's
        self._opened.opened(cast(asyncio.Transport, transport))

    def connection_lost(self, exc: BaseException | None) -> None:
        if self.transport is not None:
            self._opened.closed(self.transport)
        super().connection_lost(exc)


class LoopbackListener:
    """An open port. Requests are bounded as on the HTTPS port; the oldest connection of too many is closed."""

    def __init__(self, runner: web.AppRunner, servers: Sequence[asyncio.Server], connections: Connections) -> None:
        self._runner = runner
        self._servers = servers
        self._connections = connections
        self.port: int = servers[0].sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Closes the port, and ends the requests in progress: watches would never end by themselves."""
        for server in self._servers:
            server.close()
        await self._runner.cleanup()
        for transport in self._connections:
            transport.abort()
        for server in self._servers:
            await server.wait_closed()


async def listen_on_loopback(app: web.Application, host: str, port: int) -> LoopbackListener:
    """Listens on a port (0 for any free one) of an address of loopback, and on the same port of the other address,
    where the machine has both. A browser that resolves `localhost` tries one after the other, so another account that
    listens on the second one would get what is meant for the first. Raises CannotListen."""
    sockets = _listening(host, port)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=_SHUTDOWN_SECONDS)
    await runner.setup()
    assert runner.server is not None
    connections = Connections(unidentified=_MOST_CONNECTIONS)
    protocol = partial(
        LoopbackConnection,
        runner.server,
        loop=asyncio.get_running_loop(),
        bounds=Bounds(heads=HeadLimits(), bytes_in_flight=BytesInFlight(), peers=Peers()),
        connections=connections,
        access_log=None,
        keepalive_timeout=_IDLE_SECONDS,
    )
    loop = asyncio.get_running_loop()
    servers = [await loop.create_server(protocol, sock=each) for each in sockets]
    return LoopbackListener(runner, servers, connections)


def _listening(host: str, port: int) -> Sequence[socket.socket]:
    """A socket on each address of loopback that the machine has, that of `host` first, all on one port. Raises
    CannotListen."""
    for tries_left in reversed(range(1 if port else _MOST_TRIES)):
        first = _socket(host, port)
        chosen = first.getsockname()[1]
        try:
            others = [_socket(each, chosen) for each in _ADDRESSES if each != host]
        except CannotListen as error:
            if isinstance(error.__cause__, OSError) and error.__cause__.errno in _NO_SUCH_ADDRESS:
                return [first]
            first.close()
            if not tries_left:
                raise
        else:
            return [first, *others]
    raise AssertionError("the last try returns or raises")


def _socket(host: str, port: int) -> socket.socket:
    """Raises CannotListen."""
    try:
        opened = socket.socket(_ADDRESSES[host])
    except OSError as error:
        raise CannotListen(host, port, error) from error
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind((host, port))
        opened.listen(_BACKLOG)
    except OSError as error:
        opened.close()
        raise CannotListen(host, port, error) from error
    return opened
