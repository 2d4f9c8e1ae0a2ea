"""The listener's TLS: certificates and client CAs that are exchanged while it serves (WIRE-A21 to WIRE-A24,
WIRE-I12)."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from OpenSSL import SSL

from apiserver.tls.certificates import KeyPair, parse_bundle
from apiserver.tls.transport import reason_of

_LOG = logging.getLogger("apiserver.tls")
_POLL_SECONDS = 5.0
# of TLS 1.2; those of 1.3 are all good
_CIPHERS = b"ECDHE+AESGCM:ECDHE+CHACHA20"
# SSL_MODE_ENABLE_PARTIAL_WRITE, which pyOpenSSL sets and gives no name
_PARTIAL_WRITE = 1

Sleep = Callable[[float], Awaitable[object]]


class ServerTls:
    """Asks clients for a certificate, names those that CAs of `client_cas` (PEM bundles) issued as acceptable, and
    insists on none. No certificate fails the handshake: whether a CA vouches for it, and for what, is decided per
    request (x509.py), where a bad one is a 401 (WIRE-A21).

    A change makes a new context, which new connections get. Making one takes a millisecond and no disk, so it is done
    on the event loop: two changes at once, in threads, would undo each other.
    """

    def __init__(
        self, pair: KeyPair, client_cas: bytes = b"", *, on_handshake_error: Callable[[], None] = lambda: None
    ) -> None:
        self._pair = pair
        self._client_cas = client_cas
        self._current = _context(pair, client_cas)
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
            self._current = _context(pair, client_cas)
            self._pair, self._client_cas = pair, client_cas

    def accept(self, plain: socket.socket) -> SSL.Connection:
        """The server's side of a connection that is to shake hands."""
        connection = SSL.Connection(self._current, plain)
        connection.set_accept_state()
        return connection


async def follow_files(certificate: Path, key: Path, tls: ServerTls, *, sleep: Sleep = asyncio.sleep) -> None:
    """Reload the pair whenever its files change, for ever. A pair that is half written is looked at again."""
    seen = None
    while True:
        now = await asyncio.to_thread(_stamp, certificate, key)
        if now is not None and now != seen:
            try:
                tls.replace_certificate(await asyncio.to_thread(read_pair, certificate, key))
                seen = now
            except (OSError, ValueError) as error:
                _LOG.warning("the serving certificate cannot be reloaded: %s", error)
        await sleep(_POLL_SECONDS)


def read_pair(certificate: Path, key: Path) -> KeyPair:
    """Raises OSError."""
    return KeyPair(certificate.read_bytes(), key.read_bytes())


async def follow_file(path: Path, changed: Callable[[bytes], None], *, sleep: Sleep = asyncio.sleep) -> None:
    """Tell `changed` the content of a file whenever it changes, for ever.

    `changed` may raise ValueError to refuse; then it is told again.
    """
    seen = None
    while True:
        now = await asyncio.to_thread(_stamp, path)
        if now is not None and now != seen:
            try:
                changed(await asyncio.to_thread(path.read_bytes))
                seen = now
            except (OSError, ValueError) as error:
                _LOG.warning("%s cannot be reloaded: %s", path.name, error)
        await sleep(_POLL_SECONDS)


def _stamp(*paths: Path) -> tuple[tuple[int, int, int], ...] | None:
    """What changes with the files. Mounted Secrets are exchanged by a link, so the inode counts too."""
    try:
        stats = [path.stat() for path in paths]
    except OSError:
        return None
    return tuple((stat.st_mtime_ns, stat.st_size, stat.st_ino) for stat in stats)


def _context(pair: KeyPair, client_cas: bytes) -> SSL.Context:
    context = SSL.Context(SSL.TLS_SERVER_METHOD)
    context.set_min_proto_version(SSL.TLS1_2_VERSION)
    context.set_cipher_list(_CIPHERS)
    # a session that is resumed would not tell the client's chain again
    context.set_session_cache_mode(SSL.SESS_CACHE_OFF)
    context.set_options(SSL.OP_NO_TICKET | SSL.OP_NO_RENEGOTIATION | SSL.OP_CIPHER_SERVER_PREFERENCE)
    # HTTP says itself how long a message is
    context.set_options(SSL.OP_IGNORE_UNEXPECTED_EOF)
    context.set_alpn_select_callback(_http_1_1)
    # most connections are watches that wait
    context.set_mode(SSL.MODE_RELEASE_BUFFERS)
    # otherwise a large answer comes back after each record of 16 KiB
    context.clear_mode(_PARTIAL_WRITE)
    _load(context, pair)
    authorities = parse_bundle(client_cas)
    if client_cas.strip() and not authorities:
        raise ValueError("the CA bundle holds no certificate")
    for authority in authorities:
        context.add_client_ca(authority)
    if authorities:
        context.set_verify(SSL.VERIFY_PEER, _judged_later)
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
        raise ValueError("the private key is of a type that does not serve")
    try:
        context.use_certificate(chain[0])
        for each in chain[1:]:
            context.add_extra_chain_cert(each)
        context.use_privatekey(key)
        context.check_privatekey()
    except SSL.Error as error:
        raise ValueError(f"certificate and key do not serve: {reason_of(error)}") from error


def _judged_later(*_: object) -> bool:
    return True


def _http_1_1(_: SSL.Connection, offered: Sequence[bytes]) -> Any:
    return b"http/1.1" if b"http/1.1" in offered else SSL.NO_OVERLAPPING_PROTOCOLS
