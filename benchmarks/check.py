"""python -m benchmarks.check: counts that do not depend on the machine, against the bounds in bounds.json.

Function calls are those of Python and of C functions on the thread of the event loop, for one request or event. Writes
are those that the cluster has counted. The exit status is 1 if a count is above its bound.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path

import orjson

from benchmarks import counted_writes, load, objects
from benchmarks.client import Connection
from benchmarks.command_line import parse_no_options, run
from benchmarks.counted_writes import writes_each
from benchmarks.objects import COLLECTION, Object
from benchmarks.targets.counted import Counted, CountedTarget
from benchmarks.targets.sides import MERGE_PATCH
from benchmarks.watcher_group import WatcherGroup

BOUNDS = Path(__file__).with_name("bounds.json")
_TENANTS = 60
_MORE = 40
# The least of the turns counts, because timers happen in some: a turn is short, so that one of them is without any.
_TURNS = 15
READ = 7
"""The number of the Tenant that a GET reads."""
_READS = 20
_FEW_WATCHERS = 20
_WATCHERS = 100
_CHANGES = 5
_CHANGED = 20
_READY = 20
_AS_KUBECTL = "Accept: application/json;as=Table;v=v1;g=meta.k8s.io\r\nAccept-Encoding: gzip\r\n"
# A count that is so far below its bound lets an increase pass unseen.
_LOOSE = 0.95
# aiohttp closes idle connections to the cluster after 15 s, of which a start leaves some forty
_IDLE_SECONDS = 20.0
_ADVICE = """A change made this path dearer. For calls, cProfile of the handler before and after the change shows where.
If the new cost is wanted, say why in the commit, and raise the bound in benchmarks/bounds.json: at most 4 % above the
count, and for writes and requests exactly to it. docs/performance.md has both, too."""
# else each status changes once more, after a minute in which Flux has not written one
SETTINGS = "tenants:\n  release: suspended\n"


class Counting:
    """Counts what a server without other load does."""

    def __init__(self, target: Counted) -> None:
        self._target = target
        self.found: dict[str, float] = {}

    async def run(self) -> None:
        await self._target.grant()
        await self.settle()
        # the first start writes the root, and keeps what it learned from that until its end
        await self._restart()
        tracked = await self._tracked()
        await self.create(range(_TENANTS), "b")
        await self.count_reads()
        await self._count_bytes()
        await self._count_creates()
        await self._count_changes()
        await self.count_events()
        await self._restart()
        self.found["requests of a start"] = sum((await self._requests()).values())
        self.found["objects tracked for a Tenant"] = (await self._tracked() - tracked) / (_TENANTS + _MORE)

    async def _tracked(self) -> int:
        """Objects that stay: it waits until a start's connections to the cluster are closed."""
        await asyncio.sleep(_IDLE_SECONDS)
        found = await self._target.tracked()
        while (later := await self._tracked_later()) != found:
            found = later
        return found

    async def _tracked_later(self) -> int:
        await asyncio.sleep(1)
        return await self._target.tracked()

    async def count_reads(self) -> None:
        await self.count_gets()
        await self._count_calls({f"LIST of {_TENANTS}": COLLECTION, "LIST, limit=1": f"{COLLECTION}?limit=1"})
        await self._count_calls({f"LIST of {_TENANTS}, Table, gzip": COLLECTION}, headers=_AS_KUBECTL)

    async def count_gets(self) -> None:
        await self._count_calls({"GET": f"{COLLECTION}/{objects.name('b', READ)}"})

    async def _count_calls(self, reads: Mapping[str, str], *, headers: str = "") -> None:
        """Of requests of these paths, by title."""
        connection = await self._target.user.connect()
        for title, path in reads.items():
            call = partial(connection.call, "GET", path, headers=headers)
            # the first calls fill caches
            await _repeat(call, _READS)
            turns = [await self._target.calls(partial(_repeat, call, _READS)) for _ in range(_TURNS)]
            self.found[f"calls: {title}"] = min(turns) / _READS
        connection.close()

    async def _count_bytes(self) -> None:
        connection = await self._target.user.connect()
        call = partial(connection.call, "GET", COLLECTION)
        await _repeat(call, 2)
        turns = [await self._target.allocated(call) for _ in range(_TURNS)]
        self.found[f"bytes for a byte sent: LIST of {_TENANTS}"] = min(turns) / connection.received
        connection.close()

    async def _count_creates(self) -> None:
        before = await self._requests()
        await self.create(range(_MORE), "c")
        self.found.update(writes_each("create", before, await self._requests(), _MORE))

    async def _count_changes(self) -> None:
        before = await self._requests()
        async with load.connected(self._target.user, 1) as (connection,):
            for number in range(_CHANGED):
                await _change(connection, objects.name("c", number), "once")
        await self.settle()
        self.found.update(writes_each("change of a label", before, await self._requests(), _CHANGED))

    async def count_events(self) -> None:
        """The difference between changes with many watchers and with few. Each change waits until all have it, because
        two events that are sent at once cost less."""
        connection = await self._target.user.connect()
        few = WatcherGroup(self._target.user, COLLECTION, _FEW_WATCHERS)
        await few.open()
        least = min([await self._calls_of_changes(connection, few, turn) for turn in range(_TURNS)])
        many = WatcherGroup(self._target.user, COLLECTION, _WATCHERS)
        await many.open()
        most = min([await self._calls_of_changes(connection, many, _TURNS + turn) for turn in range(_TURNS)])
        await many.close()
        await few.close()
        connection.close()
        self.found["calls: event to a watcher"] = (most - least) / (_CHANGES * _WATCHERS)

    async def _calls_of_changes(self, connection: Connection, watchers: WatcherGroup, turn: int) -> int:
        async def change_all() -> None:
            for number in range(_CHANGES):
                value = f"{turn}-{number}"
                change = partial(_change, connection, objects.name("b", 0), value)
                await watchers.time_until_received(change, counts=partial(_has_label, value=value))

        return await self._target.calls(change_all)

    async def _restart(self) -> None:
        await self._target.server.stop()
        await self._target.start()
        await self._target.ready()
        await self.settle()

    async def create(self, numbers: range, prefix: str) -> None:
        await counted_writes.create(self._target.user, numbers, prefix)
        await self.settle()

    async def settle(self) -> None:
        await counted_writes.settle(self._target.admin)

    async def _requests(self) -> Mapping[str, float]:
        return await counted_writes.requests_so_far(self._target.admin)


