"""Turns exceptions into responses: a StatusError into its Status, any other into a logged 500 (WIRE-I10)."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from aiohttp import web

from apiserver.endpoints.responsewriters import LargeResponse, send_large, status_response
from apiserver.meta import errors
from apiserver.request.context import Handler, RequestContext

_LOG = logging.getLogger("apiserver.recovery")
_SEND_SECONDS: Final = 60.0
_LARGE_BYTES: Final = 64 * 1024
_PANIC = "This request caused apiserver to panic. Look in the logs for details."


class ErrorResponses:
    """If the response head has already been sent, aborts the connection and raises ConnectionResetError. A large Status
    counts as its user's while it is sent, as any large response does (MaxInFlight)."""

    async def __call__(self, context: RequestContext, next: Handler) -> web.StreamResponse:
        try:
            return await next(context)
        except errors.StatusError as raised:
            # the traceback and this frame would keep each other, and the request's body, until a garbage collection
            error = raised.with_traceback(None)
        except web.HTTPException as raised:
            error = status_error_of(raised)
        except ConnectionError:
            raise
        except Exception:
            _LOG.exception("unexpected exception", extra={"audit_id": context.audit_id, "path": context.info.path})
            error = errors.InternalError(_PANIC)
        if context.http.writer.output_size > 0:
            _abort(context)
            raise ConnectionResetError("failed after the response had started")
        response = _render(context, error)
        if error.code == 504:
            response.force_close()
        # the values that it quotes are freed before a slow client has read them
        del error
        return await _send(context, response) if isinstance(response, LargeResponse) else response


def _render(context: RequestContext, error: errors.StatusError) -> web.Response:
    """The Status of `error`, or a 429 if it is so large that the user's share of memory has no room for it."""
    size = len(error.message)
    try:
        if size > _LARGE_BYTES:
            context.reservation.check(size)
    except errors.TooManyRequests as busy:
        return status_response(context, busy.with_traceback(None))
    return status_response(context, error)


async def _send(context: RequestContext, response: LargeResponse) -> web.Response:
    """Sends a large Status if the user's share of memory has room for it, and otherwise returns a 429. Aborts the
    connection, and raises ConnectionResetError, if the client does not read it within a minute."""
    try:
        async with asyncio.timeout(_SEND_SECONDS):
            await send_large(context, response)
        return response
    except errors.TooManyRequests as busy:
        return status_response(context, busy.with_traceback(None))
    except TimeoutError:
        _abort(context)
        raise ConnectionResetError("the client did not read the response") from None
    finally:
        context.reservation.resize(0)


def status_error_of(raised: web.HTTPException) -> errors.StatusError:
    """The Status of an error that aiohttp raised."""
    match raised.status:
        case 404:
            return errors.UnknownPath()
        case 405:
            return errors.MethodNotAllowed()
        case 413:
            return errors.RequestEntityTooLarge("the limit is exceeded")
        case status if status < 500:
            return errors.StatusError(status, "BadRequest" if status == 400 else "", raised.reason)
    return errors.InternalError(raised.reason)


def _abort(context: RequestContext) -> None:
    transport = context.http.transport
    if transport is not None:
        transport.abort()
