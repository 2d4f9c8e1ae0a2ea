"""How long our server's event loop lets /livez wait, seen from a process of its own: python -m benchmarks.pulse.

Prints a line for every slow answer: the time on the monotonic clock at which it was asked, and the seconds it took.
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
from benchmarks.target import unverified_tls

SLOW_SECONDS = 0.02
STALL_SECONDS = 0.05
_PAUSE_SECONDS = 0.005


@dataclass(slots=True)
class Pulse:
    """Slow answers as they were seen: (when, seconds)."""

    seen: list[tuple[float, float]] = field(default_factory=list)

    async def between(self, start: float, end: float) -> tuple[float, int]:
        """The longest wait in milliseconds, and how many were stalls, of what was asked between two times."""
        # what was asked last may still be waiting for its answer
        await asyncio.sleep(2 * STALL_SECONDS)
        waits = [seconds for when, seconds in self.seen if when <= end and when + seconds >= start]
        return round(max(waits, default=0.0) * 1000, 1), sum(each >= STALL_SECONDS for each in waits)

    async def read(self, lines: asyncio.StreamReader) -> None:
        while line := await lines.readline():
            when, seconds = line.split()
            self.seen.append((float(when), float(seconds)))


@asynccontextmanager
async def taken(url: str) -> AsyncIterator[Pulse]:
    """A pulse that is taken for as long as the context lasts."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", __name__, url, stdout=asyncio.subprocess.PIPE, cwd=Path(__file__).parents[1]
    )
    assert process.stdout is not None
    pulse = Pulse()
    reading = asyncio.create_task(pulse.read(process.stdout))
    try:
        yield pulse
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()
        await reading


async def _take(url: str) -> None:
    endpoint = Endpoint(url, unverified_tls())
    while True:
        # the server may be restarted meanwhile
        with suppress(OSError, EOFError):
            await _follow(await endpoint.connect())
        await asyncio.sleep(_PAUSE_SECONDS)


async def _follow(connection: Connection) -> None:
    while True:
        start = time.monotonic()
        await connection.call("GET", "/livez")
        took = time.monotonic() - start
        if took >= SLOW_SECONDS:
            print(f"{start} {took}", flush=True)
        await asyncio.sleep(_PAUSE_SECONDS)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pulse")
    parser.add_argument("url")
    url = parser.parse_args().url
    assert urlsplit(url).scheme == "https"
    asyncio.run(_take(url))


if __name__ == "__main__":
    main()
