"""The HTTPS listener and its graceful shutdown: readyz fails, watches end, requests finish, connections close
(WIRE-I12, WIRE-I13)."""

from __future__ import annotations

import asyncio
import errno
import logging
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from types import FrameType
from typing import Final

from aiohttp import web

from apiserver.authentication.peers import Peers
from apiserver.endpoints.filters import response_headers as headers
from apiserver.request.bytes_in_flight import BytesInFlight
from apiserver.server.bounded_parser import HeadLimits
from apiserver.server.http_protocol import Bounds, HttpProtocol, owner_by_certificate
from apiserver.server.requests_in_progress import RequestsInProgress
from apiserver.tls.acceptor import Acceptor
from apiserver.tls.connections import Connections
from apiserver.tls.server_context import ServerTls

_LOG = logging.getLogger("apiserver.serving")
_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """Limits of connections. `handshake`, `idle` and `unread` are in seconds.

    `idle` also limits the time for the head of a request. It is longer than the 90 s after which client-go closes idle
    connections, so that the client closes them first. `unread` is the time for which sent bytes may stay
    unacknowledged. Bodies are limited by the deadline of their request.

    `unidentified` is the number of connections on which nobody has been authenticated, `per_user` that of one user.
    """

    handshake: float = 10.0
    idle: float = 100.0
    unread: float = 60.0
    heads: HeadLimits = field(default_factory=HeadLimits)
    unidentified: int = 1000
    per_user: int = 3000


@dataclass(frozen=True, slots=True, kw_only=True)
class ShutdownStages:
    """The stages of a graceful shutdown: `draining` makes readyz fail, `shutdown` ends watches."""

    draining: asyncio.Event
    shutdown: asyncio.Event
    delay: float = 0.0
    """Seconds between the two stages, in which load balancers notice the failing readyz."""
    grace: float = 8.0
    """Seconds that requests in progress have to finish after `shutdown`."""

    def is_draining(self) -> bool:
        """True once clients are to come to another replica; a process without a delay has none."""
        return self.draining.is_set() and self.delay > 0

    def readyz_check(self) -> None:
        """The health check `shutdown` of readyz."""
        if self.draining.is_set():
            raise RuntimeError("process is shutting down")


class CannotListen(Exception):
    """The port is in use, or the machine does not have the address."""

    def __init__(self, host: str, port: int, error: OSError) -> None:
        super().__init__(f"cannot listen on {host} port {port}: {error.strerror or error}")
        self._depends_on_port = error.errno in (errno.EADDRINUSE, errno.EACCES)

    def describe(self, flag: str) -> str:
        """The message, with the flag that names the port if another one may do."""
        return f"{self}; choose another port with {flag}" if self._depends_on_port else str(self)


class Listener:
    """An open HTTPS port."""

    def __init__(
        self,
        runner: web.AppRunner,
        acceptor: Acceptor,
        requests: RequestsInProgress,
        *,
        finish_timeout: float,
        close_timeout: float,
    ) -> None:
        self._runner = runner
        self._acceptor = acceptor
        self._requests = requests
        self._finish_timeout = finish_timeout
        self._close_timeout = close_timeout
        self.port = acceptor.port

    def drain(self) -> None:
        """Make clients reconnect to other replicas: each connection is closed after its next response."""
        self._requests.drain()

    async def close(self) -> None:
        """Wait for requests in progress within the listener's grace period, then close the remaining connections.

        Until then the port stays open: in a process with an embedded cluster, the requests in progress need the
        cluster, which is reached through this port.
        """
        await self._requests.wait_finished(within=self._finish_timeout)
        await self._acceptor.close()
        await self._runner.cleanup()
        await self._acceptor.wait_closed(within=self._close_timeout)


async def listen(
    app: web.Application,
    *,
    tls: ServerTls,
    host: str,
    port: int,
    grace: float = 8.0,
    limits: ConnectionLimits | None = None,
    bytes_in_flight: BytesInFlight | None = None,
    peers: Peers | None = None,
) -> Listener:
    """Listen on a port (0 for any free one) of an IP address. `peers` judges client certificates. Raises
    CannotListen."""
    limits = limits or ConnectionLimits()
    headers.install(app)
    # aiohttp waits this long twice, before and after it cancels handlers, and `close` waits once more for connections
    close_timeout = grace / 8
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=close_timeout)
    await runner.setup()
    manager = runner.server
    assert manager is not None
    requests = manager.request_handler = RequestsInProgress(manager.request_handler)
    try:
        bounds = Bounds(heads=limits.heads, bytes_in_flight=bytes_in_flight or BytesInFlight(), peers=peers or Peers())
        acceptor = _open(manager, tls, _socket(host, port, limits), limits, bounds)
        return Listener(
            runner,
            acceptor,
            requests,
            finish_timeout=grace - 3 * close_timeout,
            close_timeout=close_timeout,
        )
    except OSError as error:
        await runner.cleanup()
        raise CannotListen(host, port, error) from error
    except BaseException:
        await runner.cleanup()
        raise


def _open(
    manager: web.Server, tls: ServerTls, bound: socket.socket, limits: ConnectionLimits, bounds: Bounds
) -> Acceptor:
    connections = Connections(
        unidentified=limits.unidentified, per_user=limits.per_user, owner_of=partial(owner_by_certificate, bounds.peers)
    )
    protocol = partial(
        HttpProtocol,
        manager,
        loop=asyncio.get_running_loop(),
        bounds=bounds,
        connections=connections,
        access_log=None,
        keepalive_timeout=limits.idle,
    )
    try:
        return Acceptor(bound, tls, protocol, handshake=limits.handshake, connections=connections)
    except BaseException:
        bound.close()
        raise


async def serve_until_stopped(listener: Listener, stages: ShutdownStages, *, stop: asyncio.Event) -> None:
    """Serve until `stop` is set, then shut down gracefully, within the delay and grace period of `stages`."""
    try:
        await stop.wait()
        _LOG.info("shutting down")
        stages.draining.set()
        if stages.is_draining():
            listener.drain()
        await asyncio.sleep(stages.delay)
    finally:
        stages.draining.set()
        stages.shutdown.set()
        await listener.close()


@contextmanager
def stop_on_signals(stop: asyncio.Event) -> Iterator[None]:
    """Let SIGTERM and SIGINT set `stop`. After the context they are ignored: the process is exiting, and another signal
    must not kill it before it has exited cleanly."""
    # not loop.add_signal_handler: its removal restores the default, and a signal before SIG_IGN would kill the process
    loop = asyncio.get_running_loop()
    requested = False

    def request_stop(number: int, frame: FrameType | None) -> None:
        nonlocal requested
        # signals that arrive faster than they are handled interrupt each other, and would exhaust the stack
        if not requested:
            requested = True
            loop.call_soon_threadsafe(stop.set)

    for each in _SIGNALS:
        signal.signal(each, request_stop)
    try:
        yield
    finally:
        for each in _SIGNALS:
            signal.signal(each, signal.SIG_IGN)


def _socket(host: str, port: int, limits: ConnectionLimits) -> socket.socket:
    family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    opened = socket.socket(family, socket.SOCK_STREAM)
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            # accepted connections inherit it: the kernel closes the connection of a client that does not read
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(limits.unread * 1000))
        opened.bind(address)
    except BaseException:
        opened.close()
        raise
    return opened
