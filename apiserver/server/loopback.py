"""A listener on loopback without TLS, for a page in the browser of the same machine."""

from __future__ import annotations

import asyncio
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

    def __init__(self, runner: web.AppRunner, server: asyncio.Server, connections: Connections) -> None:
        self._runner = runner
        self._server = server
        self._connections = connections
        self.port: int = server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Closes the port, and ends the requests in progress: watches would never end by themselves."""
        self._server.close()
        await self._runner.cleanup()
        for transport in self._connections:
            transport.abort()
        await self._server.wait_closed()


async def listen_on_loopback(app: web.Application, host: str, port: int) -> LoopbackListener:
    """Listens on a port (0 for any free one) of an address of loopback. Raises CannotListen."""
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
    try:
        server = await asyncio.get_running_loop().create_server(protocol, host, port)
    except OSError as error:
        await runner.cleanup()
        raise CannotListen(f"cannot listen on {host} port {port}: {error.strerror or error}") from error
    return LoopbackListener(runner, server, connections)
