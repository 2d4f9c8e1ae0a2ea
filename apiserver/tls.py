"""The listener's TLS: certificates and client CAs that are exchanged while it serves (A21 to A24, I12)."""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from apiserver.certificates import KeyPair

_LOG = logging.getLogger("apiserver.tls")
_POLL_SECONDS = 5.0

Sleep = Callable[[float], Awaitable[object]]


class ServerTls:
    """Asks clients for a certificate of one of `client_cas` (PEM bundles) but does not insist on one.

    A change makes a new SSLContext, which new connections get by the SNI callback: an old one would go on offering
    the previous certificate beside one of another key type, and trusting CAs that are gone. Which CA makes a client
    what is decided per request (x509.py).

    Making and changing one takes a millisecond and no disk, so it may be done on the event loop.
    """

    def __init__(self, pair: KeyPair, client_cas: bytes = b"") -> None:
        self._pair = pair
        self._client_cas = client_cas
        self._current = _context(pair, client_cas)
        self.listening = _context(pair, client_cas)
        """The context to listen with."""
        self.listening.sni_callback = self._choose

    @property
    def certificate(self) -> bytes:
        """The serving certificate, PEM."""
        return self._pair.certificate

    def replace_certificate(self, pair: KeyPair) -> None:
        """Raises ssl.SSLError or ValueError, and changes nothing, for a pair that does not fit together."""
        self._replace(pair, self._client_cas)

    def replace_client_cas(self, pem: bytes) -> None:
        """Raises ssl.SSLError or ValueError, and changes nothing, for a bad bundle."""
        self._replace(self._pair, pem)

    def _replace(self, pair: KeyPair, client_cas: bytes) -> None:
        if (pair, client_cas) != (self._pair, self._client_cas):
            self._current = _context(pair, client_cas)
            self._pair, self._client_cas = pair, client_cas
            # a connection keeps this one of its first context
            self.listening.verify_mode = self._current.verify_mode

    def _choose(self, connection: ssl.SSLSocket | ssl.SSLObject, name: str | None, _: ssl.SSLContext) -> None:
        connection.context = self._current


async def follow_files(certificate: Path, key: Path, tls: ServerTls, *, sleep: Sleep = asyncio.sleep) -> None:
    """Reload the pair whenever its files change, for ever. A pair that is half written is looked at again."""
    seen = None
    while True:
        now = await asyncio.to_thread(_stamp, certificate, key)
        if now is not None and now != seen:
            try:
                await asyncio.to_thread(lambda: tls.replace_certificate(read_pair(certificate, key)))
                seen = now
            except (OSError, ValueError) as error:
                _LOG.warning("the serving certificate cannot be reloaded: %s", error)
        await sleep(_POLL_SECONDS)


def read_pair(certificate: Path, key: Path) -> KeyPair:
    """Raises OSError."""
    return KeyPair(certificate.read_bytes(), key.read_bytes())


async def follow_file(path: Path, changed: Callable[[bytes], None], *, sleep: Sleep = asyncio.sleep) -> None:
    """Tell `changed` the content of a file whenever it changes, for ever.

    `changed` runs in a thread and may raise ValueError to refuse; then it is told again.
    """
    seen = None
    while True:
        now = await asyncio.to_thread(_stamp, path)
        if now is not None and now != seen:
            try:
                await asyncio.to_thread(lambda: changed(path.read_bytes()))
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


def _context(pair: KeyPair, client_cas: bytes) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    # a resumed session lacks the intermediates of the client's chain, and remembers CAs that may be gone
    context.num_tickets = 0
    context.options |= ssl.OP_NO_TICKET
    # a CA of the bundle need not be a root
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    with _file(pair.certificate) as certificate, _file(pair.key) as key:
        context.load_cert_chain(certificate, key, password=_no_password)
    if client_cas.strip():
        context.load_verify_locations(cadata=client_cas.decode("ascii", "replace"))
        context.verify_mode = ssl.CERT_OPTIONAL
    return context


def _no_password() -> str:
    """OpenSSL would ask on the terminal."""
    raise ValueError("the private key is encrypted")


@contextmanager
def _file(content: bytes) -> Iterator[str]:
    """`ssl` reads certificates from files only; a private key should not come to lie on a disk for that."""
    if not hasattr(os, "memfd_create"):
        with tempfile.NamedTemporaryFile() as file:
            file.write(content)
            file.flush()
            yield file.name
        return
    descriptor = os.memfd_create("pem", os.MFD_CLOEXEC)
    try:
        os.pwrite(descriptor, content, 0)
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)
