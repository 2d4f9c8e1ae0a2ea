"""python -m benchmarks.livez_probe: how long our server's event loop lets /livez wait, from a process of its own.

Prints a line for every slow response: the time of the request on the monotonic clock, and the seconds it took.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.client import Connection, Endpoint
from benchmarks.targets.target import unverified_tls

SLOW_SECONDS = 0.02
STALL_SECONDS = 0.05
_PAUSE_SECONDS = 0.005


@dataclass(slots=True)
class LivezProbe:
    """Collects slow responses: (time of the request, seconds)."""

    slow_responses: list[tuple[float, float]] = field(default_factory=list)

    async def between(self, start: float, end: float) -> tuple[float, int]:
        """Returns the longest wait in milliseconds and the number of stalls among the requests between two times."""
        # the last request may still be waiting for its response
        await asyncio.sleep(2 * STALL_SECONDS)
        waits = [seconds for when, seconds in self.slow_responses if when <= end and when + seconds >= start]
        return round(max(waits, default=0.0) * 1000, 1), sum(each >= STALL_SECONDS for each in waits)

    async def read(self, lines: asyncio.StreamReader) -> None:
        while line := await lines.readline():
            when, seconds = line.split()
            self.slow_responses.append((float(when), float(seconds)))


@asynccontextmanager
async def running(url: str) -> AsyncIterator[LivezProbe]:
    """Runs the probe in a process of its own for as long as the context lasts."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", __name__, url, stdout=asyncio.subprocess.PIPE, cwd=Path(__file__).parents[1]
    )
    assert process.stdout is not None
    probe = LivezProbe()
    reading = asyncio.create_task(probe.read(process.stdout))
    try:
        yield probe
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()
        await reading


async def _probe_forever(url: str) -> None:
    endpoint = Endpoint(url, unverified_tls())
    while True:
        # the server may be restarted in the meantime
        with suppress(OSError, EOFError):
            await _probe(await endpoint.connect())
        await asyncio.sleep(_PAUSE_SECONDS)


async def _probe(connection: Connection) -> None:
    while True:
        start = time.monotonic()
        await connection.call("GET", "/livez")
        took = time.monotonic() - start
        if took >= SLOW_SECONDS:
            print(f"{start} {took}", flush=True)
        await asyncio.sleep(_PAUSE_SECONDS)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.livez_probe")
    parser.add_argument("url", help="of the server")
    url = parser.parse_args().url
    assert urlsplit(url).scheme == "https"
    asyncio.run(_probe_forever(url))


if __name__ == "__main__":
    main()
