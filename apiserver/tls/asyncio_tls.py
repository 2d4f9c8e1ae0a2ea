"""TLS with asyncio's own transports: the fallback that `--tls-transport asyncio` selects.

It uses only documented APIs of asyncio and ssl, but is slower and needs more memory (transport.py has figures). Other
differences: a client certificate that no client CA issued fails the handshake instead of getting a 401; the handshake
does not name the client CAs; TLS 1.2 sessions can be resumed; before Python 3.13, intermediates of clients are ignored.
"""

from __future__ import annotations

import asyncio
import mmap
import os
import socket
import ssl
from collections.abc import Callable
from typing import Final, cast

from apiserver.tls.certificates import KeyPair
from apiserver.tls.handshake import HandshakeTimer
from apiserver.tls.openssl_tls import CIPHERS, make_context
from apiserver.tls.server_context import HandshakeFailed, ServerTls

_HTTP_METHODS: Final = frozenset({b"GET ", b"HEAD", b"POST", b"PUT ", b"DELE", b"PATC", b"OPTI"})
"""The first four bytes of HTTP requests."""


class AsyncioServerTls(ServerTls):
    """TLS with Python's ssl, which encrypts between memory buffers of the event loop."""

    _context: ssl.SSLContext

    def _use(self, pair: KeyPair, client_cas: bytes) -> None:
        # called only to validate: its errors are clearer than those of ssl
        make_context(pair, client_cas)
        self._context = _make_context(pair, client_cas)

    async def connect(
        self,
        plain: socket.socket,
        protocol: Callable[[], asyncio.Protocol],
        *,
        timer: HandshakeTimer,
        linger: float,
        opened: Callable[[asyncio.Transport], None],
        closed: Callable[[asyncio.Transport], None],
    ) -> None:
        if plain.recv(4, socket.MSG_PEEK) in _HTTP_METHODS:
            raise HandshakeFailed("http request", is_http=True)
        loop = asyncio.get_running_loop()
        try:
            await loop.connect_accepted_socket(
                lambda: _ObservedProtocol(protocol, opened, closed),
                plain,
                ssl=self._context,
                ssl_handshake_timeout=timer.left,
                ssl_shutdown_timeout=linger,
            )
        except ssl.SSLError as error:
            raise HandshakeFailed(str(error)) from error


class _ObservedProtocol(asyncio.Protocol):
    """Creates the actual protocol once the connection is established, and reports its opening and closing."""

    _inner: asyncio.Protocol
    _transport: asyncio.Transport

    def __init__(
        self,
        protocol: Callable[[], asyncio.Protocol],
        opened: Callable[[asyncio.Transport], None],
        closed: Callable[[asyncio.Transport], None],
    ) -> None:
        self._protocol = protocol
        self._opened = opened
        self._closed = closed

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are not subclasses of asyncio's
        self._transport = cast(asyncio.Transport, transport)
        self._inner = self._protocol()
        self._opened(self._transport)
        self._inner.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        return self._inner.eof_received()

    def pause_writing(self) -> None:
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._inner.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._inner.connection_lost(exc)
        self._closed(self._transport)


def _make_context(pair: KeyPair, client_cas: bytes) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(CIPHERS)
    context.num_tickets = 0
    context.options |= ssl.OP_NO_TICKET | ssl.OP_NO_RENEGOTIATION | ssl.OP_CIPHER_SERVER_PREFERENCE
    context.options |= ssl.OP_IGNORE_UNEXPECTED_EOF
    context.set_alpn_protocols(["http/1.1"])
    _load_pair(context, pair)
    if client_cas.strip():
        context.verify_mode = ssl.CERT_OPTIONAL
        context.load_verify_locations(cadata=client_cas.decode("ascii", "ignore"))
    return context


def _load_pair(context: ssl.SSLContext, pair: KeyPair) -> None:
    """Load the pair from an anonymous file in memory, because Python's ssl reads keys only from files."""
    content = pair.key.rstrip() + b"\n" + pair.certificate
    descriptor = os.memfd_create("serving-certificate")
    try:
        os.ftruncate(descriptor, len(content))
        with mmap.mmap(descriptor, len(content)) as memory:
            memory.write(content)
        context.load_cert_chain(f"/proc/self/fd/{descriptor}")
    finally:
        os.close(descriptor)
