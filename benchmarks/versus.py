"""python -m benchmarks.versus [--sizes 100,1000,10000] [--turns 5] [--only list,get,…] [--against URL …] [--json FILE]

Compares our server, our server behind a kube-apiserver's aggregator, custom resources of that kube-apiserver, and any
other Kubernetes-style server: each does the same work, in turns. See docs/performance.md.
"""

from __future__ import annotations

import argparse
import gc
import json
import resource
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Protocol

import yaml

from benchmarks import measurements
from benchmarks.__main__ import machine
from benchmarks.command_line import (
    add_cluster_option,
    add_json_option,
    at_least,
    parse_integers,
    parse_seconds,
    parse_sizes,
    parse_source,
    run,
)
from benchmarks.fanout import FanOut
from benchmarks.figures import Row
from benchmarks.measurements import Measurement
from benchmarks.objects import Object
from benchmarks.progress import Progress
from benchmarks.reads import FORMS, FilteredLists, Gets, Lists, PagedLists, repetitions
from benchmarks.starts import Starts
from benchmarks.targets.comparison import AGGREGATED, CUSTOM, DIRECT, ServerComparison
from benchmarks.targets.cozystack_api import CozystackApi
from benchmarks.targets.external_server import ExternalServer, ResourceName
from benchmarks.targets.kube import KubeTarget
from benchmarks.targets.sides import Side, wait_until_idle
from benchmarks.targets.standalone import StandaloneTarget
from benchmarks.targets.target import NAMESPACE
from benchmarks.writes import Writes

_CONTROLLERS, _ROOT_ONLY = "*", "root-tenant"
_GET_CLIENTS = (1, 16, 128)
_WRITERS = (1, 8, 16)
_WRITES = 96


class Workload(Protocol):
    async def turn(self, side: Side, number: int) -> Mapping[str, Measurement]:
        """Measures one side once and returns the measurements by title."""
        ...


WorkloadFactory = Callable[[argparse.Namespace, int], Sequence[Workload]]


def _lists(arguments: argparse.Namespace, size: int) -> Sequence[Workload]:
    # Tables last: the age of an object changes every second until it is ten minutes old
    forms = sorted(FORMS, key=lambda form: form == "Table")
    variants = [(form, gzip, cached) for form in forms for cached in (True, False) for gzip in (False, True)]
    return [
        Lists(size=size, form=form, gzip=gzip, any_version=cached, times=repetitions(size))
        for form, gzip, cached in variants
    ]


def _fan_outs(arguments: argparse.Namespace, size: int) -> Sequence[Workload]:
    return [FanOut(watchers=each, rates=arguments.rates, window=arguments.window) for each in arguments.watchers]


def _writes(arguments: argparse.Namespace, size: int) -> Sequence[Workload]:
    times = min(_WRITES, size)
    # no number of writers creates the objects of another one
    created = arguments.turns * times
    return [Writes(writers=each, times=times, first=place * created) for place, each in enumerate(arguments.writers)]


# All other workloads are measured only at the last size.
_AT_EVERY_SIZE = "list"
# A kube-apiserver takes long to start: measured only on request.
_COLD = "cold"
_WORKLOADS: dict[str, WorkloadFactory] = {
    _AT_EVERY_SIZE: _lists,
    "page": lambda arguments, size: [PagedLists(size=size, times=min(3, repetitions(size)))],
    "filter": lambda arguments, size: [FilteredLists(size=size, times=10, matches=each) for each in (True, False)],
    "get": lambda arguments, size: [Gets(size=size, clients=clients) for clients in _GET_CLIENTS],
    "watch": _fan_outs,
    _COLD: lambda arguments, size: [Starts(size=size)],
    # last: two sides are one server, which has more objects than the others afterwards
    "write": _writes,
}


def workloads_of(name: str, arguments: argparse.Namespace, size: int) -> Sequence[Workload]:
    """The workloads of one name of --only, when each server has `size` objects."""
    return _WORKLOADS[name](arguments, size)


