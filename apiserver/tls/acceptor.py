"""Accepts connections, and starts a protocol on each of them once its TLS handshake is complete.

Accepting and handshakes yield to the event loop after every step, so that many new clients do not delay the connected
ones. The ServerTls performs the handshake and creates the transport.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from apiserver.tls.connections import Connections
from apiserver.tls.handshake import HandshakeTimer
from apiserver.tls.server_context import HandshakeFailed, ServerTls
from apiserver.tls.transport import DISCARD_BYTES

_LOG = logging.getLogger("apiserver.accepting")
_BACKLOG: Final = 1024
# Above this number, the slowest client loses its place to the newest one.
_MAX_HANDSHAKES: Final = 1000
# Errors of accept() that are caused by this process or machine, not by the connection.
_EXHAUSTED: Final = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_RECOVERY_SECONDS: Final = 1.0
# The response of Go's HTTP servers, kube-apiserver included.
_NOT_HTTPS: Final = b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n"


class Acceptor:
    """An open port. A client has `handshake` seconds for its part of the handshake, and to read the last response."""

    def __init__(
        self,
        bound: socket.socket,
        tls: ServerTls,
        protocol: Callable[[], asyncio.Protocol],
        *,
        handshake: float,
        connections: Connections | None = None,
    ) -> None:
        """Takes over `bound`. Raises OSError if another process listens on the port."""
        bound.setblocking(False)
        bound.listen(_BACKLOG)
        self.port: int = bound.getsockname()[1]
        self._listening = bound
        self._tls = tls
        self._protocol = protocol
        self._handshake = handshake
        self._handshakes: dict[asyncio.Task[None], None] = {}
        self._connections = Connections() if connections is None else connections
        self._empty = asyncio.Event()
        self._accepting = asyncio.create_task(self._accept(), name="accept")

    async def close(self) -> None:
        """Stop accepting, and drop handshakes in progress. Established connections stay open."""
        self._accepting.cancel()
        await asyncio.wait([self._accepting])
        self._listening.close()
        handshakes = tuple(self._handshakes)
        for handshake in handshakes:
            handshake.cancel()
        await asyncio.gather(*handshakes, return_exceptions=True)

    async def wait_closed(self, *, within: float) -> None:
        """Wait until all connections are closed, at most `within` seconds, then abort the remaining ones."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within):
                while self._connections:
                    self._empty.clear()
                    await self._empty.wait()
        for transport in self._connections:
            transport.abort()

    def _on_closed(self, transport: asyncio.Transport) -> None:
        self._connections.closed(transport)
        if not self._connections:
            self._empty.set()

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                plain, _ = await loop.sock_accept(self._listening)
            except OSError as error:
                if error.errno in _EXHAUSTED:
                    _LOG.error("connections cannot be accepted: %s", error.strerror)
                    self._make_room()
                    await asyncio.sleep(_RECOVERY_SECONDS)
                continue
            handshake = asyncio.create_task(self._connect(plain), name="handshake")
            self._handshakes[handshake] = None
            handshake.add_done_callback(self._forget_handshake)
            if len(self._handshakes) > _MAX_HANDSHAKES:
                self._cancel_oldest_handshake()
            await asyncio.sleep(0)

    def _make_room(self) -> None:
        """Close a tenth of what clients without credentials hold open, and of the handshakes."""
        for _ in range(len(self._handshakes) // 10):
            self._cancel_oldest_handshake()
        for _ in range(len(self._connections) // 10):
            self._connections.close_unidentified()

    def _cancel_oldest_handshake(self) -> None:
        oldest = next(iter(self._handshakes))
        del self._handshakes[oldest]
        oldest.cancel()

    def _forget_handshake(self, handshake: asyncio.Task[None]) -> None:
        self._handshakes.pop(handshake, None)

    async def _connect(self, plain: socket.socket) -> None:
        try:
            timer = HandshakeTimer(plain, self._handshake)
            # no TLS state is allocated for clients that send nothing
            await timer.wait_for_client()
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await self._tls.connect(
                plain,
                self._protocol,
                timer=timer,
                linger=self._handshake,
                opened=self._connections.opened,
                closed=self._on_closed,
            )
        except (OSError, TimeoutError, HandshakeFailed) as error:
            self._tls.on_handshake_error()
            _send_and_close(plain, _NOT_HTTPS if isinstance(error, HandshakeFailed) and error.is_http else b"")
        except BaseException:
            plain.close()
            raise


def _send_and_close(plain: socket.socket, response: bytes) -> None:
    """Send a last response and close the socket. Bytes that the client sent are read first: if they were unread, the
    kernel would reset the connection, and the client would lose the response."""
    with plain, suppress(OSError):
        plain.send(response)
        plain.shutdown(socket.SHUT_WR)
        plain.recv(DISCARD_BYTES)
