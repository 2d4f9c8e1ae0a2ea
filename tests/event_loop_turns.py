"""Others on the event loop: how often they had their turn."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class LoopIterations:
    count = 0

    async def run(self) -> None:
        while True:
            await asyncio.sleep(0)
            self.count += 1


@asynccontextmanager
async def count_loop_iterations() -> AsyncIterator[LoopIterations]:
    """They have a turn whenever somebody else gives one, until the context is left."""
    counted = LoopIterations()
    task = asyncio.create_task(counted.run())
    await asyncio.sleep(0)
    try:
        yield counted
    finally:
        task.cancel()
