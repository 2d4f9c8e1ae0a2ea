"""Sets Audit-ID, Cache-Control and Warning on every response, and removes Server (WIRE-I2, WIRE-I6, WIRE-I11).

A watch sends its head long before its handler returns, so the headers are set when a response is prepared.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from aiohttp import web

from apiserver.request.context import Handler, RequestContext

OnStart = Callable[[web.StreamResponse], None]

_CONTEXT: web.RequestKey[RequestContext] = web.RequestKey("context", RequestContext)
_ON_START: web.RequestKey[list[OnStart]] = web.RequestKey("on_start", list)

_TOTAL_LIMIT = 4096
_EACH_LIMIT = 256


class ResponseHeaders:
    """Passes the context to `set_headers`."""

    async def __call__(self, context: RequestContext, next: Handler) -> web.StreamResponse:
        context.http[_CONTEXT] = context
        try:
            return await next(context)
        except asyncio.CancelledError:
            # The connection is lost. The context and the request refer to each other: their memory would wait for a
            # garbage collection.
            del context.http[_CONTEXT]
            raise


def install(app: web.Application) -> None:
    """Call `set_headers` for every response of `app`."""
    if set_headers not in app.on_response_prepare:
        app.on_response_prepare.append(set_headers)


async def set_headers(request: web.Request, response: web.StreamResponse) -> None:
    """Complete the headers of a response that is about to be sent."""
    headers = response.headers
    headers.pop("Server", None)
    context = request.get(_CONTEXT)
    if context is None:
        return
    headers["Audit-ID"] = context.audit_id
    if "Cache-Control" not in headers:
        headers["Cache-Control"] = "no-cache, private"
    if context.warnings and "Warning" not in headers:
        for text in truncated_warnings(context.warnings):
            headers.add("Warning", f'299 - "{_escaped(text)}"')
    for callback in request.get(_ON_START, ()):
        callback(response)


def on_start(context: RequestContext, callback: OnStart) -> None:
    """Call `callback` when the response head is about to be sent."""
    context.http.setdefault(_ON_START, []).append(callback)


def truncated_warnings(warnings: Sequence[str]) -> list[str]:
    """Distinct warnings without control characters. If they are too long in total, each is truncated, and those that
    still do not fit are dropped."""
    texts = list(dict.fromkeys(text for text in warnings if text.isprintable()))
    if sum(map(len, texts)) <= _TOTAL_LIMIT:
        return texts
    fitting, total = [], 0
    for text in (text[:_EACH_LIMIT] for text in texts):
        total += len(text)
        if total > _TOTAL_LIMIT:
            break
        fitting.append(text)
    return fitting


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
