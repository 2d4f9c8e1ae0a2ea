"""What every response carries: Audit-ID, Cache-Control, Warnings, and no Server header (WIRE-I2, WIRE-I6, WIRE-I11).

A watch sends its head long before its handler is done, so headers are stamped when a response is prepared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from aiohttp import web

from apiserver.request.context import Handler, RequestContext

OnStart = Callable[[web.StreamResponse], None]

_CONTEXT: web.RequestKey[RequestContext] = web.RequestKey("context", RequestContext)
_ON_START: web.RequestKey[list[OnStart]] = web.RequestKey("on_start", list)

_TOTAL_LIMIT = 4096
_EACH_LIMIT = 256


class ResponseHeaders:
    """Makes the context known to `set_headers`."""

    async def __call__(self, context: RequestContext, next: Handler) -> web.StreamResponse:
        context.http[_CONTEXT] = context
        return await next(context)


def install(app: web.Application) -> None:
    """Have `set_headers` see every response of `app`."""
    if set_headers not in app.on_response_prepare:
        app.on_response_prepare.append(set_headers)


async def set_headers(request: web.Request, response: web.StreamResponse) -> None:
    """Complete the headers of a response that is about to leave."""
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
    for call in request.get(_ON_START, ()):
        call(response)


def on_start(context: RequestContext, call: OnStart) -> None:
    """Have `call` told when the response's head leaves."""
    context.http.setdefault(_ON_START, []).append(call)


def truncated_warnings(warnings: Sequence[str]) -> list[str]:
    """The warnings that fit: control characters drop one; too much text in all cuts each, then drops the rest."""
    texts = list(dict.fromkeys(text for text in warnings if text.isprintable()))
    if sum(map(len, texts)) <= _TOTAL_LIMIT:
        return texts
    kept, total = [], 0
    for text in (text[:_EACH_LIMIT] for text in texts):
        total += len(text)
        if total > _TOTAL_LIMIT:
            break
        kept.append(text)
    return kept


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
