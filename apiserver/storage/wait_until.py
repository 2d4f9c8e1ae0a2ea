"""Lets coroutines wait for a condition on state that synchronous code changes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class WaitUntil:
    """Like asyncio.Condition, but `notify` is synchronous and takes no lock."""

    def __init__(self) -> None:
        self._waiting: set[asyncio.Future[None]] = set()

    def notify(self) -> None:
        """Make all waiters check their conditions again. Call it after every change that a condition depends on."""
        waiting, self._waiting = self._waiting, set()
        for future in waiting:
            if not future.done():
                future.set_result(None)

    async def wait(self, condition: Callable[[], bool], timeout: float | None) -> bool:
        """Wait until `condition` is true, at most `timeout` seconds (None: forever). Returns whether it became true."""
        try:
            async with asyncio.timeout(timeout):
                while not condition():
                    await self._wait_for_change()
        except TimeoutError:
            return condition()
        return True

    async def _wait_for_change(self) -> None:
        future = asyncio.get_running_loop().create_future()
        self._waiting.add(future)
        try:
            await future
        finally:
            self._waiting.discard(future)
