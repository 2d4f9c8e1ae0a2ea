"""A large group of watchers of one collection, and the time until an event has reached the last of them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence

from benchmarks.client import Endpoint
from benchmarks.objects import Object

_TIMEOUT_SECONDS = 60.0


class WatcherGroup:
    """Watchers with a connection each; they see the events from `open` on."""

    def __init__(self, user: Endpoint, collection: str, watchers: int) -> None:
        self._user = user
        self._collection = collection
        self._watchers = watchers
        self._tasks: Sequence[asyncio.Task[None]] = ()
        self._started = asyncio.Semaphore(0)
        self._counts: Callable[[Object], bool] = lambda frame: False
        self._missing = 0
        self._complete = asyncio.Event()

    async def open(self) -> None:
        page = await self._user.call("GET", f"{self._collection}?limit=1")
        path = f"{self._collection}?watch=true&resourceVersion={page['metadata']['resourceVersion']}"
        self._tasks = [asyncio.create_task(self._watch(path)) for _ in range(self._watchers)]
        for _ in self._tasks:
            await self._started.acquire()

    async def time_until_received(
        self, cause: Callable[[], Awaitable[object]], *, counts: Callable[[Object], bool], frames: int = 1
    ) -> float:
        """Returns the seconds from the call of `cause` until every watcher has so many `frames` for which `counts` is
        true."""
        self._counts, self._missing = counts, self._watchers * frames
        self._complete.clear()
        start = time.perf_counter()
        await cause()
        async with asyncio.timeout(_TIMEOUT_SECONDS):
            await self._complete.wait()
        return time.perf_counter() - start

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _watch(self, path: str) -> None:
        connection = await self._user.connect()
        try:
            async for frame in connection.stream(path):
                if frame is None:
                    self._started.release()
                elif self._counts(frame):
                    self._missing -= 1
                    if not self._missing:
                        self._complete.set()
        finally:
            connection.close()
