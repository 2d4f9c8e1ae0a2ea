"""Ends and refuses watches of the proxy while its process shuts down."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from aiohttp import web

from apiserver.meta.errors import ServiceUnavailable
from apiserver.request.context import Handler, RequestContext

_RETRY_SECONDS = 1


class RefuseNewWatches:
    """A filter that answers watches with a 503 once `draining` is set, as a kube-apiserver does
    (`WithWatchTerminationDuringShutdown`): accepted, they would end at once, and their clients come back in a loop.
    client-go retries after the time of Retry-After, on a new connection, which leads to another replica."""

    def __init__(self, draining: asyncio.Event) -> None:
        self._draining = draining

    async def __call__(self, context: RequestContext, next: Handler) -> web.StreamResponse:
        """Raises ServiceUnavailable."""
        if context.info.is_watch and self._draining.is_set():
            raise ServiceUnavailable("apiserver is shutting down", retry_after=_RETRY_SECONDS)
        return await next(context)


@contextmanager
def calling_at(event: asyncio.Event, action: Callable[[], None]) -> Iterator[None]:
    """Calls `action` when the event is set during the block, or is set already; not after the block."""

    def on_set(_: object) -> None:
        action()

    waiting = asyncio.create_task(event.wait(), name="until-shutdown")
    waiting.add_done_callback(on_set)
    try:
        yield
    finally:
        waiting.remove_done_callback(on_set)
        waiting.cancel()
