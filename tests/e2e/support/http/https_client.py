"""Raw HTTPS, so that a test controls and sees every header."""

from __future__ import annotations

import gzip
import http.client
import json
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode, urlsplit

from multidict import CIMultiDict

from tests.e2e.support.http.idle_connections import IdleConnections

_SECONDS = 120.0
_CONFLICTS = 20
_RETRIES = 20
_IDLE = IdleConnections()
# requests with these headers may leave a connection in a state of their own
_CONNECTION_HEADERS = {"connection", "content-length", "expect", "transfer-encoding", "upgrade"}
Body = bytes | str | dict[str, Any] | list[Any] | None


@dataclass(frozen=True, slots=True)
class Response:
    """A complete response; `headers` is case-insensitive."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes

    def json(self) -> Any:
        return json.loads(self.content)

    @property
    def content(self) -> bytes:
        return gzip.decompress(self.body) if self.headers.get("Content-Encoding") == "gzip" else self.body

    @property
    def warnings(self) -> list[str]:
        return self.headers.get_all("Warning") or []

    def expect(self, status: int) -> Any:
        """Returns the JSON body; fails unless the response has this status."""
        assert self.status == status, f"status {self.status}, expected {status}: {self.content[:2000]!r}"
        return self.json()


@dataclass(frozen=True, slots=True)
class Client:
    """Sends requests to one server as one user, each with `headers`."""

    url: str
    tls: ssl.SSLContext
    headers: Mapping[str, str]

    def request(
        self,
        method: str,
        path: str,
        body: Body = None,
        *,
        query: Mapping[str, object] | None = None,
        headers: Mapping[str, str] | None = None,
        content_type: str = "application/json",
        seconds: float = _SECONDS,
    ) -> Response:
        """Sends bytes and text unchanged, and any other body as JSON."""
        sent = self._headers(headers, body, content_type)
        reusable = _CONNECTION_HEADERS.isdisjoint(name.lower() for name in sent)
        connection = (_IDLE.take(self.url, self.tls) if reusable else None) or self.connect(seconds)
        if connection.sock is not None:
            connection.sock.settimeout(seconds)
        try:
            connection.request(method, _target(path, query), _encode(body), sent)
            response = connection.getresponse()
            found = Response(response.status, response.headers, response.read())
        except BaseException:
            connection.close()
            raise
        if reusable:
            _IDLE.give_back(self.url, self.tls, connection)
        else:
            connection.close()
        return found

    def get(
        self, path: str, *, query: Mapping[str, object] | None = None, headers: Mapping[str, str] | None = None
    ) -> Response:
        return self.request("GET", path, query=query, headers=headers)

    def serves(self, path: str) -> bool:
        """True if the answer to a GET is 200; False also while nothing listens at the port."""
        try:
            return self.get(path).status == 200
        except OSError:
            return False

    def update(
        self,
        path: str,
        change: Callable[[dict[str, Any]], dict[str, Any]],
        *,
        query: Mapping[str, object] | None = None,
    ) -> Response:
        """Read, change and PUT an object, and again after each conflict, as client-go's RetryOnConflict does: a
        controller may write the status between the read and the write. The response is the first one that is not a
        409."""
        for _ in range(_CONFLICTS):
            response = self.request("PUT", path, change(self.get(path).expect(200)), query=query)
            if response.status != 409:
                return response
        raise AssertionError(f"{_CONFLICTS} conflicts in a row: {path} is written all the time")

    def request_with_retries(
        self,
        method: str,
        path: str,
        body: Body = None,
        *,
        content_type: str = "application/json",
        retries: int = _RETRIES,
    ) -> Response:
        """Sends a request again after each 429, when its Retry-After is over, as client-go does: the server holds it
        back until it has listed what it judges by, or because of other requests. Fails if it stays so."""
        for _ in range(retries):
            response = self.request(method, path, body, content_type=content_type)
            if response.status != 429:
                return response
            time.sleep(float(response.headers["Retry-After"]))
        raise AssertionError(f"{retries} times 429 for {method} {path}: {response.content!r}")

    @contextmanager
    def stream(
        self,
        path: str,
        *,
        query: Mapping[str, object] | None = None,
        headers: Mapping[str, str] | None = None,
        seconds: float = _SECONDS,
    ) -> Iterator[Iterator[dict[str, Any]]]:
        """Yields the frames of a watch as they arrive; waiting longer than `seconds` for one raises TimeoutError."""
        connection = self.connect(seconds)
        try:
            connection.request("GET", _target(path, query), headers=self._headers(headers, None, ""))
            response = connection.getresponse()
            assert response.status == 200, response.read()
            yield _frames(response)
        finally:
            connection.close()

    def connect(self, seconds: float = _SECONDS) -> http.client.HTTPSConnection:
        """A connection for several requests; the caller sends `headers` with each."""
        parts = urlsplit(self.url)
        assert parts.hostname is not None
        return http.client.HTTPSConnection(parts.hostname, parts.port, context=self.tls, timeout=seconds)

    def _headers(self, more: Mapping[str, str] | None, body: Body, content_type: str) -> CIMultiDict[str]:
        headers = CIMultiDict(self.headers)
        if body is not None and content_type:
            headers["Content-Type"] = content_type
        headers.update(more or {})
        return headers


def read_frames_until(frames: Iterator[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    """Returns the events up to and including the first of this type, without bookmarks."""
    seen = []
    for frame in frames:
        if frame["type"] != "BOOKMARK":
            seen.append(frame)
        if frame["type"] == kind:
            return seen
    raise AssertionError(f"the watch ended without {kind}: {seen}")


def _frames(response: http.client.HTTPResponse) -> Iterator[dict[str, Any]]:
    while line := response.readline():
        yield json.loads(line)


def _target(path: str, query: Mapping[str, object] | None) -> str:
    return f"{path}?{urlencode(query, doseq=True)}" if query else path


def _encode(body: Body) -> bytes | None:
    if body is None or isinstance(body, bytes):
        return body
    return (body if isinstance(body, str) else json.dumps(body)).encode()
