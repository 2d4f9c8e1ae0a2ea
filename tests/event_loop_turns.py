"""Others on the event loop: how often they had their turn."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Others:
    had = 0

    async def run(self) -> None:
        while True:
            await asyncio.sleep(0)
            self.had += 1


@asynccontextmanager
async def others() -> AsyncIterator[Others]:
    """They have a turn whenever somebody else gives one, until the context is left."""
    counted = Others()
    task = asyncio.create_task(counted.run())
    await asyncio.sleep(0)
    try:
        yield counted
    finally:
        task.cancel()
