"""The HTTPS listener, and how it ends: readyz red, no new connections, watches over, requests finished (WIRE-I12,
WIRE-I13)."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from aiohttp import web

from apiserver.endpoints.filters import response_headers as headers
from apiserver.server.http_protocol import HttpProtocol
from apiserver.server.requests_in_progress import RequestsInProgress
from apiserver.tls.acceptor import Acceptor
from apiserver.tls.server_context import ServerTls

_LOG = logging.getLogger("apiserver.serving")
_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """Seconds and bytes. `idle` also bounds how long a client may take to send the head of a request; it is longer
    than the 90 s after which clients of client-go give up idle connections, so that they do it first. Bodies are
    bounded by the deadline of their request."""

    handshake: float = 10.0
    idle: float = 100.0
    unread: float = 60.0
    line: int = 1024 * 1024
    headers: int = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class ShutdownStages:
    """The end of the process in its stages. `draining` turns readyz red; `shutdown` ends watches."""

    draining: asyncio.Event
    shutdown: asyncio.Event
    delay: float = 0.0
    """Seconds from the first to the second, for load balancers to notice."""
    grace: float = 8.0
    """Seconds that requests in flight have from then on."""

    def readyz_check(self) -> None:
        """The readyz check `shutdown`."""
        if self.draining.is_set():
            raise RuntimeError("process is shutting down")


class CannotListen(Exception):
    """The port is in use, or the address is none of this machine's."""


class Listener:
    """An open HTTPS port."""

    def __init__(
        self,
        runner: web.AppRunner,
        acceptor: Acceptor,
        requests: RequestsInProgress,
        *,
        patience: float,
        cut: float,
    ) -> None:
        self._runner = runner
        self._acceptor = acceptor
        self._requests = requests
        self._patience = patience
        self._cut = cut
        self.port = acceptor.port

    def drain(self) -> None:
        """Have clients go elsewhere: what they ask is answered, and their connections are closed with that."""
        self._requests.drain()

    async def close(self) -> None:
        """Wait for requests in flight, as long as the listener's grace allows, then cut what is left.

        Until then the port stays open: a process that is its own host reaches it by this port, and its requests in
        flight need that.
        """
        await self._requests.wait_finished(within=self._patience)
        await self._acceptor.close()
        await self._runner.cleanup()
        await self._acceptor.emptied(within=self._cut)


async def listen(
    app: web.Application,
    *,
    tls: ServerTls,
    host: str,
    port: int,
    grace: float = 8.0,
    limits: ConnectionLimits | None = None,
) -> Listener:
    """Open a port, 0 for any, on an IP address. Raises CannotListen."""
    limits = limits or ConnectionLimits()
    headers.install(app)
    # aiohttp waits that long twice, for handlers to end and again once it has cancelled them, and we for connections
    cut = grace / 8
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=cut)
    await runner.setup()
    manager = runner.server
    assert manager is not None
    requests = manager.request_handler = RequestsInProgress(manager.request_handler)
    try:
        acceptor = _open(manager, tls, _socket(host, port, limits), limits)
        return Listener(runner, acceptor, requests, patience=grace - 3 * cut, cut=cut)
    except OSError as error:
        await runner.cleanup()
        raise CannotListen(f"cannot listen on {host} port {port}: {error.strerror or error}") from error
    except BaseException:
        await runner.cleanup()
        raise


def _open(manager: web.Server, tls: ServerTls, bound: socket.socket, limits: ConnectionLimits) -> Acceptor:
    loop = asyncio.get_running_loop()
    options: dict[str, Any] = {
        "access_log": None,
        "keepalive_timeout": limits.idle,
        "max_line_size": limits.line,
        "max_field_size": limits.line,
        "max_headers": limits.headers,
        # compressed bodies are not part of the protocol (WIRE-D28), and small ones can unpack to huge ones
        "auto_decompress": False,
    }
    try:
        protocol = partial(HttpProtocol, manager, loop=loop, **options)
        return Acceptor(bound, tls, protocol, handshake=limits.handshake)
    except BaseException:
        bound.close()
        raise


async def serve_until_stopped(listener: Listener, stages: ShutdownStages, *, stop: asyncio.Event) -> None:
    """Serve until `stop` is set, then end in order, within delay and grace."""
    try:
        await stop.wait()
        _LOG.info("shutting down")
        stages.draining.set()
        listener.drain()
        await asyncio.sleep(stages.delay)
    finally:
        stages.draining.set()
        stages.shutdown.set()
        await listener.close()


@contextmanager
def stop_on_signals(stop: asyncio.Event) -> Iterator[None]:
    """SIGTERM and SIGINT set `stop`, however often they come. Afterwards they are ignored: the process is on its way
    out, and a second signal must not turn its clean end into a death."""
    loop = asyncio.get_running_loop()
    for each in _SIGNALS:
        loop.add_signal_handler(each, stop.set)
    try:
        yield
    finally:
        for each in _SIGNALS:
            loop.remove_signal_handler(each)
            signal.signal(each, signal.SIG_IGN)


def _socket(host: str, port: int, limits: ConnectionLimits) -> socket.socket:
    family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    opened = socket.socket(family, socket.SOCK_STREAM)
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            # accepted connections inherit it: a client that does not read its answer is cut by the kernel
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(limits.unread * 1000))
        opened.bind(address)
    except BaseException:
        opened.close()
        raise
    return opened
