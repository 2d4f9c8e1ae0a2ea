"""Counts the iterations of the event loop, to test that long-running work yields to it."""

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
    """Counts iterations while the context is active."""
    iterations = LoopIterations()
    task = asyncio.create_task(iterations.run())
    await asyncio.sleep(0)
    try:
        yield iterations
    finally:
        task.cancel()
