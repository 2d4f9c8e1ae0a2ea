"""Counts the requests in progress, so that a graceful shutdown can wait for them (WIRE-I13)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from aiohttp import web

RequestHandler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class RequestsInProgress:
    """A request handler that counts requests. Call `wait_finished` before aiohttp's shutdown, which stops reading from
    connections, so that a request whose body is still being sent would never finish."""

    def __init__(self, handler: RequestHandler) -> None:
        self._handler = handler
        self._begun = 0
        self._draining = False
        self._ending = asyncio.Event()
        self._none_left = asyncio.Event()

    async def __call__(self, http: web.BaseRequest) -> web.StreamResponse:
        if self._ending.is_set():
            return self._last_of_connection(await self._handler(http))
        self._begun += 1
        try:
            response = await self._handler(http)
        finally:
            self._begun -= 1
            if not self._begun and self._ending.is_set():
                self._none_left.set()
        return self._last_of_connection(response) if self._draining or self._ending.is_set() else response

    def drain(self) -> None:
        """Close each connection after its next response: a proxy that reuses connections would otherwise lose a request
        that it sends while its connection is being closed."""
        self._draining = True

    async def wait_finished(self, *, within: float) -> None:
        """Wait at most `within` seconds for the requests that are in progress now. Later requests are still served."""
        self._ending.set()
        if self._begun:
            with suppress(TimeoutError):
                async with asyncio.timeout(within):
                    await self._none_left.wait()

    def _last_of_connection(self, response: web.StreamResponse) -> web.StreamResponse:
        # the head of a watch did not say so; on the same connection, its client would come back to this process
        if not response.prepared or (self._draining and self._ending.is_set()):
            response.force_close()
        return response
