"""python -m benchmarks.features.application_requests [--applications 40000]: the processor time of the stand-alone
server for requests about one of four kinds of applications, over HTTPS."""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from benchmarks import load
from benchmarks.client import Connection
from benchmarks.command_line import at_least, run
from benchmarks.features.applications import definition, releases, report
from benchmarks.objects import Object
from benchmarks.targets.sides import MERGE_PATCH
from benchmarks.targets.standalone import StandaloneTarget
from benchmarks.watcher_group import WatcherGroup

_KINDS = 4
_NAMESPACES = 100
_SEEDERS = 16
_TURNS = 200
_WATCHERS = 100
_PAGE = 500
_SETTLED_SECONDS = 10.0
_DEFINITIONS = "/apis/cozystack.io/v1alpha1/applicationdefinitions"
_GROUP_VERSION = "/apis/apps.cozystack.io/v1alpha1"


async def measure(applications: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        async with StandaloneTarget.running(Path(directory), controllers="none") as target:
            await _fill(target, applications)
            await _measure_requests(target, applications // _KINDS)


async def _fill(target: StandaloneTarget, applications: int) -> None:
    definitions = [definition(number) for number in range(_KINDS)]
    for each in definitions:
        await target.admin.call("POST", _DEFINITIONS, each)
    for number in range(_NAMESPACES):
        await target.admin.call("POST", "/api/v1/namespaces", {"metadata": {"name": f"tenant-n{number:03}"}})
    found = releases(definitions, applications)
    await load.parallel(
        target.admin, partial(_create, objects=found), range(applications), clients=_SEEDERS, progress="applications"
    )
    await asyncio.sleep(_SETTLED_SECONDS)
    report(f"memory with {applications} applications", target.server.memory_mib()[0], "MiB")


async def _create(connection: Connection, number: int, *, objects: Sequence[Object]) -> None:
    obj = objects[number]
    metadata = {field: obj["metadata"][field] for field in ("name", "labels")}
    path = f"/apis/helm.toolkit.fluxcd.io/v2/namespaces/{obj['metadata']['namespace']}/helmreleases"
    await connection.call("POST", path, {**obj, "metadata": metadata})


async def _measure_requests(target: StandaloneTarget, size: int) -> None:
    plural = definition(0)["spec"]["application"]["plural"]
    collection = f"{_GROUP_VERSION}/{plural}"
    one = f"{_GROUP_VERSION}/namespaces/tenant-n000/{plural}/db00000"

    async def get(connection: Connection, number: int) -> None:
        await connection.call("GET", one)

    async def page(connection: Connection, number: int) -> None:
        await connection.call("GET", f"{collection}?limit={_PAGE}")

    async def change(connection: Connection, number: int) -> None:
        patch = {"metadata": {"labels": {"turn": str(number)}}}
        await connection.call("PATCH", one, patch, content_type=MERGE_PATCH)

    report("processor time of a GET", await _cost(target, get), "ms")
    report(f"processor time of a LIST of {min(_PAGE, size)} of {size}", await _cost(target, page), "ms")
    alone = await _cost(target, change)
    watchers = WatcherGroup(target.admin, collection, _WATCHERS)
    await watchers.open()
    watched = await _cost(target, change)
    await watchers.close()
    report("processor time of a PATCH", alone, "ms")
    report("processor time of its event for one watch", (watched - alone) * 1000 / _WATCHERS, "µs")


async def _cost(target: StandaloneTarget, call: load.Call) -> float:
    """The milliseconds of processor time of one call, of many that one connection makes one after the other."""
    await load.repeat(target.admin, call, _TURNS)
    before = target.server.cpu_seconds()
    await load.repeat(target.admin, call, _TURNS)
    return (target.server.cpu_seconds() - before) * 1000 / _TURNS


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.features.application_requests", description=__doc__)
    parser.add_argument(
        "--applications", type=at_least(_KINDS), default=40_000, metavar="N", help=f"applications of {_KINDS} kinds"
    )
    run(measure(parser.parse_args().applications))


if __name__ == "__main__":
    main()
