"""python -m benchmarks.check: counts that do not depend on the machine, against the bounds in bounds.json.

Function calls are those of Python and of C functions on the thread of the event loop, for one request or event. Writes
are those that the cluster has counted. The exit status is 1 if a count is above its bound.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path

import orjson
import uvloop

from benchmarks import load, objects
from benchmarks.client import Connection
from benchmarks.objects import COLLECTION
from benchmarks.targets.cluster_traffic import read_traffic, wait_until_quiet
from benchmarks.targets.counted import CountedTarget
from benchmarks.targets.sides import MERGE_PATCH
from benchmarks.watcher_group import WatcherGroup

BOUNDS = Path(__file__).with_name("bounds.json")
_TENANTS = 60
_MORE = 40
_READS = 100
# The least of them counts: timers and collections of garbage happen in some.
_TURNS = 3
_WATCHERS = 20
_CHANGES = 20
# A count that is so far below its bound lets an increase pass unseen.
_LOOSE = 0.9
# else each status changes once more, after a minute in which Flux has not written one
SETTINGS = "tenants:\n  release: suspended\n"
# those of a tenant's objects, and the reviews and claims of a write
_RESOURCES = (
    "events",
    "helmreleases",
    "leases",
    "limitranges",
    "namespaces",
    "networkpolicies",
    "resourcequotas",
    "rolebindings",
    "roles",
    "secrets",
    "subjectaccessreviews",
    "tokenreviews",
)
_RENEWALS = ("PUT leases", "PATCH leases")


class Counting:
    """Counts what a server without other load does."""

    def __init__(self, target: CountedTarget) -> None:
        self._target = target
        self.found: dict[str, float] = {}

    async def run(self) -> None:
        await self._target.grant()
        await self.settle()
        tracked = (await self._target.counts())["tracked"]
        await self.create(range(_TENANTS), "b")
        await self.count_reads()
        await self._count_creates()
        await self._count_changes()
        await self.count_events()
        await self._count_start()
        # right after a start there is no history; what the process itself has differs by a thousand from start to start
        more = (await self._target.counts())["tracked"] - tracked
        self.found["objects tracked for a Tenant"] = more / (_TENANTS + _MORE)

    async def count_reads(self) -> None:
        reads = {
            "GET": f"{COLLECTION}/{objects.name('b', 7)}",
            f"LIST of {_TENANTS}": COLLECTION,
            "LIST, limit=1": f"{COLLECTION}?limit=1",
        }
        connection = await self._target.user.connect()
        for title, path in reads.items():
            call = partial(connection.call, "GET", path)
            # the first calls fill caches
            await _repeat(call, _READS)
            turns = [await self._calls_of_reads(call) for _ in range(_TURNS)]
            self.found[f"calls: {title}"] = min(turns) / _READS
        connection.close()

    async def _calls_of_reads(self, call: Callable[[], Awaitable[object]]) -> int:
        await self._target.counts()
        await _repeat(call, _READS)
        return (await self._target.counts())["calls"]

    async def _count_creates(self) -> None:
        before = await self._writes()
        await self.create(range(_MORE), "c")
        self._add_writes("create", before, await self._writes(), _MORE)

    async def _count_changes(self) -> None:
        before = await self._writes()
        for value in range(_CHANGES):
            await self._change(objects.name("c", value), "once")
        await self.settle()
        self._add_writes("change of a label", before, await self._writes(), _CHANGES)

    async def count_events(self) -> None:
        """The difference between changes that are watched and those that are not."""
        unwatched = min([await self._calls_of_changes(turn) for turn in range(_TURNS)])
        group = WatcherGroup(self._target.user, COLLECTION, _WATCHERS)
        await group.open()
        watched = min([await self._calls_of_changes(_TURNS + turn) for turn in range(_TURNS)])
        await group.close()
        self.found["calls: event to a watcher"] = (watched - unwatched) / (_CHANGES * _WATCHERS)

    async def _calls_of_changes(self, turn: int) -> int:
        await self._target.counts()
        for value in range(_CHANGES):
            await self._change(objects.name("b", 0), f"{turn}-{value}")
        return (await self._target.counts())["calls"]

    async def _count_start(self) -> None:
        await self._target.server.stop()
        await self._target.start()
        await self._target.ready()
        await self.settle()
        requests = (await read_traffic(self._target.admin, _RESOURCES)).requests
        self.found["requests of a start"] = sum(
            count for name, count in requests.items() if not name.startswith(_RENEWALS)
        )

    async def create(self, numbers: range, prefix: str) -> None:
        async def create(connection: Connection, number: int) -> None:
            await connection.call("POST", COLLECTION, objects.tenant(objects.name(prefix, number)))

        await load.parallel(self._target.user, create, numbers, clients=1)
        await self.settle()

    async def _change(self, name: str, value: str) -> None:
        patch = {"metadata": {"labels": {"changed": value}}}
        await self._target.user.call("PATCH", f"{COLLECTION}/{name}", patch, content_type=MERGE_PATCH)

    async def settle(self) -> None:
        await wait_until_quiet(self._target.admin, _RESOURCES[1:])

    async def _writes(self) -> Mapping[str, float]:
        requests = (await read_traffic(self._target.admin, _RESOURCES)).requests
        reads = ("GET", "LIST", "WATCH", *_RENEWALS)
        return {name: count for name, count in requests.items() if not name.startswith(reads)}

    def _add_writes(self, what: str, before: Mapping[str, float], after: Mapping[str, float], times: int) -> None:
        for name, count in after.items():
            # a busy machine delays a few of them, which then have a status in between: that is no write for each
            if written := round((count - before.get(name, 0)) / times):
                self.found[f"{what}: {name}"] = written


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
        loose = "  (lower this bound)" if count < bound * _LOOSE else ""
        print(f"{name:<40} {count:>10.2f}  at most {bound:g}{loose}")


async def main() -> int:
    with tempfile.TemporaryDirectory() as scratch:
        async with CountedTarget.running(Path(scratch), settings=SETTINGS) as target:
            assert isinstance(target, CountedTarget)
            counting = Counting(target)
            await counting.run()
    bounds = orjson.loads(BOUNDS.read_bytes())
    _print(counting.found, bounds)
    problems = judge(counting.found, bounds)
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(uvloop.run(main()))
