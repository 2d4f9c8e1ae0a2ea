"""Refuses new watches while the process shuts down (WIRE-I13)."""

from __future__ import annotations

from collections.abc import Callable

from aiohttp import web

from apiserver.meta.errors import TooManyRequests
from apiserver.request.context import Handler, RequestContext

_RETRY_SECONDS = 1


class RefuseNewWatches:
    """Answers watches with a 429 while `is_draining`. Accepted, they would end within a second and without an event,
    after which client-go lists again (`VeryShortWatchError`). After a 429 it waits as Retry-After says and watches from
    where it was, on a new connection, which leads to another replica; after a 503, as of a kube-apiserver
    (`WithWatchTerminationDuringShutdown`), it lists again if ten repetitions have failed, too."""

    def __init__(self, is_draining: Callable[[], bool]) -> None:
        self._is_draining = is_draining

    async def __call__(self, context: RequestContext, next: Handler) -> web.StreamResponse:
        """Raises TooManyRequests."""
        if context.info.is_watch and self._is_draining():
            raise TooManyRequests("apiserver is shutting down", retry_after=_RETRY_SECONDS)
        return await next(context)
