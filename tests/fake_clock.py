"""A clock that tests advance."""

from __future__ import annotations

import asyncio


class FakeClock:
    """A clock that only `advance` and `sleep` move. `sleep` returns at once and is recorded."""

    def __init__(self, now: float = 1_767_225_600.0) -> None:
        self.now = now
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)
