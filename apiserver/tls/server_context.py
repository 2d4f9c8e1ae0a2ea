"""The TLS configuration of a listener; it can be replaced while the listener serves (WIRE-A21 to WIRE-A24)."""

from __future__ import annotations

import asyncio
import socket
from abc import ABC, abstractmethod
from collections.abc import Callable

from apiserver.tls.certificates import KeyPair
from apiserver.tls.handshake import HandshakeTimer


class HandshakeFailed(Exception):
    """The client did not complete the handshake. `is_http` is set if it sent an HTTP request without TLS."""

    def __init__(self, message: str, *, is_http: bool = False) -> None:
        super().__init__(message)
        self.is_http = is_http


class ServerTls(ABC):
    """The serving certificate and the client CAs of a listener, which can be replaced while it serves.

    TLS 1.2 or later, without session resumption and renegotiation. A change creates a new context, which is used for
    new connections. Creating it takes a millisecond and does not access the disk, so it runs on the event loop: two
    concurrent changes in threads could undo each other.
    """

    def __init__(
        self, pair: KeyPair, client_cas: bytes = b"", *, on_handshake_error: Callable[[], None] = lambda: None
    ) -> None:
        """`client_cas` are PEM bundles. Raises ValueError if the key does not belong to the certificate, or for an
        invalid bundle."""
        self._pair = pair
        self._client_cas = client_cas
        self._use(pair, client_cas)
        self.on_handshake_error = on_handshake_error

    @property
    def certificate(self) -> bytes:
        """The serving certificate, PEM."""
        return self._pair.certificate

    def replace_certificate(self, pair: KeyPair) -> None:
        """Raises ValueError, and changes nothing, if the key does not belong to the certificate."""
        self._replace(pair, self._client_cas)

    def replace_client_cas(self, pem: bytes) -> None:
        """Raises ValueError, and changes nothing, for an invalid bundle."""
        self._replace(self._pair, pem)

    def _replace(self, pair: KeyPair, client_cas: bytes) -> None:
        if (pair, client_cas) != (self._pair, self._client_cas):
            self._use(pair, client_cas)
            self._pair, self._client_cas = pair, client_cas

    @abstractmethod
    def _use(self, pair: KeyPair, client_cas: bytes) -> None:
        """Create the context of new connections. Raises ValueError, and changes nothing, for invalid arguments."""

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
        """Perform the handshake on an accepted socket, and start a protocol on it.

        `linger` is the number of seconds that a client has to read the remaining data after the connection is closed.
        `opened` and `closed` are called with the connection's transport. Raises HandshakeFailed, OSError or
        TimeoutError.
        """
