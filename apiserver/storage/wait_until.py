"""Waiting until something that a synchronous writer moves on has come far enough."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class WaitUntil:
    def __init__(self) -> None:
        self._waiting: set[asyncio.Future[None]] = set()

    def notify(self) -> None:
        """To be called after anything that a waiter's condition looks at has changed."""
        waiting, self._waiting = self._waiting, set()
        for future in waiting:
            if not future.done():
                future.set_result(None)

    async def wait(self, condition: Callable[[], bool], timeout: float) -> bool:
        """Whether `condition` came true within `timeout` seconds."""
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