async def _change(connection: Connection, name: str, value: str) -> None:
    patch = {"metadata": {"labels": {"changed": value}}}
    await connection.call("PATCH", f"{COLLECTION}/{name}", patch, content_type=MERGE_PATCH)


def _has_label(frame: Object, *, value: str) -> bool:
    found: bool = frame["object"]["metadata"].get("labels", {}).get("changed") == value
    return found


async def _repeat(call: Callable[[], Awaitable[object]], times: int) -> None:
    for _ in range(times):
        await call()


def judge(found: Mapping[str, float], bounds: Mapping[str, float]) -> list[str]:
    """The counts that are above their bound, or have none: one line for each."""
    return [
        f"{name}: {count:g}, at most {bounds.get(name, 0):g} are allowed"
        for name, count in found.items()
        if count > bounds.get(name, 0)
    ]


def _print(found: Mapping[str, float], bounds: Mapping[str, float]) -> None:
    for name, count in found.items():
        bound = bounds.get(name, 0)
        mark = "  ABOVE ITS BOUND" if count > bound else "  (lower this bound)" if count < bound * _LOOSE else ""
        print(f"{name:<52} {count:>8.2f}  at most {bound:g}{mark}")


async def main() -> int:
    with tempfile.TemporaryDirectory() as ready, tempfile.TemporaryDirectory() as counted:
        until_ready = await counted_writes.count_until_ready(Path(ready), _READY)
        async with CountedTarget.running(Path(counted), settings=SETTINGS) as target:
            assert isinstance(target, CountedTarget)
            counting = Counting(target)
            await counting.run()
    counting.found.update(until_ready)
    bounds = orjson.loads(BOUNDS.read_bytes())
    _print(counting.found, bounds)
    problems = judge(counting.found, bounds)
    for problem in problems:
        print(problem, file=sys.stderr)
    if problems:
        print(_ADVICE, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    parse_no_options("python -m benchmarks.check", __doc__)
    sys.exit(run(main()))
