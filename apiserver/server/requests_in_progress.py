"""What a listener is at work on, so that its end can wait for what had begun before (WIRE-I13)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from aiohttp import web

RequestHandler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class RequestsInProgress:
    """A handler that counts. aiohttp's own way to end a connection stops reading what it receives, so that a request
    whose body is still on its way never finishes; it has to come after `wait_finished`."""

    def __init__(self, handler: RequestHandler) -> None:
        self._handler = handler
        self._begun = 0
        self._draining = False
        self._ending = asyncio.Event()
        self._none_left = asyncio.Event()

    async def __call__(self, http: web.BaseRequest) -> web.StreamResponse:
        if self._ending.is_set():
            return _close_connection_after(await self._handler(http))
        self._begun += 1
        try:
            response = await self._handler(http)
        finally:
            self._begun -= 1
            if not self._begun and self._ending.is_set():
                self._none_left.set()
        return _close_connection_after(response) if self._draining else response

    def drain(self) -> None:
        """From now on each request is the last of its connection: a proxy that keeps connections for more of them would
        otherwise lose the one that it sends while a connection is closed."""
        self._draining = True

    async def wait_finished(self, *, within: float) -> None:
        """Wait for the requests that have begun by now, as long as `within` seconds. Those that come later are still
        served."""
        self.drain()
        self._ending.set()
        if self._begun:
            with suppress(TimeoutError):
                async with asyncio.timeout(within):
                    await self._none_left.wait()


def _close_connection_after(response: web.StreamResponse) -> web.StreamResponse:
    if not response.prepared:
        response.force_close()
    return response
