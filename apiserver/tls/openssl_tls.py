"""TLS by OpenSSL directly on the sockets: the default of `--tls-transport`."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Sequence
from typing import Any, Final

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from OpenSSL import SSL

from apiserver.tls.certificates import KeyPair, parse_bundle
from apiserver.tls.handshake import HandshakeTimer
from apiserver.tls.server_context import HandshakeFailed, ServerTls
from apiserver.tls.transport import TlsTransport, reason_of

CIPHERS: Final = "ECDHE+AESGCM:ECDHE+CHACHA20"
"""The ciphers of TLS 1.2. Those of TLS 1.3 are not restricted."""
# SSL_MODE_ENABLE_PARTIAL_WRITE, which pyOpenSSL enables but does not export
_PARTIAL_WRITE: Final = 1


class OpenSslServerTls(ServerTls):
    """TLS by OpenSSL on the sockets of the connections (transport.py).

    Clients are requested, but not required, to send a certificate of one of the client CAs. The handshake accepts any
    certificate; x509.py verifies it for each request and rejects an invalid one with 401 (WIRE-A21).
    """

    _context: SSL.Context

    def __init__(
        self, pair: KeyPair, client_cas: bytes = b"", *, on_handshake_error: Callable[[], None] = lambda: None
    ) -> None:
        super().__init__(pair, client_cas, on_handshake_error=on_handshake_error)
        self._handshake_lock = asyncio.Lock()

    def _use(self, pair: KeyPair, client_cas: bytes) -> None:
        self._context = make_context(pair, client_cas)

    def accept(self, plain: socket.socket) -> SSL.Connection:
        """The server side of a connection, before its handshake."""
        connection = SSL.Connection(self._context, plain)
        connection.set_accept_state()
        return connection

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
        tls = self.accept(plain)
        try:
            await self._do_handshake(tls, timer)
        except SSL.Error as error:
            reason = reason_of(error)
            raise HandshakeFailed(reason, is_http=reason == "http request") from error
        transport = TlsTransport(plain, tls, protocol(), linger=linger, closed=closed)
        opened(transport)
        transport.start()

    async def _do_handshake(self, tls: SSL.Connection, timer: HandshakeTimer) -> None:
        """Raises SSL.Error, OSError or TimeoutError."""
        while True:
            # a step takes milliseconds, so the event loop runs other callbacks between any two steps
            async with self._handshake_lock:
                await asyncio.sleep(0)
                try:
                    tls.do_handshake()
                    return
                except SSL.WantReadError:
                    writing = False
                except SSL.WantWriteError:
                    writing = True
            await timer.wait_for_client(writing=writing)


def make_context(pair: KeyPair, client_cas: bytes) -> SSL.Context:
    """Raises ValueError if the key does not belong to the certificate, or for an invalid CA bundle."""
    context = SSL.Context(SSL.TLS_SERVER_METHOD)
    context.set_min_proto_version(SSL.TLS1_2_VERSION)
    context.set_cipher_list(CIPHERS.encode())
    # a resumed session does not contain the certificates of the client
    context.set_session_cache_mode(SSL.SESS_CACHE_OFF)
    context.set_options(SSL.OP_NO_TICKET | SSL.OP_NO_RENEGOTIATION | SSL.OP_CIPHER_SERVER_PREFERENCE)
    # HTTP messages carry their own length, so truncation is detected without TLS
    context.set_options(SSL.OP_IGNORE_UNEXPECTED_EOF)
    context.set_alpn_select_callback(_http_1_1)
    # saves memory, because most connections are idle watches
    context.set_mode(SSL.MODE_RELEASE_BUFFERS)
    # with partial writes, sending a large response would return to Python after each record of 16 KiB
    context.clear_mode(_PARTIAL_WRITE)
    _load(context, pair)
    authorities = parse_bundle(client_cas)
    if client_cas.strip() and not authorities:
        raise ValueError("the CA bundle holds no certificate")
    for authority in authorities:
        context.add_client_ca(authority)
    if authorities:
        context.set_verify(SSL.VERIFY_PEER, _accept_any)
    return context


def _load(context: SSL.Context, pair: KeyPair) -> None:
    chain = parse_bundle(pair.certificate)
    if not chain:
        raise ValueError("there is no serving certificate")
    try:
        key = load_pem_private_key(pair.key, password=None)
    except (TypeError, UnsupportedAlgorithm) as error:
        raise ValueError(f"the private key cannot be used: {error}") from error
    if not isinstance(key, RSAPrivateKey | EllipticCurvePrivateKey | Ed25519PrivateKey):
        raise ValueError("the type of the private key is not supported")
    try:
        context.use_certificate(chain[0])
        for each in chain[1:]:
            context.add_extra_chain_cert(each)
        context.use_privatekey(key)
        context.check_privatekey()
    except SSL.Error as error:
        raise ValueError(f"certificate and key cannot be used: {reason_of(error)}") from error


def _accept_any(*_: object) -> bool:
    """Accepts every certificate: it is verified for each request, not in the handshake."""
    return True


def _http_1_1(_: SSL.Connection, offered: Sequence[bytes]) -> Any:
    return b"http/1.1" if b"http/1.1" in offered else SSL.NO_OVERLAPPING_PROTOCOLS
