"""A TLS connection on which a test sends every byte itself and sees how the connection ends."""

from __future__ import annotations

import http.client
import socket
import ssl
from collections.abc import Mapping
from types import TracebackType
from urllib.parse import urlsplit

from multidict import CIMultiDict

from tests.e2e.support.http.https_client import Client, Response

SECONDS = 60.0


class RawTls:
    """An end without a TLS close_notify, or a reset, raises OSError."""

    def __init__(self, client: Client, *, seconds: float = SECONDS) -> None:
        parts = urlsplit(client.url)
        assert parts.hostname is not None
        plain = socket.create_connection((parts.hostname, parts.port), timeout=seconds)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._tls = client.tls.wrap_socket(plain, server_hostname=parts.hostname, suppress_ragged_eofs=False)
        self._headers = client.headers

    def __enter__(self) -> RawTls:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._tls.close()

    def send(self, data: bytes) -> None:
        self._tls.sendall(data)

    def send_request_head(
        self, method: str, target: str, headers: Mapping[str, str] | None = None, version: str = "1.1"
    ) -> None:
        """Sends the request line and the headers."""
        fields = CIMultiDict(self._headers)
        fields["Host"] = "localhost"
        fields.update(headers or {})
        lines = [f"{method} {target} HTTP/{version}", *(f"{name}: {value}" for name, value in fields.items())]
        self.send("\r\n".join([*lines, "", ""]).encode("latin-1"))

    def send_request_lines(self, method: str, target: str, *lines: str) -> None:
        """Sends the request line, the headers of the client and then these lines unchanged."""
        own = [f"{name}: {value}" for name, value in self._headers.items()]
        head = [f"{method} {target} HTTP/1.1", "Host: localhost", *own, *lines]
        self.send("\r\n".join([*head, "", ""]).encode("latin-1"))

    def read_response(self) -> Response:
        """Returns the next response."""
        response = http.client.HTTPResponse(self._tls)
        response.begin()
        return Response(response.status, response.headers, response.read())

    def read_until(self, end: bytes) -> bytes:
        """Returns everything up to and including `end`, and any bytes that arrived with it."""
        received = b""
        while end not in received:
            received += self._receive()
        return received

    def read_to_end(self) -> bytes:
        """Returns everything up to the end of the connection."""
        received = b""
        while more := self._tls.recv(65536):
            received += more
        return received

    def _receive(self) -> bytes:
        data = self._tls.recv(65536)
        if not data:
            raise ssl.SSLEOFError("the connection has ended")
        return data
