"""The TLS of a listener: its certificate and client CAs, which can be replaced while it serves (WIRE-A21 to
WIRE-A24)."""

from __future__ import annotations

import asyncio
import socket
from abc import ABC, abstractmethod
from collections.abc import Callable

from apiserver.tls.certificates import KeyPair
from apiserver.tls.handshake import HandshakeTimer


class HandshakeFailed(Exception):
    """The client did not complete the handshake. `is_http`: it sent an HTTP request without TLS."""

    def __init__(self, message: str, *, is_http: bool = False) -> None:
        super().__init__(message)
        self.is_http = is_http


class ServerTls(ABC):
    """The serving certificate and the client CAs of a listener, which can be replaced while it serves.

    No resumed session, no renegotiation; TLS 1.2 and later. A change makes a new context, which new connections get.
    Making one takes a millisecond and no disk, so it is done on the event loop: two changes at once, in threads, would
    undo each other.
    """

    def __init__(
        self, pair: KeyPair, client_cas: bytes = b"", *, on_handshake_error: Callable[[], None] = lambda: None
    ) -> None:
        """`client_cas` are PEM bundles. Raises ValueError for a pair that does not fit together, or a bad bundle."""
        self._pair = pair
        self._client_cas = client_cas
        self._use(pair, client_cas)
        self.on_handshake_error = on_handshake_error

    @property
    def certificate(self) -> bytes:
        """The serving certificate, PEM."""
        return self._pair.certificate

    def replace_certificate(self, pair: KeyPair) -> None:
        """Raises ValueError, and changes nothing, for a pair that does not fit together."""
        self._replace(pair, self._client_cas)

    def replace_client_cas(self, pem: bytes) -> None:
        """Raises ValueError, and changes nothing, for a bad bundle."""
        self._replace(self._pair, pem)

    def _replace(self, pair: KeyPair, client_cas: bytes) -> None:
        if (pair, client_cas) != (self._pair, self._client_cas):
            self._use(pair, client_cas)
            self._pair, self._client_cas = pair, client_cas

    @abstractmethod
    def _use(self, pair: KeyPair, client_cas: bytes) -> None:
        """Make the context that new connections get. Raises ValueError, and changes nothing."""

    @abstractmethod
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
        """Do the handshake on an accepted socket, and start a protocol on it.

        `linger` is the seconds that a client has, after the connection is closed, to read what was sent. `opened` and
        `closed` are called with the connection's transport. Raises HandshakeFailed, OSError or TimeoutError.
        """
