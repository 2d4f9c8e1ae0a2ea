"""The HTTP protocol of a client connection: malformed requests get a Status, too, and are logged only at level
DEBUG."""

from __future__ import annotations

import logging

from aiohttp import web
from aiohttp.http_exceptions import BadHttpMethod, HttpProcessingError, InvalidURLError

from apiserver.encoding.encoded_object import to_json
from apiserver.encoding.negotiation import JSON
from apiserver.meta import errors

_LOG = logging.getLogger("apiserver.connection")


class HttpProtocol(web.RequestHandler):
    __slots__ = ()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """The response to a malformed request, or to an exception that no filter handled. It closes the connection."""
        if isinstance(exc, HttpProcessingError):
            _LOG.debug("malformed request from %s: %s", request.remote, _describe(exc))
        else:
            _LOG.error("connection from %s failed", request.remote, exc_info=exc)
        if request.writer.output_size > 0:
            raise ConnectionError("failed after the response had started")
        error = _error(exc, status)
        headers = {"Content-Type": JSON, "Cache-Control": "no-cache, private", "Server": "apiserver"}
        response = web.Response(body=to_json(error.status()) + b"\n", status=error.code, headers=headers)
        response.force_close()
        return response


def _error(exc: BaseException | None, status: int) -> errors.StatusError:
    if isinstance(exc, BadHttpMethod):
        return errors.MethodNotAllowed()
    if isinstance(exc, HttpProcessingError):
        return errors.BadRequest(f"malformed request: {_describe(exc)}")
    if status == 504:
        return errors.Timeout("request did not complete within the allotted timeout")
    return errors.InternalError("the connection failed")


def _describe(exc: HttpProcessingError) -> str:
    """A description of the error without the bytes that the client sent."""
    if isinstance(exc, InvalidURLError):
        return "the target is not a valid URL"
    return exc.message.partition("\n")[0].partition(": b")[0].rstrip(":.")