class ComparisonReport:
    """Collects rows and prints each workload at once."""

    def __init__(self) -> None:
        self.rows: list[Row] = []

    def add(self, workload: str, sides: Mapping[str, Sequence[Measurement]]) -> None:
        rows = measurements.compare(workload, sides)
        print(f"\n{workload}", *map(measurements.format_row, rows), sep="\n", flush=True)
        self.rows += rows


async def measure_in_turns(sides: Sequence[Side], workload: Workload, times: int, report: ComparisonReport) -> None:
    """Measures in the order A, B, C, A, B, C, so that other load of the machine affects all sides alike."""
    progress = Progress(f"turns of {type(workload).__name__}", times * len(sides))
    measurements_by_title: dict[str, dict[str, list[Measurement]]] = {}
    for number in range(times):
        for side in sides:
            await wait_until_idle(sides)
            gc.collect()
            for title, measured in (await workload.turn(side, number)).items():
                measurements_by_title.setdefault(title, {}).setdefault(side.title, []).append(measured)
            progress.step()
    for title, by_side in measurements_by_title.items():
        report.add(title, by_side)


async def compare(comparison: ServerComparison, arguments: argparse.Namespace, report: ComparisonReport) -> None:
    seeded = 0
    for size in arguments.sizes:
        start = time.monotonic()
        await comparison.seed(seeded, size)
        print(f"\n{size} objects in each, created in {time.monotonic() - start:.0f} s", flush=True)
        seeded = size
        if _AT_EVERY_SIZE in arguments.only:
            for workload in workloads_of(_AT_EVERY_SIZE, arguments, size):
                await measure_in_turns(comparison.sides, workload, arguments.turns, report)
    for name in _WORKLOADS:
        if name in arguments.only and name != _AT_EVERY_SIZE:
            for workload in workloads_of(name, arguments, seeded):
                await comparison.ready()
                await measure_in_turns(comparison.sides, workload, arguments.turns, report)


def parse_names(text: str) -> Sequence[str]:
    return text.split(",")


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.versus")
    add_cluster_option(parser, choices=("kube", "embedded"), default="kube")
    parser.add_argument(
        "--sides", type=parse_names, help=f"of {DIRECT},{AGGREGATED},{CUSTOM}; on the embedded cluster {DIRECT}"
    )
    parser.add_argument("--sizes", type=parse_sizes, default=[100, 1000, 10_000], help="objects, the smallest first")
    parser.add_argument("--turns", type=at_least(1), default=5, help="measurements of each side")
    parser.add_argument(
        "--unreconciled", action="store_true", help="without our controllers: many objects are created much faster"
    )
    parser.add_argument(
        "--only",
        type=parse_names,
        default=[name for name in _WORKLOADS if name != _COLD],
        help=f"of {','.join(_WORKLOADS)}; {_COLD} is left out unless it is named",
    )
    parser.add_argument(
        "--watchers", type=parse_integers, default=[1, 100, 1000], help="clients that watch all objects"
    )
    parser.add_argument("--writers", type=parse_integers, default=list(_WRITERS), help="clients that write at a time")
    parser.add_argument("--rates", type=parse_integers, default=[10, 100], help="changes a second")
    parser.add_argument("--window", type=parse_seconds, default=1.0, help="seconds for which each rate is sustained")
    parser.add_argument("--against", metavar="URL", help="another server, with the resource of --resource")
    parser.add_argument("--kubeconfig", type=parse_source, help="credentials for it")
    parser.add_argument("--resource", type=ResourceName.parse, help="group/version/plural")
    parser.add_argument("--namespace", default=NAMESPACE, help="of the objects of --resource")
    parser.add_argument("--pids", type=parse_integers, default=[], help="its processes, if they run on this machine")
    parser.add_argument(
        "--cozystack-api", metavar="PROGRAM", type=parse_source, help="Cozystack's own server, on our cluster"
    )
    parser.add_argument(
        "--watch-cache",
        action="store_true",
        help="kube-apiserver has its watch cache beside cozystack-api, too: needs etcd 3.5.13 or later",
    )
    parser.add_argument("--definition", type=parse_source, help="the file with its ApplicationDefinition of Tenants")
    parser.add_argument(
        "--applications",
        metavar="FILE",
        type=parse_source,
        help="compare objects of this ApplicationDefinition instead of Tenants",
    )
    add_json_option(parser)
    parsed = parser.parse_args(arguments)
    if parsed.against and not (parsed.kubeconfig and parsed.resource):
        parser.error("--against needs --kubeconfig and --resource")
    if parsed.cozystack_api and (parsed.cluster != "kube" or not parsed.definition):
        parser.error("--cozystack-api needs --definition and a kube-apiserver")
    if parsed.applications and CUSTOM in (parsed.sides or [CUSTOM]):
        parser.error(f"--applications needs --sides without {CUSTOM}, which are those of Tenants")
    if unknown := set(parsed.only) - set(_WORKLOADS):
        parser.error(f"--only must be of {','.join(_WORKLOADS)}, not {', '.join(sorted(unknown))}")
    sides = [DIRECT, AGGREGATED, CUSTOM] if parsed.cluster == "kube" else [DIRECT]
    if unknown := set(parsed.sides or ()) - set(sides):
        parser.error(f"--sides must be of {','.join(sides)}, not {', '.join(sorted(unknown))}")
    if parsed.sides is None:
        parsed.sides = sides
    return parsed


