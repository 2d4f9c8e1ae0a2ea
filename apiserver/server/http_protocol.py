"""The HTTP protocol of a client connection: requests are bounded, and malformed ones get a Status, too, which is logged
only at level DEBUG."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol, cast

from aiohttp import web
from aiohttp.http_exceptions import BadHttpMethod, HttpProcessingError
from aiohttp.http_parser import HttpRequestParser
from aiohttp.web_protocol import RequestPayloadError

from apiserver.authentication.peers import Peers
from apiserver.authorization.authorizer import MASTERS
from apiserver.encoding.encoded_object import to_json
from apiserver.encoding.negotiation import JSON
from apiserver.meta import errors
from apiserver.request.bytes_in_flight import UNIDENTIFIED, BytesInFlight, Reservation
from apiserver.request.context import ANONYMOUS, User
from apiserver.server.bounded_parser import (
    BoundedParser,
    HeadLimits,
    HeadTooLarge,
    RequestLineTooLong,
    TooManyLargeHeads,
    UnsupportedEncoding,
    UnsupportedVersion,
    describe_error,
)

_LOG = logging.getLogger("apiserver.connection")
# Twice as many bytes of a body wait for a handler that does not read it, at most.
_BODY_BUFFER: Final = 16 * 1024


class ConnectionOwners(Protocol):
    """The open connections of a port (apiserver/tls/connections.py)."""

    def identify(self, transport: asyncio.Transport, owner: str | None, is_idle: Callable[[], bool]) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The limits of each connection of a listener, and those that all of them share."""

    heads: HeadLimits
    bytes_in_flight: BytesInFlight
    peers: Peers


class HttpProtocol(web.RequestHandler):
    __slots__ = ("_bounds", "_connections", "_owner", "_requests", "_user")

    def __init__(
        self,
        manager: web.Server,
        *,
        loop: asyncio.AbstractEventLoop,
        bounds: Bounds,
        connections: ConnectionOwners,
        **options: Any,
    ) -> None:
        super().__init__(manager, loop=loop, read_bufsize=_BODY_BUFFER, **options)
        self._bounds = bounds
        self._connections = connections
        self._user = ""
        self._owner: str | None = UNIDENTIFIED
        self._requests = BoundedParser(
            self._create_parser,
            bounds.heads,
            reservation=Reservation(bounds.bytes_in_flight),
            is_front_proxy=self._is_front_proxy,
        )
        self._parser = cast(Any, self._requests)

    def _create_parser(self, headers: int) -> HttpRequestParser:
        heads = self._bounds.heads
        return HttpRequestParser(
            self,
            self._loop,
            _BODY_BUFFER,
            max_line_size=heads.line,
            max_field_size=heads.proxied_head,
            max_headers=headers,
            payload_exception=RequestPayloadError,
            # the API has no compressed request bodies (WIRE-D28), and small ones can decompress to huge ones
            auto_decompress=False,
        )

    def _is_front_proxy(self) -> bool:
        return self.transport is not None and self._bounds.peers.is_front_proxy(self.transport)

    # one request after the other

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._requests.is_holding != self._buffer_paused:
            self._pause_or_resume()

    def _pause_or_resume(self) -> None:
        if self._buffer_paused:
            self._resume_reading_for_buffer()
        else:
            self._pause_reading_for_buffer()

    def _resume_reading_if_drained(self) -> None:
        """aiohttp calls this when it takes a request from its queue."""

    async def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        """aiohttp calls this when the handler has returned: continue with what the client has sent meanwhile."""
        if self._requests.finish_request():
            self.data_received(b"")
        try:
            return await super().finish_response(request, resp, start_time)
        finally:
            # the context in it refers to the request: their memory would wait for a garbage collection
            for key in tuple(request):
                del request[key]

    def claim_head(self) -> int:
        """The memory of the current request's head if it is large, else 0. From now on its user accounts for it."""
        return self._requests.claim_head()

    def connection_lost(self, exc: BaseException | None) -> None:
        super().connection_lost(exc)
        self._requests.close()

    # whose connection it is

    def identify(self, user: User) -> None:
        """Called for the user of each request. A front proxy's connection belongs to no user, and the connections of
        cluster administrators are not limited. Users of one flow have their connections together."""
        if self._owner is None or user.name in (self._user, ANONYMOUS.name) or self.transport is None:
            return
        self._user = user.name
        flow = self._bounds.bytes_in_flight.flow_of(user.name)
        self._owner = None if self._is_front_proxy() or MASTERS in user.groups else flow
        self._connections.identify(self.transport, self._owner, self._is_idle)

    def _is_idle(self) -> bool:
        """True if aiohttp waits for a request."""
        return self._waiter is not None

    # malformed requests

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """The response to a malformed request, or to an exception that no filter handled. It closes the connection."""
        if isinstance(exc, HttpProcessingError):
            _LOG.debug("malformed request from %s: %s", request.remote, describe_error(exc))
        elif not isinstance(exc, ConnectionError):
            _LOG.error("connection from %s failed", request.remote, exc_info=exc)
        if request.writer.output_size > 0:
            raise ConnectionError("failed after the response had started")
        error = _error(exc, status)
        headers = {"Content-Type": JSON, "Cache-Control": "no-cache, private", "Server": "apiserver"}
        if error.retry_after:
            headers["Retry-After"] = str(error.retry_after)
        response = web.Response(body=to_json(error.status()) + b"\n", status=error.code, headers=headers)
        response.force_close()
        return response


def owner_by_certificate(peers: Peers, transport: asyncio.Transport) -> str | None:
    """The owner of a connection according to its TLS handshake."""
    if peers.is_front_proxy(transport):
        return None
    user = peers.user(transport)
    return UNIDENTIFIED if user is None else _owner_of(user)


def _owner_of(user: User) -> str | None:
    return None if MASTERS in user.groups else user.name


def connection_of(http: web.BaseRequest) -> HttpProtocol:
    """The connection of a request that a listener has received."""
    protocol = http.protocol
    assert isinstance(protocol, HttpProtocol)
    return protocol


def _error(exc: BaseException | None, status: int) -> errors.StatusError:
    match exc:
        case BadHttpMethod():
            return errors.MethodNotAllowed()
        case HeadTooLarge() | RequestLineTooLong() | UnsupportedEncoding() | UnsupportedVersion():
            return errors.StatusError(exc.code, "", exc.message)
        case TooManyLargeHeads():
            return errors.TooManyRequests(exc.message)
        case HttpProcessingError():
            return errors.BadRequest(f"malformed request: {describe_error(exc)}")
    if status == 504:
        return errors.Timeout("request did not complete within the allotted timeout")
    return errors.InternalError("the connection failed")
