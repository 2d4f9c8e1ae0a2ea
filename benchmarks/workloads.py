"""The workloads of `python -m benchmarks`. Each reads and parses all bytes that it receives."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial

import orjson

from benchmarks import figures, load, objects
from benchmarks.client import Connection
from benchmarks.figures import Row
from benchmarks.kinds import TENANT
from benchmarks.livez_probe import LivezProbe
from benchmarks.objects import COLLECTION, RELEASES, Object
from benchmarks.targets.cluster_traffic import QUIET_SECONDS, read_traffic, wait_until_quiet
from benchmarks.targets.sides import MERGE_PATCH
from benchmarks.targets.target import Target
from benchmarks.watcher_group import WatcherGroup

_FORMS = {
    "JSON": "",
    "JSON, gzip": "Accept-Encoding: gzip\r\n",
    "Table": "Accept: application/json;as=Table;v=v1;g=meta.k8s.io\r\n",
    "Partial": "Accept: application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1\r\n",
}
_CLIENTS = (1, 16, 128)
_GETS = 1000
_NAMES = 500
_CHANGED = 10
_BLOCKS = 4
# After this time the server has returned the memory of its start to the system.
_MEMORY_RETURN_SECONDS = 35.0
_SEEDERS = 16


@dataclass(frozen=True, slots=True)
class WorkloadFigures:
    """The cost of a workload besides the time of its calls; `figures` is complete when the context ends."""

    figures: Row = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantBenchmark:
    """`runs` multiplies the number of calls of each workload."""

    target: Target
    probe: LivezProbe
    runs: int

    @asynccontextmanager
    async def measure(self, calls: int) -> AsyncIterator[WorkloadFigures]:
        """Measures our server's processor time per call, how long it was runnable without a processor, its requests to
        the cluster, and how long its event loop let other requests wait."""
        measured, server = WorkloadFigures(), self.target.server
        before = await read_traffic(self.target.admin)
        cpu, starved, start = server.cpu_seconds(), server.starved_seconds(), time.monotonic()
        yield measured
        end, cpu, starved = time.monotonic(), server.cpu_seconds() - cpu, server.starved_seconds() - starved
        longest, stalls = await self.probe.between(start, end)
        after = await read_traffic(self.target.admin)
        measured.figures.update(
            server_cpu_ms=round(cpu * 1000 / calls, 3),
            cluster_requests=after.since(before),
            cluster_watches=after.watches - before.watches,
            longest_wait_ms=longest,
            stalls=stalls,
            starved_ms=round(starved * 1000 / calls, 3),
        )

    async def seed(self, existing: int, total: int) -> Row:
        """Creates HelmReleases directly in the cluster, as Flux leaves them, and waits until our controllers have
        reconciled them."""
        target = self.target
        numbers = range(existing, total)
        async with self.measure(len(numbers)) as measured:
            start = time.perf_counter()
            await load.parallel(target.cluster_user, TENANT.seed, numbers, clients=_SEEDERS, progress="Tenants")
            written = time.perf_counter() - start
            await wait_until_quiet(self.target.admin)
        seconds = round(time.perf_counter() - start - QUIET_SECONDS, 1)
        title = f"{existing} to {total} tenants in the cluster"
        return figures.row(title, written_s=round(written, 1), reconciled_s=seconds, **measured.figures)

    async def lists(self, size: int) -> Sequence[Row]:
        rows: list[Row] = []
        times = 3 * self.runs
        for form, headers in _FORMS.items():
            await load.repeat(self.target.user, _Lists(headers, size), 1)
            call = _Lists(headers, size)
            async with self.measure(times) as measured:
                seconds = await load.repeat(self.target.user, call, times)
            more = {"read_ms": round(statistics.median(call.read) * 1000, 2), "kib": call.received // 1024}
            rows.append(figures.row(f"LIST {size}, {form}", seconds, **more, **measured.figures))
        return rows

    async def gets(self, size: int) -> Sequence[Row]:
        rows: list[Row] = []
        for clients in _CLIENTS:
            call = partial(_get, names=min(size, _NAMES))
            # our server asks the cluster once per name whether the user may read it
            await load.parallel(self.target.user, call, range(_NAMES), clients=_SEEDERS)
            async with self.measure(_GETS * self.runs) as measured:
                done = await load.parallel(self.target.user, call, range(_GETS * self.runs), clients=clients)
            title = f"GET, {clients} clients, {size} tenants"
            rows.append(figures.row(title, done.seconds, per_second=done.per_second, **measured.figures))
        return rows

    async def writes(self, size: int) -> Sequence[Row]:
        """Times CREATE and UPDATE, each alternating with the same write of a HelmRelease at the cluster: first with
        pauses between the calls, then without."""
        target, times = self.target, 20 * self.runs
        rows: list[Row] = []
        for verb, (own_call, cluster_call) in {
            "CREATE": (_create, _create_release),
            "UPDATE": (_update, _update_release),
        }.items():
            if verb == "UPDATE":
                # our server asks the cluster once per name whether the user may change it
                await load.parallel(target.user, own_call, range(times, times + _CHANGED), clients=1)
            async with self.measure(times) as measured:
                spent = await load.alternate(target.user, own_call, target.cluster_user, cluster_call, times)
            del measured.figures["cluster_requests"], measured.figures["server_cpu_ms"]
            rows.append(figures.row(f"{verb}, {size} tenants", spent[0], **measured.figures))
            rows.append(figures.row(f"{verb} of the HelmRelease in the cluster", spent[1]))
            await wait_until_quiet(target.admin)
            spent = await self._in_blocks(own_call, cluster_call, range(times + _CHANGED, 2 * times + _CHANGED))
            rows.append(figures.row(f"{verb}, without pauses", spent[0]))
            rows.append(figures.row(f"{verb} of the HelmRelease, without pauses", spent[1]))
        for title, prefix, make in (("", "p", objects.tenant), (" with quotas", "q", objects.tenant_with_quota)):
            call = partial(_create, prefix=prefix, make=make)
            async with self.measure(times) as measured:
                done = await load.parallel(target.user, call, range(times), clients=_SEEDERS)
                await wait_until_quiet(self.target.admin)
            title = f"CREATE{title}, {_SEEDERS} clients, {size} tenants"
            rows.append(figures.row(title, done.seconds, per_second=done.per_second, **measured.figures))
        return rows

    async def _in_blocks(
        self, own_call: load.Call, cluster_call: load.Call, numbers: Sequence[int]
    ) -> tuple[list[float], ...]:
        """Returns the seconds of both calls, in alternating blocks of consecutive calls. A block starts when the work
        that the previous one caused is done."""
        seconds: tuple[list[float], list[float]] = ([], [])
        calls = ((self.target.user, own_call), (self.target.cluster_user, cluster_call))
        for block in range(_BLOCKS):
            for (user, call), spent in zip(calls, seconds, strict=True):
                spent += (await load.parallel(user, call, numbers[block::_BLOCKS], clients=1)).seconds
                await wait_until_quiet(self.target.admin)
        return seconds

    async def fan_out(self, watchers: int) -> Sequence[Row]:
        """Times from sending a change until the last watcher has its event."""
        group = WatcherGroup(self.target.user, COLLECTION, watchers)
        async with self.measure(1) as opened:
            start = time.perf_counter()
            await group.open()
            seconds_to_open = round(time.perf_counter() - start, 2)
        rows = [figures.row(f"{watchers} watches opened", opened_s=seconds_to_open, **opened.figures)]
        connection = await self.target.user.connect()
        times = 4 * self.runs
        try:
            async with self.measure(times) as measured:
                seconds = [await time_delivery(group, connection, str(number)) for number in range(times)]
            memory = round(self.target.server.memory_mib()[0])
            rows.append(figures.row(f"one change to {watchers} watchers", seconds, rss_mib=memory, **measured.figures))
        finally:
            connection.close()
            await group.close()
        return rows

    async def starts(self, size: int) -> Row:
        """Times from starting the process until it is ready, with everything reconciled beforehand."""
        target = self.target
        ready, listed = list[float](), list[float]()
        memory = 0.0
        writes = 0.0
        waits: list[float] = []
        for _ in range(self.runs):
            await target.server.stop()
            start, started_at = time.perf_counter(), time.monotonic()
            await target.start()
            await target.ready()
            ready.append(time.perf_counter() - start)
            await load.repeat(target.user, _Lists("", size), 1)
            listed.append(time.perf_counter() - start)
            before = await read_traffic(target.admin)
            await wait_until_quiet(self.target.admin)
            writes = (await read_traffic(target.admin)).writes() - before.writes()
            memory = target.server.memory_mib()[0]
            waits.append((await self.probe.between(started_at + ready[-1], time.monotonic()))[0])
        await asyncio.sleep(_MEMORY_RETURN_SECONDS)
        later = round(target.server.memory_mib()[0])
        more = {"listed_ms": round(statistics.median(listed) * 1000), "writes_after": writes}
        more |= {"rss_mib": round(memory), "rss_given_back_mib": later}
        return figures.row(f"start-up, {size} tenants", ready, **more, longest_wait_ms=max(waits))

    def memory(self, size: int) -> Row:
        now, most = self.target.server.memory_mib()
        return figures.row(f"memory, {size} tenants", rss_mib=round(now), peak_mib=round(most))


class _Lists:
    """Lists at least `size` Tenants. `read` are the seconds until the last byte, before parsing; `received` is the size
    of the last list as it was received, in bytes."""

    def __init__(self, headers: str, size: int) -> None:
        self._headers = headers
        self._size = size
        self.read: list[float] = []
        self.received = 0

    async def __call__(self, connection: Connection, _: int) -> None:
        start = time.perf_counter()
        body = await connection.call("GET", COLLECTION, headers=self._headers)
        self.read.append(time.perf_counter() - start)
        self.received = connection.received
        document = orjson.loads(body)
        if len(document.get("items", document.get("rows"))) < self._size:
            raise RuntimeError("the list is incomplete")


async def _get(connection: Connection, number: int, *, names: int) -> None:
    name = objects.name("b", number % names)
    if orjson.loads(await connection.call("GET", f"{COLLECTION}/{name}"))["metadata"]["name"] != name:
        raise RuntimeError("the response is another tenant")


async def _create(
    connection: Connection, number: int, *, prefix: str = "c", make: Callable[[str], Object] = objects.tenant
) -> None:
    orjson.loads(await connection.call("POST", COLLECTION, make(objects.name(prefix, number))))


async def _create_release(connection: Connection, number: int) -> None:
    orjson.loads(await connection.call("POST", RELEASES, objects.release(objects.name("h", number))))


async def _update(connection: Connection, number: int) -> None:
    patch = {"metadata": {"labels": {"changed": str(number)}}}
    path = f"{COLLECTION}/{objects.name('c', number % _CHANGED)}"
    orjson.loads(await connection.call("PATCH", path, patch, content_type=MERGE_PATCH))


async def time_delivery(group: WatcherGroup, connection: Connection, value: str) -> float:
    """Returns the seconds from sending a change until the last watcher has it."""

    async def annotate() -> None:
        patch = {"metadata": {"annotations": {"bench": value}}}
        await connection.call("PATCH", f"{COLLECTION}/{objects.name('b', 0)}", patch, content_type=MERGE_PATCH)

    def is_annotated(frame: Object) -> bool:
        return bool(frame["object"]["metadata"].get("annotations", {}).get("bench") == value)

    return await group.time_until_received(annotate, counts=is_annotated)


async def _update_release(connection: Connection, number: int) -> None:
    patch = {"metadata": {"labels": {"apps.cozystack.io-changed": str(number)}}}
    path = f"{RELEASES}/tenant-{objects.name('h', number % _CHANGED)}"
    orjson.loads(await connection.call("PATCH", path, patch, content_type=MERGE_PATCH))
