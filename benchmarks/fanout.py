"""Changes at a given rate, and the time until each of many watchers has them; one watcher in a hundred never reads."""

from __future__ import annotations

import asyncio
import math
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus

import orjson

from benchmarks import load, objects
from benchmarks.client import Connection, UnexpectedStatus
from benchmarks.measurements import Measurement
from benchmarks.targets.sides import MERGE_PATCH, Side, measure_cost

_ANNOTATION = "bench"
_WRITERS = 16
_OPENING = 64
_CHANGED = 16
_SILENT_SECONDS = 3.0
_POLL_SECONDS = 0.02
_ATTEMPTS = 20
_TIMEOUT_SECONDS = 10.0
_OPENING_SECONDS = 600.0
_RETRY_SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FanOut:
    """`rates` are changes per second; each rate lasts `window` seconds."""

    watchers: int
    rates: Sequence[int]
    window: float

    async def turn(self, side: Side, number: int) -> Mapping[str, Measurement]:
        measured: dict[str, Measurement] = {}
        before = side.memory_mib()
        async with RecordingWatchers.watching(side, self.watchers) as watchers:
            for rate in self.rates:
                title = f"WATCH, {self.watchers} watchers, {rate} changes a second"
                prefix = f"{side.prefix}-{number}-{rate}"
                measured[title] = await self._measure(side, watchers, prefix, rate, before)
        return measured

    async def _measure(
        self, side: Side, watchers: RecordingWatchers, prefix: str, rate: int, memory_before: float
    ) -> Measurement:
        changes = [f"{prefix}-{number}" for number in range(math.ceil(rate * self.window))]
        with measure_cost(side) as cost:
            sent = await send_changes(side, changes, rate)
            await watchers.wait_for_events(len(sent) * watchers.listening)
        found = delays(sent.values_by_change, watchers.take_events())
        if not found:
            raise RuntimeError("no watcher received any change")
        memory = side.memory_mib()
        return Measurement(
            seconds=found,
            wall=cost.wall,
            serving=cost.serving,
            cpu=cost.cpu,
            client=cost.client,
            more={
                "delivered": len(found) / (len(sent) * watchers.listening),
                "cut": watchers.cut,
                "opening_s": watchers.opening_seconds,
                "late_ms": sent.late * 1000,
                "growth_mib": memory - memory_before,
                "rss_mib": memory,
            },
        )


@dataclass(frozen=True, slots=True)
class SentChanges:
    """The time of each change on the clock of `perf_counter`. `late` is how many seconds the last change was sent
    behind schedule because earlier ones were still unanswered."""

    values_by_change: Mapping[str, float]
    late: float

    def __len__(self) -> int:
        return len(self.values_by_change)


async def send_changes(side: Side, changes: Sequence[str], rate: int) -> SentChanges:
    sent: dict[str, float] = {}
    start = time.perf_counter()

    async def change(connection: Connection, number: int) -> None:
        await asyncio.sleep(start + number / rate - time.perf_counter())
        path = f"{side.collection}/{objects.name('b', number % _CHANGED)}"
        body = {"metadata": {"annotations": {_ANNOTATION: changes[number]}}}
        sent[changes[number]] = time.perf_counter()
        await _patch(connection, path, body)

    async with load.connected(side.user, _WRITERS) as connections:
        start = time.perf_counter()
        await load.distribute(connections, change, range(len(changes)))
    return SentChanges(sent, max(0.0, sent[changes[-1]] - start - (len(changes) - 1) / rate))


async def _patch(connection: Connection, path: str, body: object) -> None:
    """Sends it again after a conflict with a write of controllers, which cozystack-api answers with 500."""
    for attempt in range(_ATTEMPTS):
        try:
            await connection.call("PATCH", path, body, content_type=MERGE_PATCH)
        except UnexpectedStatus as error:
            if error.status not in (409, 500) or attempt == _ATTEMPTS - 1:
                raise
        else:
            return


