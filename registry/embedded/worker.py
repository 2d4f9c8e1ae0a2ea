"""A work queue with one worker task, for the controllers of the embedded cluster."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from apiserver.meta import errors

K = TypeVar("K", bound=Hashable)

_logger = logging.getLogger(__name__)
_CONFLICT_RETRY_SECONDS = 0.05
_ERROR_RETRY_SECONDS = 5.0


class Worker(Generic[K]):
    """Calls `process` for one key at a time. A key that is already queued is not added again; a key that failed is
    queued again after a delay."""

    def __init__(self, name: str, process: Callable[[K], Awaitable[None]]) -> None:
        self._name = name
        self._process = process
        self._queue: asyncio.Queue[K] = asyncio.Queue()
        self._queued: set[K] = set()

    def add(self, key: K) -> None:
        if key not in self._queued:
            self._queued.add(key)
            self._queue.put_nowait(key)

    async def join(self) -> None:
        """Waits until every queued key has been processed."""
        await self._queue.join()

    async def run(self) -> None:
        while True:
            key = await self._queue.get()
            # a change from here on has to queue the key again
            self._queued.discard(key)
            try:
                await self._process(key)
            except (errors.Conflict, errors.NotFound):
                # another writer was faster, so the object has changed
                self.add_after(key, _CONFLICT_RETRY_SECONDS)
            except Exception:
                _logger.exception("%s failed and will be retried", self._name)
                self.add_after(key, _ERROR_RETRY_SECONDS)
            finally:
                self._queue.task_done()

    def add_after(self, key: K, seconds: float) -> None:
        asyncio.get_running_loop().call_later(seconds, self.add, key)
