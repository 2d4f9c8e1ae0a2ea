"""Refuses every write, for a server that only reads."""

from __future__ import annotations

from aiohttp import web

from apiserver.meta.errors import StatusError
from apiserver.request.context import Handler, RequestContext

_READS = frozenset(("GET", "HEAD", "OPTIONS"))


class WriteToReadOnlyServer(StatusError):
    """405, as for a method that the resource does not have."""

    def __init__(self) -> None:
        message = "this server only reads, and changes nothing: write through the API of the cluster"
        super().__init__(405, "MethodNotAllowed", message, details={})


class ReadOnly:
    """Raises WriteToReadOnlyServer for any other method than those that read, dry runs too: they would reach the
    cluster."""

    async def __call__(self, context: RequestContext, next: Handler) -> web.StreamResponse:
        if context.info.method not in _READS:
            raise WriteToReadOnlyServer
        return await next(context)