def _external_server(arguments: argparse.Namespace) -> ExternalServer | None:
    if not arguments.against:
        return None
    return ExternalServer(
        url=arguments.against.rstrip("/"),
        kubeconfig=arguments.kubeconfig,
        resource=arguments.resource,
        namespace=arguments.namespace,
        pids=tuple(arguments.pids),
    )


def _cozystack_api(arguments: argparse.Namespace) -> CozystackApi | None:
    if not arguments.cozystack_api:
        return None
    return CozystackApi(program=arguments.cozystack_api, definition=arguments.definition)


def _cluster(
    arguments: argparse.Namespace, directory: Path
) -> AbstractAsyncContextManager[KubeTarget | StandaloneTarget]:
    controllers = _ROOT_ONLY if arguments.unreconciled else _CONTROLLERS
    if arguments.cluster == "embedded":
        return StandaloneTarget.running(directory, controllers=controllers)
    # beside etcd before 3.5.13, cozystack-api's watches fail at a kube-apiserver's cache
    watch_cache = arguments.watch_cache or not arguments.cozystack_api
    return KubeTarget.running(directory, controllers=controllers, watch_cache=watch_cache)


def _applications(arguments: argparse.Namespace) -> Object | None:
    return yaml.safe_load(arguments.applications.read_text()) if arguments.applications else None


async def main(arguments: argparse.Namespace) -> None:
    # garbage is collected between turns
    gc.disable()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    report, start = ComparisonReport(), time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        running = ServerComparison.running(
            Path(scratch),
            cluster=_cluster(arguments, Path(scratch)),
            chosen=arguments.sides,
            external=_external_server(arguments),
            peer=_cozystack_api(arguments),
            reconciled=not arguments.unreconciled,
            applications=_applications(arguments),
        )
        async with running as comparison:
            print(comparison.title, machine(), f"{arguments.turns} turns", flush=True)
            print(measurements.HEAD, flush=True)
            await compare(comparison, arguments, report)
            document = {"target": comparison.title, "machine": machine(), "rows": report.rows}
    print(f"\ntook {time.monotonic() - start:.0f} s", flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(document, indent=2) + "\n")


if __name__ == "__main__":
    run(main(parse()))
