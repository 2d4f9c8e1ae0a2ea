"""Accepts connections, and starts a protocol on each of them once its TLS handshake is done.

Accepting and handshakes yield to the event loop after every step, so that a crowd of new clients delays nobody. How
a handshake is done and a transport made is decided by the ServerTls: on the socket itself, or by asyncio.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from apiserver.tls.handshake import HandshakeTimer
from apiserver.tls.server_context import HandshakeFailed, ServerTls
from apiserver.tls.transport import DISCARD_BYTES

_LOG = logging.getLogger("apiserver.accepting")
_BACKLOG: Final = 1024
# Errors of accept() that concern this process or machine, not the connection.
_EXHAUSTED: Final = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_RECOVERY_SECONDS: Final = 1.0
# The answer of Go's servers, and so of Kubernetes' own.
_NOT_HTTPS: Final = b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n"


class Acceptor:
    """An open port. `handshake` is the seconds that a client has for its handshake, and to read a last answer."""

    def __init__(
        self, bound: socket.socket, tls: ServerTls, protocol: Callable[[], asyncio.Protocol], *, handshake: float
    ) -> None:
        """Takes over `bound`. Raises OSError if another process listens on the port."""
        bound.setblocking(False)
        bound.listen(_BACKLOG)
        self.port: int = bound.getsockname()[1]
        self._listening = bound
        self._tls = tls
        self._protocol = protocol
        self._handshake = handshake
        self._handshakes: set[asyncio.Task[None]] = set()
        self._connected: set[asyncio.Transport] = set()
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

    async def emptied(self, *, within: float) -> None:
        """Wait until all connections are closed, at most `within` seconds, then abort the remaining ones."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within):
                while self._connected:
                    self._empty.clear()
                    await self._empty.wait()
        for transport in tuple(self._connected):
            transport.abort()

    def _on_closed(self, transport: asyncio.Transport) -> None:
        self._connected.discard(transport)
        if not self._connected:
            self._empty.set()

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                plain, _ = await loop.sock_accept(self._listening)
            except OSError as error:
                if error.errno in _EXHAUSTED:
                    _LOG.error("connections cannot be accepted: %s", error.strerror)
                    await asyncio.sleep(_RECOVERY_SECONDS)
                continue
            handshake = asyncio.create_task(self._connect(plain), name="handshake")
            self._handshakes.add(handshake)
            handshake.add_done_callback(self._handshakes.discard)
            await asyncio.sleep(0)

    async def _connect(self, plain: socket.socket) -> None:
        try:
            timer = HandshakeTimer(plain, self._handshake)
            # A client that sends nothing costs nothing yet.
            await timer.wait_for_client()
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await self._tls.connect(
                plain,
                self._protocol,
                timer=timer,
                linger=self._handshake,
                opened=self._connected.add,
                closed=self._on_closed,
            )
        except (OSError, TimeoutError, HandshakeFailed) as error:
            self._tls.on_handshake_error()
            _dismiss(plain, _NOT_HTTPS if isinstance(error, HandshakeFailed) and error.is_http else b"")
        except BaseException:
            plain.close()
            raise


def _dismiss(plain: socket.socket, answer: bytes) -> None:
    """Send a last answer and close the socket. Unread bytes of the client are read first: they would make the kernel
    reset the connection, and the client would lose the answer."""
    with plain, suppress(OSError):
        plain.send(answer)
        plain.shutdown(socket.SHUT_WR)
        plain.recv(DISCARD_BYTES)
