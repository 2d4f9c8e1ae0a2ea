"""Timed calls, one after the other and in parallel. Times are seconds of one call."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

from benchmarks.client import Connection, Endpoint
from benchmarks.progress import Progress

Call = Callable[[Connection, int], Awaitable[object]]


async def repeat(endpoint: Endpoint, call: Call, times: int) -> Sequence[float]:
    """Returns the seconds of each of `times` calls, one after the other on one connection."""
    return (await parallel(endpoint, call, range(times), clients=1)).seconds


class CallTimes:
    """Seconds of each call, and wall clock seconds of all together."""

    def __init__(self, seconds: Sequence[float], wall: float) -> None:
        self.seconds = seconds
        self.wall = wall
        self.per_second = round(len(seconds) / wall)


async def parallel(
    endpoint: Endpoint, call: Call, numbers: Sequence[int], *, clients: int, progress: str = ""
) -> CallTimes:
    """Makes a call for every number, by clients with a connection each. All connections are opened before the first
    call. `progress` says what the calls do, for those who wait for them."""
    if progress:
        call = _with_progress(call, Progress(progress, len(numbers)))
    async with connected(endpoint, clients) as connections:
        return await distribute(connections, call, numbers)


def _with_progress(call: Call, progress: Progress) -> Call:
    async def counted(connection: Connection, number: int) -> None:
        await call(connection, number)
        progress.step()

    return counted


@asynccontextmanager
async def connected(endpoint: Endpoint, clients: int) -> AsyncIterator[Sequence[Connection]]:
    connections = [await endpoint.connect() for _ in range(clients)]
    try:
        yield connections
    finally:
        for connection in connections:
            connection.close()


async def distribute(connections: Sequence[Connection], call: Call, numbers: Sequence[int]) -> CallTimes:
    """Makes a call for every number, each on the next free connection."""
    seconds: list[float] = []
    remaining = iter(numbers)

    async def work(connection: Connection) -> None:
        for number in remaining:
            start = time.perf_counter()
            await call(connection, number)
            seconds.append(time.perf_counter() - start)

    start = time.perf_counter()
    await asyncio.gather(*map(work, connections))
    return CallTimes(seconds, time.perf_counter() - start)


async def alternate(one: Endpoint, first: Call, other: Endpoint, second: Call, times: int) -> tuple[list[float], ...]:
    """Returns the seconds of `times` calls of each of two kinds, made alternately. A pause after each call leaves time
    for the work that it causes."""
    turns = ((await one.connect(), first), (await other.connect(), second))
    seconds: tuple[list[float], ...] = ([], [])
    for number in range(times):
        for (connection, call), spent in zip(turns, seconds, strict=True):
            start = time.perf_counter()
            await call(connection, number)
            spent.append(time.perf_counter() - start)
            await asyncio.sleep(_PAUSE_SECONDS)
    for connection, _ in turns:
        connection.close()
    return seconds


_PAUSE_SECONDS = 0.03
