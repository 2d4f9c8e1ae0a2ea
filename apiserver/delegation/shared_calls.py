"""Calls of the cluster that callers share without ever getting an answer that is older than their question."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

V = TypeVar("V")


class SharedCalls(Generic[V]):
    """Concurrent callers with the same key share calls, each of which begins after all of its callers have asked.

    While a call is under way, later callers wait for the next one, which begins as soon as the first ends. So a key has
    at most one call at a time, and a caller waits for less than two.
    """

    def __init__(self) -> None:
        self._running: dict[Hashable, asyncio.Task[V]] = {}
        self._next: dict[Hashable, asyncio.Task[V]] = {}

    async def call(self, key: Hashable, fetch: Callable[[], Awaitable[V]]) -> V:
        """Returns the value of a `fetch` of this caller, or of another with the same key. Raises its errors."""
        running = self._running.get(key)
        if running is None:
            task = self._running[key] = self._start(self._run(key, fetch))
        elif (waiting := self._next.get(key)) is not None:
            task = waiting
        else:
            task = self._next[key] = self._start(self._run_after(running, key, fetch))
        # shielded, so that a caller that disconnects does not cancel the call of the others
        return await asyncio.shield(task)

    async def _run(self, key: Hashable, fetch: Callable[[], Awaitable[V]]) -> V:
        try:
            return await fetch()
        finally:
            # at once: a caller that came in between would begin a second call
            if (waiting := self._next.pop(key, None)) is not None:
                self._running[key] = waiting
            else:
                del self._running[key]

    async def _run_after(self, running: asyncio.Task[V], key: Hashable, fetch: Callable[[], Awaitable[V]]) -> V:
        await asyncio.wait({running})
        return await self._run(key, fetch)

    def _start(self, work: Awaitable[V]) -> asyncio.Task[V]:
        task = asyncio.ensure_future(work)
        task.add_done_callback(retrieve_exception)
        return task


def retrieve_exception(call: asyncio.Task[V]) -> None:
    """Keeps asyncio from logging an exception that no caller retrieved because all of them disconnected."""
    if not call.cancelled():
        call.exception()