def delays(sent: Mapping[str, float], arrived: Mapping[bytes, Sequence[float]]) -> Sequence[float]:
    """Returns the seconds from sending a change until a watcher received it, for every change and watcher. Equal frames
    are parsed once. Frames of later writes still contain a change, so only the first frame of each change counts."""
    first: dict[str, tuple[int, Sequence[float]]] = {}
    for frame, times in arrived.items():
        event = orjson.loads(frame)
        if event["type"] == "ERROR":
            continue
        metadata = event["object"]["metadata"]
        change, version = metadata.get("annotations", {}).get(_ANNOTATION), int(metadata["resourceVersion"])
        if change in sent and (change not in first or version < first[change][0]):
            first[change] = version, times
    return [when - sent[change] for change, (_, times) in first.items() for when in times]


class RecordingWatchers:
    """Watchers of the whole collection. Frames are recorded unparsed, with the times at which they arrived."""

    def __init__(self, side: Side) -> None:
        self._side = side
        self._arrived: defaultdict[bytes, list[float]] = defaultdict(list)
        self._last = 0.0
        self._count = 0
        self._opening = asyncio.Semaphore(_OPENING)
        self._connections: list[Connection] = []
        self.opening_seconds = 0.0
        self.listening = 0
        self.cut = 0
        """Number of watches that the server ended."""

    @classmethod
    @asynccontextmanager
    async def watching(cls, side: Side, count: int) -> AsyncIterator[RecordingWatchers]:
        watchers = cls(side)
        page = await side.user.call("GET", f"{side.collection}?limit=1")
        path = f"{side.collection}?watch=true&timeoutSeconds=3600&resourceVersion={page['metadata']['resourceVersion']}"
        tasks: list[asyncio.Task[None]] = []
        try:
            start = time.perf_counter()
            opened = await asyncio.gather(*(watchers._open(path) for _ in range(count)))
            watchers.opening_seconds = time.perf_counter() - start
            stalled = count // 100
            for connection in opened[:stalled]:
                connection.stop_reading()
            tasks += [asyncio.create_task(watchers._listen(connection)) for connection in opened[stalled:]]
            watchers.listening = len(tasks)
            yield watchers
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for connection in watchers._connections:
                connection.close()

    async def wait_for_events(self, expected: int) -> None:
        """Waits until `expected` frames have arrived, no more arrive after the first, or the time is up."""
        deadline = time.perf_counter() + _TIMEOUT_SECONDS
        self._last = time.perf_counter()
        while True:
            silent = self._count and time.perf_counter() > self._last + _SILENT_SECONDS
            if self._count >= expected or silent or time.perf_counter() > deadline:
                return
            await asyncio.sleep(_POLL_SECONDS)

    def take_events(self) -> Mapping[bytes, Sequence[float]]:
        """Returns the frames that arrived since the last call."""
        frames, self._arrived, self._count = self._arrived, defaultdict(list), 0
        return frames

    async def _open(self, path: str) -> Connection:
        async with self._opening, asyncio.timeout(_OPENING_SECONDS):
            while True:
                connection = await self._side.user.connect()
                self._connections.append(connection)
                try:
                    await connection.watch(path)
                except UnexpectedStatus as error:
                    if error.status != HTTPStatus.TOO_MANY_REQUESTS:
                        raise
                else:
                    return connection
                # as clients do; cozystack-api answers so while many watches are opened
                self._connections.remove(connection)
                connection.close()
                await asyncio.sleep(_RETRY_SECONDS)

    async def _listen(self, connection: Connection) -> None:
        # a watch that is cut off in the middle of a frame counts as ended too
        with suppress(OSError, EOFError):
            async for lines in connection.frames():
                now = time.perf_counter()
                for line in lines:
                    self._arrived[line].append(now)
                self._last = now
                self._count += len(lines)
        self.cut += 1
