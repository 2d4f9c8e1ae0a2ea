"""Stalls of the event loop under load of several kinds at once, and the time of another user's GETs amid creates."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from http import HTTPStatus
from typing import Final

from prometheus_client.parser import text_string_to_metric_families

from benchmarks import figures, load, objects
from benchmarks.client import Connection, Endpoint, UnexpectedStatus
from benchmarks.figures import Row
from benchmarks.objects import COLLECTION
from benchmarks.progress import Progress
from benchmarks.targets.kube import KubeTarget
from benchmarks.targets.sides import MERGE_PATCH
from benchmarks.targets.target import NAMESPACE
from benchmarks.watcher_group import WatcherGroup

_WRITERS: Final = 4
_WRITER_PAUSE: Final = 0.05
_LIST_PAUSE: Final = 1.0
_GET_PAUSE: Final = 0.05
_WATCHERS: Final = 20
_STORM_WRITERS: Final = 16
_STORM_CREATES: Final = 800
_STALLS: Final = "apiserver_event_loop_stall_seconds_bucket"
_PROBED: Final = "mixed-probe"
_CONFIGMAPS: Final = f"/api/v1/namespaces/{NAMESPACE}/configmaps"


async def gets_in_mixed_load(target: KubeTarget, seconds: int, size: int) -> Row:
    """Writers that create, patch and delete Tenants, watchers, lists, and another user's GETs, for so many seconds.
    Stalls are those of the server's own metric, by their length. Deleted Tenants stay in deletion: no controller of
    Kubernetes runs, which would delete what their Namespaces contain."""
    writes: Counter[str] = Counter()
    waits: list[float] = []
    path = f"{COLLECTION}/{objects.name('b', size // 2)}"
    before, starved, start = await _stalls_so_far(target.operator), target.server.starved_seconds(), time.monotonic()
    cpu, progress = target.server.cpu_seconds(), Progress("seconds of mixed load", seconds)
    watchers = WatcherGroup(target.user, COLLECTION, _WATCHERS)
    await watchers.open()
    work: Sequence[Callable[[Connection], Awaitable[None]]] = (
        *(partial(_write, writer=f"m{size}w{number}", writes=writes) for number in range(_WRITERS)),
        _list,
        partial(_get, path=path, waits=waits),
    )
    try:
        async with load.connected(target.user, len(work)) as connections:
            tasks = [
                asyncio.create_task(_repeat(each, connection))
                for each, connection in zip(work, connections, strict=True)
            ]
            while (spent := time.monotonic() - start) < seconds and not any(task.done() for task in tasks):
                progress.reach(round(spent))
                await asyncio.sleep(1)
            await _end(tasks)
    finally:
        await watchers.close()
    wall = time.monotonic() - start
    counted = by_length(before, await _stalls_so_far(target.operator))
    return figures.row(
        f"another user's GET in mixed load, {size} tenants",
        waits,
        lasted_s=round(wall),
        writes_per_second=round(sum(writes.values()) / wall, 1),
        stalls=counted,
        cpu_share=round((target.server.cpu_seconds() - cpu) / wall, 2),
        starved_share=round((target.server.starved_seconds() - starved) / wall, 2),
    )


async def _repeat(work: Callable[[Connection], Awaitable[None]], connection: Connection) -> None:
    while True:
        await work(connection)


async def _end(tasks: Sequence[asyncio.Task[None]]) -> None:
    """Cancels the tasks. Raises RuntimeError if one has ended before."""
    for task in tasks:
        task.cancel()
    for result in await asyncio.gather(*tasks, return_exceptions=True):
        if not isinstance(result, asyncio.CancelledError):
            raise RuntimeError("the load ended before its time") from result


async def _write(connection: Connection, *, writer: str, writes: Counter[str]) -> None:
    """Creates a Tenant, changes it and deletes the one before."""
    number = writes[f"creates of {writer}"]
    name = f"{writer}x{number:06}"
    await connection.call("POST", COLLECTION, objects.tenant(name))
    writes[f"creates of {writer}"] += 1
    await asyncio.sleep(_WRITER_PAUSE)
    patch = {"metadata": {"labels": {"changed": str(number)}}}
    await connection.call("PATCH", f"{COLLECTION}/{name}", patch, content_type=MERGE_PATCH)
    writes["patches"] += 1
    await asyncio.sleep(_WRITER_PAUSE)
    if number:
        try:
            await connection.call("DELETE", f"{COLLECTION}/{writer}x{number - 1:06}")
            writes["deletes"] += 1
        except UnexpectedStatus as error:
            # the controllers write the same object
            if error.status != HTTPStatus.CONFLICT:
                raise
    await asyncio.sleep(_WRITER_PAUSE)


async def _list(connection: Connection) -> None:
    await connection.fetch("GET", COLLECTION, headers="Accept-Encoding: gzip\r\n")
    await asyncio.sleep(_LIST_PAUSE)


async def _get(connection: Connection, *, path: str, waits: list[float]) -> None:
    start = time.perf_counter()
    await connection.call("GET", path)
    waits.append(time.perf_counter() - start)
    await asyncio.sleep(_GET_PAUSE)


async def gets_amid_creates(target: KubeTarget, size: int) -> Sequence[Row]:
    """Times one user's GETs of a Tenant, and those of a ConfigMap from the kube-apiserver, while writers create
    Tenants as fast as they can."""
    await target.admin.call("POST", _CONFIGMAPS, {"metadata": {"name": _PROBED}})
    ours: list[float] = []
    path = f"{COLLECTION}/{objects.name('b', size // 2)}"
    theirs: list[float] = []
    prefix = f"s{int(time.monotonic() * 10):x}x"

    async def create(connection: Connection, number: int) -> None:
        await connection.call("POST", COLLECTION, objects.tenant(f"{prefix}{number:04}"))

    async with load.connected(target.user, 1) as (reader,), load.connected(target.admin, 1) as (admin,):
        tasks = [
            asyncio.create_task(_repeat(partial(_get, path=path, waits=ours), reader)),
            asyncio.create_task(_repeat(partial(_get, path=f"{_CONFIGMAPS}/{_PROBED}", waits=theirs), admin)),
        ]
        done = await load.parallel(
            target.user, create, range(_STORM_CREATES), clients=_STORM_WRITERS, progress="Tenants amid GETs"
        )
        await _end(tasks)
    await target.admin.call("DELETE", f"{_CONFIGMAPS}/{_PROBED}")
    return [
        figures.row(f"another user's GET amid creates, {size} tenants", ours, creates_per_second=done.per_second),
        figures.row("a ConfigMap from the kube-apiserver meanwhile", theirs),
    ]


async def _stalls_so_far(server: Endpoint) -> Mapping[float, float]:
    """Numbers of stalls that were at most so many seconds."""
    return {
        float(sample.labels["le"]): sample.value
        for family in text_string_to_metric_families(await server.text("/metrics"))
        for sample in family.samples
        if sample.name == _STALLS
    }


def by_length(before: Mapping[float, float], after: Mapping[float, float]) -> Mapping[str, float]:
    """How many stalls there were between two bounds, in milliseconds."""
    found: dict[str, float] = {}
    shorter, lower = 0.0, 10.0
    for bound in sorted(after):
        total = after[bound] - before.get(bound, 0.0)
        if total > shorter:
            found[f"{lower:g} to {bound * 1000:g} ms:"] = total - shorter
        shorter, lower = total, bound * 1000
    return found
