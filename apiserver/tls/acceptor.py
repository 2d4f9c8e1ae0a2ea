"""How clients come in: connections are accepted and shake hands in turns with everything else that is going on."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from OpenSSL import SSL

from apiserver.tls.server_context import ServerTls
from apiserver.tls.transport import DISCARDED, TlsTransport, reason_of

_LOG = logging.getLogger("apiserver.accepting")
_BACKLOG: Final = 1024
# what accept() says of this process or machine, not of the connection
_EXHAUSTED: Final = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_RECOVERY_SECONDS: Final = 1.0
# as Go's servers, and so Kubernetes' own
_NOT_HTTPS: Final = b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n"


class Acceptor:
    """An open port. `handshake` is the seconds that a client has for its handshake, and to hear of the end."""

    def __init__(
        self, bound: socket.socket, tls: ServerTls, protocol: Callable[[], asyncio.Protocol], *, handshake: float
    ) -> None:
        """Raises OSError if somebody else listens on the port. `bound` is this object's from now on."""
        bound.setblocking(False)
        bound.listen(_BACKLOG)
        self.port: int = bound.getsockname()[1]
        self._listening = bound
        self._tls = tls
        self._protocol = protocol
        self._handshake = handshake
        self._turn = asyncio.Lock()
        self._newcomers: set[asyncio.Task[None]] = set()
        self._connected: set[TlsTransport] = set()
        self._empty = asyncio.Event()
        self._accepting = asyncio.create_task(self._accept(), name="accept")

    async def close(self) -> None:
        """Nobody comes in any more. Who is in stays."""
        self._accepting.cancel()
        await asyncio.wait([self._accepting])
        self._listening.close()
        newcomers = tuple(self._newcomers)
        for newcomer in newcomers:
            newcomer.cancel()
        await asyncio.gather(*newcomers, return_exceptions=True)

    async def emptied(self, *, within: float) -> None:
        """Wait until everybody is gone, then cut those who are not."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within):
                while self._connected:
                    self._empty.clear()
                    await self._empty.wait()
        for transport in tuple(self._connected):
            transport.abort()

    def _gone(self, transport: TlsTransport) -> None:
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
            newcomer = asyncio.create_task(self._welcome(plain), name="handshake")
            self._newcomers.add(newcomer)
            newcomer.add_done_callback(self._newcomers.discard)
            await asyncio.sleep(0)

    async def _welcome(self, plain: socket.socket) -> None:
        try:
            patience = _Patience(plain, self._handshake)
            # it costs nothing to have those wait who say nothing
            await patience.ready()
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            tls = self._tls.accept(plain)
            await self._shake_hands(tls, patience)
            transport = TlsTransport(plain, tls, self._protocol(), linger=self._handshake, closed=self._gone)
            self._connected.add(transport)
            transport.start()
        except (SSL.Error, OSError, TimeoutError) as error:
            self._tls.on_handshake_error()
            _dismiss(plain, _NOT_HTTPS if isinstance(error, SSL.Error) and reason_of(error) == "http request" else b"")
        except BaseException:
            plain.close()
            raise

    async def _shake_hands(self, tls: SSL.Connection, patience: _Patience) -> None:
        while True:
            # a step takes milliseconds: one at a time, and everybody else's work between two of them
            async with self._turn:
                await asyncio.sleep(0)
                try:
                    tls.do_handshake()
                    return
                except SSL.WantReadError:
                    writing = False
                except SSL.WantWriteError:
                    writing = True
            await patience.ready(writing=writing)


class _Patience:
    """The seconds that a client has for its part. While it waits for its turn, none of them pass."""

    def __init__(self, plain: socket.socket, seconds: float) -> None:
        self._plain = plain
        self._left = seconds

    async def ready(self, *, writing: bool = False) -> None:
        """Wait for the client. Raises TimeoutError."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        async with asyncio.timeout(self._left):
            await _ready(self._plain, writing=writing)
        self._left -= loop.time() - began


def _dismiss(plain: socket.socket, word: bytes) -> None:
    """Close the socket, after a last word, such that the client hears what was said: what of the client's is unread
    would reset the connection."""
    with plain, suppress(OSError):
        plain.send(word)
        plain.shutdown(socket.SHUT_WR)
        plain.recv(DISCARDED)


async def _ready(plain: socket.socket, *, writing: bool = False) -> None:
    """Wait until there is something to read, or something can be written."""
    loop = asyncio.get_running_loop()
    ready = loop.create_future()

    def notice() -> None:
        if not ready.done():
            ready.set_result(None)

    (loop.add_writer if writing else loop.add_reader)(plain, notice)
    try:
        await ready
    finally:
        (loop.remove_writer if writing else loop.remove_reader)(plain)
