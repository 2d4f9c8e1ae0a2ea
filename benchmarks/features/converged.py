"""python -m benchmarks.features.converged [--tenants 1000,10000,50000] [--creates N] [--mixed SECONDS]
    [--json FILE]

`serve` beside a kube-apiserver with so many converged Tenants, which have all that the controllers write for them. The
controllers write it for the first of them; the others are copies in etcd, which takes minutes and not hours. There is
nothing to write for a copy: `writes` after a start are for Tenants that were created with a smaller number.

For each number: a start, the memory after it, lists, and what a GET, an event and a create cost; creates are fewer with
`--creates`, as a kube-apiserver with 50,000 takes long for each. With `--mixed`, also stalls of the event loop in so
many seconds of mixed load, and GETs of another user amid creates.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from benchmarks import figures, load, mixed_load, objects
from benchmarks.__main__ import RowReport, machine
from benchmarks.check import Counting
from benchmarks.client import Connection
from benchmarks.command_line import add_json_option, at_least, parse_sizes, run
from benchmarks.copies import TenantCopies
from benchmarks.figures import Row
from benchmarks.kinds import TENANT
from benchmarks.objects import COLLECTION
from benchmarks.progress import Progress
from benchmarks.reads import FORMS, GZIP
from benchmarks.targets.cluster_traffic import WRITTEN, read_traffic, wait_until_quiet
from benchmarks.targets.counted import CountedKubeTarget
from benchmarks.targets.processes import ObservedProcess
from benchmarks.watcher_group import WatcherGroup
from benchmarks.workloads import time_delivery

_SEEDED: Final = 250
_SEEDERS: Final = 16
_COPIES_AT_ONCE: Final = 4
_IDLE_SHARE: Final = 0.1
_IDLE_SECONDS: Final = 5.0
# After this time the server has returned the memory of its start to the system.
_MEMORY_RETURN_SECONDS: Final = 60.0
_TURNS: Final = 15
_GETS: Final = 200
_CHANGES: Final = 5
_FEW_WATCHERS, _MORE_WATCHERS = 20, 100
_CREATES: Final = 100
_CREATE_TURNS: Final = 5


class ConvergedTenants:
    """A cluster whose number of converged Tenants grows."""

    def __init__(self, target: CountedKubeTarget, creates: int) -> None:
        self._target = target
        self._creates_a_turn = creates
        self._copied = 0

    async def seed(self) -> None:
        """Writes the first Tenants, as Flux leaves them, and waits until the controllers have written the rest."""
        await load.parallel(
            self._target.cluster_user, TENANT.seed, range(_SEEDED), clients=_SEEDERS, progress="Tenants"
        )
        await wait_until_quiet(self._target.admin, WRITTEN)

    async def grow(self, size: int) -> None:
        """Copies Tenants in etcd, while nothing else runs, and starts the kube-apiserver again."""
        await self._target.server.stop()
        await self._target.stop_apiserver()
        copies = TenantCopies(await self._target.data.read(b"/registry/"), _SEEDED)
        numbers = range(self._copied + 1, size // _SEEDED)
        progress = Progress("copies of Tenants", len(numbers))
        for first in numbers[::_COPIES_AT_ONCE]:
            block = range(first, min(first + _COPIES_AT_ONCE, numbers.stop))
            await self._target.data.write([pair for number in block for pair in copies.copy(number)])
            progress.reach(block.stop - numbers.start)
        self._copied = max(self._copied, numbers.stop - 1)
        await self._target.start_apiserver()
        await _wait_until_idle(self._target.cluster_processes["kube-apiserver"])

    async def start(self, size: int) -> Row:
        """Starts the server, until it is ready; then until the controllers have compared everything."""
        kube = self._target.cluster_processes["kube-apiserver"]
        before, kube_before = await read_traffic(self._target.admin, WRITTEN), kube.cpu_seconds()
        start = time.monotonic()
        await self._target.start()
        await self._target.ready()
        server = self._target.server
        ready, cpu, kube_cpu = time.monotonic() - start, server.cpu_seconds(), kube.cpu_seconds() - kube_before
        await _wait_until_idle(server)
        compared, compared_cpu = time.monotonic() - start - _IDLE_SECONDS, server.cpu_seconds()
        await asyncio.sleep(_MEMORY_RETURN_SECONDS)
        after = await read_traffic(self._target.admin, WRITTEN)
        return figures.row(
            f"start, {size} tenants",
            ready_s=round(ready, 1),
            cpu_s=round(cpu, 1),
            kube_cpu_s=round(kube_cpu, 1),
            compared_s=round(compared, 1),
            compared_cpu_s=round(compared_cpu, 1),
            writes=after.writes() - before.writes(),
            rss_mib=round(server.memory_mib()[0]),
            peak_mib=round(server.memory_mib()[1]),
        )

    async def costs(self, size: int) -> AsyncIterator[Row]:
        """Lists, a GET, an event to a watcher, and a create with all that is written for it."""
        # after a start, the kube-apiserver compacts etcd and collects its garbage for a while
        await _wait_until_idle(self._target.cluster_processes["kube-apiserver"])
        for form in FORMS:
            for headers in (FORMS[form], f"{FORMS[form]}{GZIP}"):
                yield await self._lists(size, form, headers)
        yield await self._gets(size)
        yield await self._events(size)
        yield await self._calls(size)
        yield await self._creates(size)

    async def _lists(self, size: int, form: str, headers: str) -> Row:
        """The first one fills caches and is not measured."""
        spent, seconds = [], []
        async with load.connected(self._target.user, 1) as (connection,):
            await connection.fetch("GET", COLLECTION, headers=headers)
            for _ in range(_TURNS):
                before, start = self._target.server.cpu_seconds(), time.perf_counter()
                await connection.fetch("GET", COLLECTION, headers=headers)
                seconds.append(time.perf_counter() - start)
                spent.append(self._target.server.cpu_seconds() - before)
        title = f"LIST {size}, {form}{', gzip' if GZIP in headers else ''}"
        return figures.row(title, seconds, kib=connection.received // 1024, **_cpu(spent))

    async def _gets(self, size: int) -> Row:
        call = partial(_get, size=size)
        # our server asks the cluster once per name whether the user may read it
        await load.repeat(self._target.user, call, _GETS)
        seconds: list[float] = []
        spent = []
        for _ in range(_TURNS):
            before = self._target.server.cpu_seconds()
            seconds += await load.repeat(self._target.user, call, _GETS)
            spent.append((self._target.server.cpu_seconds() - before) / _GETS)
        return figures.row(f"GET, 1 client, {size} tenants", seconds, **_cpu(spent))

    async def _events(self, size: int) -> Row:
        """The processor time of an event to one watcher more, of many; the time until one watcher has its event."""
        user = self._target.user
        async with load.connected(user, 1) as (connection,):
            alone = WatcherGroup(user, COLLECTION, 1)
            await alone.open()
            seconds = [await time_delivery(alone, connection, f"alone-{turn}") for turn in range(_TURNS * _CHANGES)]
            few = WatcherGroup(user, COLLECTION, _FEW_WATCHERS)
            await few.open()
            least = [await self._changes(few, connection, f"few-{turn}") for turn in range(_TURNS)]
            more = WatcherGroup(user, COLLECTION, _MORE_WATCHERS)
            await more.open()
            most = [await self._changes(more, connection, f"more-{turn}") for turn in range(_TURNS)]
            for group in (alone, few, more):
                await group.close()
        middle = statistics.median(least)
        spent = [(each - middle) / _MORE_WATCHERS for each in most]
        return figures.row(f"event, {size} tenants", seconds, **_cpu(spent))

    async def _changes(self, group: WatcherGroup, connection: Connection, value: str) -> float:
        before = self._target.server.cpu_seconds()
        for change in range(_CHANGES):
            await time_delivery(group, connection, f"{value}-{change}")
        return (self._target.server.cpu_seconds() - before) / _CHANGES

    async def _creates(self, size: int) -> Row:
        """Each create waits until the one before is answered; what the controllers write may come later. From the
        processor time, that of an equally long time without a create is subtracted."""
        seconds: list[float] = []

        async def create(turn: int) -> None:
            seconds.extend(await self._create_all(f"c{size // _SEEDED}t{turn}x"))

        spent = [await self._more_than_idle(partial(create, turn)) for turn in range(_CREATE_TURNS)]
        costs = _cpu([each / self._creates_a_turn for each in spent])
        return figures.row(f"CREATE, 1 writer, {size} tenants", seconds, **costs)

    async def _create_all(self, prefix: str) -> Sequence[float]:
        """Creates the Tenants of a turn, until the controllers have written all. Returns the times of the creates."""
        seconds = await load.repeat(self._target.user, partial(_create, prefix=prefix), self._creates_a_turn)
        await wait_until_quiet(self._target.admin, WRITTEN)
        return seconds

    async def _more_than_idle(self, work: Callable[[], Awaitable[object]]) -> float:
        """The seconds of processor time for `work` that the server does not use in an equally long time without."""
        server, start = self._target.server, time.monotonic()
        before = server.cpu_seconds()
        await work()
        done = server.cpu_seconds()
        await asyncio.sleep(time.monotonic() - start)
        return (done - before) - (server.cpu_seconds() - done)

    async def _calls(self, size: int) -> Row:
        """Function calls of a GET, of an event, and of a create until all is written: the least of the turns counts, as
        timers happen in others."""
        # else the calls of what is still written would count
        await wait_until_quiet(self._target.admin, WRITTEN)
        counting = Counting(self._target)
        await counting.count_gets()
        await counting.count_events()
        prefixes = [f"n{size // _SEEDED}t{turn}x" for turn in range(_CREATE_TURNS)]
        creates = min([await self._target.calls(partial(self._create_all, prefix)) for prefix in prefixes])
        found = {**counting.found, "calls: create": creates / self._creates_a_turn}
        return {"workload": f"function calls, {size} tenants", **found}


def _cpu(spent: Sequence[float]) -> Row:
    ordered = sorted(each * 1000 for each in spent)
    middle = statistics.median(ordered)
    return {"cpu_ms": round(middle, 4), "cpu_ms_least": round(ordered[0], 4), "cpu_ms_most": round(ordered[-1], 4)}


async def _get(connection: Connection, number: int, *, size: int) -> None:
    await connection.call("GET", f"{COLLECTION}/{objects.name('b', number * size // _GETS)}")


async def _create(connection: Connection, number: int, *, prefix: str) -> None:
    await connection.call("POST", COLLECTION, objects.tenant(f"{prefix}{number:03}"))


async def _wait_until_idle(process: ObservedProcess) -> None:
    """Waits until the process has used next to no processor time for some seconds."""
    progress = Progress("seconds of processor time, until it is idle")
    while True:
        before, start = process.cpu_seconds(), time.monotonic()
        await asyncio.sleep(_IDLE_SECONDS)
        progress.reach(round(process.cpu_seconds()))
        if process.cpu_seconds() - before < _IDLE_SHARE * (time.monotonic() - start):
            return


async def _measure(
    target: CountedKubeTarget, tenants: ConvergedTenants, size: int, *, mixed: int
) -> AsyncIterator[Row]:
    await tenants.grow(size)
    yield await tenants.start(size)
    async for row in tenants.costs(size):
        yield row
    if mixed:
        yield await mixed_load.gets_in_mixed_load(target, mixed, size)
        for row in await mixed_load.gets_amid_creates(target, size):
            yield row


async def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.features.converged")
    parser.add_argument(
        "--tenants", type=parse_sizes, default=[1000, 10_000, 50_000], metavar="N,…", help=f"multiples of {_SEEDED}"
    )
    parser.add_argument("--creates", type=at_least(1), default=_CREATES, metavar="N", help="in each of five turns")
    parser.add_argument(
        "--mixed", type=at_least(0), default=0, metavar="SECONDS", help="measure a mixed load for so long, too"
    )
    add_json_option(parser)
    arguments = parser.parse_args()
    sizes = arguments.tenants
    if any(size % _SEEDED for size in sizes):
        parser.error(f"--tenants must be multiples of {_SEEDED}, the smallest first")
    report = RowReport()
    with tempfile.TemporaryDirectory() as scratch:
        async with CountedKubeTarget.running(Path(scratch)) as target:
            assert isinstance(target, CountedKubeTarget)
            await target.grant()
            tenants = ConvergedTenants(target, arguments.creates)
            await tenants.seed()
            try:
                for size in sizes:
                    async for row in _measure(target, tenants, size, mixed=arguments.mixed):
                        report.add(row)
            finally:
                # what was measured before a failure took its time
                if arguments.json is not None:
                    document = {"target": target.title, "machine": machine(), "rows": report.rows}
                    arguments.json.write_text(json.dumps(document, indent=2) + "\n")


if __name__ == "__main__":
    run(main())
