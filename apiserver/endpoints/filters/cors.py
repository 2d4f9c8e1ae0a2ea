"""Lets pages of other origins use the API in a browser, with the headers of k8s.io/apiserver's WithCORS.

Off by default: a browser then keeps other origins from reading responses. Credentials are tokens or certificates, never
cookies, so a page of a listed origin can do no more than the user's token that it has.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from aiohttp import web

from apiserver.endpoints.filters.response_headers import on_start
from apiserver.request.context import Handler, RequestContext

_METHODS = "POST, GET, OPTIONS, PUT, DELETE, PATCH"
_REQUEST_HEADERS = (
    "Content-Type, Content-Length, Accept-Encoding, X-CSRF-Token, Authorization, X-Requested-With, If-Modified-Since"
)


class Cors:
    """Adds the headers to each response for an origin that one of the patterns matches, errors and watches too. It
    answers preflight requests of such origins itself, before authentication: browsers send them without credentials."""

    def __init__(self, allowed_origins: Sequence[str]) -> None:
        """`allowed_origins` are regular expressions, which are searched for in `scheme://host:port`."""
        self._patterns = [re.compile(each) for each in allowed_origins]

    async def __call__(self, context: RequestContext, next: Handler) -> web.StreamResponse:
        origin = context.http.headers.get("Origin", "")
        if not origin or not any(each.search(origin) for each in self._patterns):
            return await next(context)
        on_start(context, lambda response: _set_headers(response, origin))
        if context.info.method == "OPTIONS":
            return web.Response(status=204)
        return await next(context)


def _set_headers(response: web.StreamResponse, origin: str) -> None:
    response.headers["Access-Control-Allow-Origin"] = origin
    response.headers["Access-Control-Allow-Methods"] = _METHODS
    response.headers["Access-Control-Allow-Headers"] = _REQUEST_HEADERS
    response.headers["Access-Control-Expose-Headers"] = "Date"
    response.headers["Access-Control-Allow-Credentials"] = "true"
    # another origin must not get this response from a cache
    response.headers.add("Vary", "Origin")
