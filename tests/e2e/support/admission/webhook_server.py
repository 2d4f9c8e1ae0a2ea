"""A real HTTPS server of admission webhooks, in the test's own process."""

from __future__ import annotations

import itertools
import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from apiserver.tls import certificates

NAMES = ("127.0.0.1", "localhost", "hook.webhooks.svc")


@dataclass(frozen=True, slots=True)
class RawReply:
    """A response that is sent unchanged; with `cut`, the connection is closed instead."""

    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    cut: bool = False


@dataclass(frozen=True, slots=True)
class WebhookCall:
    """A received request; `target` is its path with the query, `connection` the address of the client."""

    target: str
    headers: Mapping[str, str]
    review: dict[str, Any]
    connection: tuple[str, int]
    number: int
    """The position among all requests of the server."""

    @property
    def request(self) -> dict[str, Any]:
        found: dict[str, Any] = self.review["request"]
        return found


AdmissionResponse = Mapping[str, Any]
"""An AdmissionResponse; a missing uid is filled in."""

ResponderResult = AdmissionResponse | RawReply
Responder = Callable[[dict[str, Any]], ResponderResult]
"""Computes the result from the AdmissionRequest."""


class WebhookServer:
    """Serves from construction to `stop`; each path has a responder."""

    def __init__(self, directory: Path) -> None:
        ca = certificates.make_ca("webhooks-ca")
        self.ca = ca.certificate
        pair = certificates.make_serving(ca, NAMES)
        certificate, key = directory / "webhooks.crt", directory / "webhooks.key"
        certificate.write_bytes(pair.certificate)
        key.write_bytes(pair.key)
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(certificate, key)
        self._responders: dict[str, Responder] = {}
        self._calls: dict[str, list[WebhookCall]] = {}
        self._lock = threading.Lock()
        self.numbers = itertools.count()
        self.open_connections = 0
        """The number of open connections."""
        self._server = _Server(self, tls)
        self.port: int = self._server.server_address[1]
        self.url = f"https://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._server.serve_forever, name="webhooks")
        self._thread.start()

    def respond_with(self, path: str, responder: Responder | ResponderResult) -> None:
        """Sets the responder of a path, or the result that it always returns."""
        self._responders[path] = responder if callable(responder) else lambda _: responder

    def calls(self, path: str) -> list[WebhookCall]:
        """The requests to a path, in order of arrival."""
        with self._lock:
            return list(self._calls.get(path, ()))

    def forget_calls(self, path: str) -> None:
        with self._lock:
            self._calls.pop(path, None)

    @contextmanager
    def serve_plain_http(self) -> Iterator[int]:
        """Yields the port of an HTTP server without TLS."""
        server = HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
        thread = threading.Thread(target=server.serve_forever, name="plain")
        thread.start()
        yield int(server.server_address[1])
        server.shutdown()
        server.server_close()
        thread.join()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @contextmanager
    def count_connection(self) -> Iterator[None]:
        with self._lock:
            self.open_connections += 1
        try:
            yield
        finally:
            with self._lock:
                self.open_connections -= 1

    def answer(self, call: WebhookCall) -> RawReply:
        path = urlsplit(call.target).path
        with self._lock:
            self._calls.setdefault(path, []).append(call)
        responder = self._responders.get(path)
        if responder is None:
            return RawReply(b"no such webhook", 404, {"Content-Type": "text/plain"})
        answer = responder(call.request)
        if isinstance(answer, RawReply):
            return answer
        version = call.review["apiVersion"]
        response = {"uid": call.request["uid"], **answer}
        return RawReply(json.dumps({"apiVersion": version, "kind": "AdmissionReview", "response": response}).encode())


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    # a full backlog would delay a connection by a second
    request_queue_size = 128

    def __init__(self, hooks: WebhookServer, tls: ssl.SSLContext) -> None:
        self.hooks = hooks
        self._tls = tls
        super().__init__(("127.0.0.1", 0), _Handler)

    def finish_request(self, request: Any, client_address: Any) -> None:
        """Runs in the thread of the connection, so that a stalled handshake blocks no other client."""
        try:
            with self.hooks.count_connection(), self._tls.wrap_socket(request, server_side=True) as connection:
                super().finish_request(connection, client_address)
        except OSError:
            # the client does not trust the certificate or did not wait for the response
            pass


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        assert isinstance(self.server, _Server)
        hooks = self.server.hooks
        call = WebhookCall(
            self.path, dict(self.headers.items()), json.loads(body), self.client_address, next(hooks.numbers)
        )
        reply = hooks.answer(call)
        if reply.cut:
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
            return
        self.send_response(reply.status)
        headers = {"Content-Type": "application/json", **reply.headers, "Content-Length": str(len(reply.body))}
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(reply.body)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Writes no access log."""
