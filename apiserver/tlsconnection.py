"""One TLS connection of the server, by OpenSSL itself: Python's ssl refuses what it cannot verify (A21)."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from OpenSSL import SSL, crypto

_RECORD = 16 * 1024
_CHUNK = 64 * 1024

T = TypeVar("T")


class TlsConnection:
    """What event loops call of an ssl.SSLObject, raising what it raises, between two memory buffers.

    `failed` is told once if the handshake does not come to its end, be it that the client goes away silently.
    """

    def __init__(
        self, context: SSL.Context, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, *, failed: Callable[[], None]
    ) -> None:
        self._connection = SSL.Connection(context, None)
        self._connection.set_accept_state()
        self._incoming = incoming
        self._outgoing = outgoing
        self._failed: Callable[[], None] | None = failed
        self._undecrypted = False

    def __del__(self) -> None:
        self._fail()

    def do_handshake(self) -> None:
        try:
            self._exchange(self._connection.do_handshake)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise
        except ssl.SSLError:
            self._fail()
            raise
        self._failed = None

    def read(self, length: int = _RECORD, buffer: Any = None) -> Any:
        """At most one record; b"" (0 into a buffer) once the client has said its last."""
        try:
            data = self._exchange(lambda: self._connection.recv(min(length, _RECORD)))
        except ssl.SSLZeroReturnError:
            data = b""
        if buffer is None:
            return data
        buffer[: len(data)] = data
        return len(data)

    def write(self, data: bytes | bytearray | memoryview) -> int:
        """All of it: the buffer has no end, event loops bound it themselves."""
        view = memoryview(data)
        for start in range(0, len(view), _CHUNK):
            self._translated(partial(self._connection.sendall, view[start : start + _CHUNK]))
            self._send()
        return len(view)

    def unwrap(self) -> None:
        """Say that this side is done, and hear the same of the client."""
        if not self._exchange(self._connection.shutdown):
            self._exchange(self._connection.shutdown)

    def pending(self) -> int:
        """Not zero if a read may find something."""
        return self._connection.pending() or int(self._undecrypted)

    def getpeercert(self, binary_form: bool = False) -> Any:
        """DER, None without a certificate. Only the binary form has anything in it: nothing here is verified."""
        certificate = self._connection.get_peer_certificate()
        if certificate is None:
            return None
        return _der(certificate) if binary_form else {}

    def get_unverified_chain(self) -> list[bytes]:
        """DER of the client's certificate and what it sent behind it."""
        certificate = self._connection.get_peer_certificate()
        if certificate is None:
            return []
        # OpenSSL's chain of a client does not begin with its own certificate
        return [_der(each) for each in (certificate, *(self._connection.get_peer_cert_chain() or ()))]

    def cipher(self) -> tuple[str, str, int] | None:
        name, version = self._connection.get_cipher_name(), self._connection.get_cipher_version()
        bits = self._connection.get_cipher_bits()
        return None if name is None or version is None or bits is None else (name, version, bits)

    def compression(self) -> None:
        """There is none."""

    def version(self) -> str:
        return self._connection.get_protocol_version_name()

    def selected_alpn_protocol(self) -> str | None:
        return self._connection.get_alpn_proto_negotiated().decode() or None

    def _fail(self) -> None:
        failed, self._failed = getattr(self, "_failed", None), None
        if failed is not None:
            failed()

    def _exchange(self, operation: Callable[[], T]) -> T:
        """Do it with all that has come in, and send what it makes."""
        while data := self._incoming.read(_CHUNK):
            self._undecrypted = True
            self._connection.bio_write(data)
        if self._incoming.eof:
            self._connection.bio_shutdown()
        try:
            return self._translated(operation)
        except ssl.SSLWantReadError:
            self._undecrypted = False
            raise
        finally:
            self._send()

    def _send(self) -> None:
        try:
            while True:
                self._outgoing.write(self._connection.bio_read(_CHUNK))
        except SSL.WantReadError:
            return

    @staticmethod
    def _translated(operation: Callable[[], T]) -> T:
        try:
            return operation()
        except SSL.WantReadError:
            raise ssl.SSLWantReadError(ssl.SSL_ERROR_WANT_READ, "more has to come in") from None
        except SSL.WantWriteError:
            raise ssl.SSLWantWriteError(ssl.SSL_ERROR_WANT_WRITE, "more has to go out") from None
        except SSL.ZeroReturnError:
            raise ssl.SSLZeroReturnError(ssl.SSL_ERROR_ZERO_RETURN, "the client closed the connection") from None
        except SSL.SysCallError as error:
            raise ssl.SSLEOFError(ssl.SSL_ERROR_EOF, "the connection ended in the middle") from error
        except SSL.Error as error:
            raise ssl.SSLError(ssl.SSL_ERROR_SSL, reason_of(error)) from error


def reason_of(error: SSL.Error) -> str:
    """OpenSSL's words, the innermost first."""
    queue = error.args[0] if error.args and isinstance(error.args[0], list) else []
    return "; ".join(entry[-1] for entry in queue) or "unknown"


def _der(certificate: crypto.X509) -> bytes:
    return crypto.dump_certificate(crypto.FILETYPE_ASN1, certificate)
