"""python -m benchmarks.proxy [--namespaces 10000] [--watchers 1000] [--mebibytes 1024] [--runs 5] [--only WORKLOADS]

Measures `tenant-apiserver proxy` before a kube-apiserver: forwarded requests against direct ones, the list of a user's
namespaces among many, watchers of namespaces, and an upgraded connection against socat. See docs/performance.md.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from benchmarks import figures
from benchmarks.command_line import add_json_option, at_least, run
from benchmarks.figures import Row
from benchmarks.proxy import namespaces
from benchmarks.proxy.forwarded import forwarded
from benchmarks.proxy.running_proxy import RunningProxy
from benchmarks.proxy.streams import streams
from benchmarks.targets.kube import KubeTarget

_WORKLOADS = ("forwarded", "namespaces", "streams")
_TIMES = 1000


async def measure(directory: Path, arguments: argparse.Namespace) -> list[Row]:
    """Each workload is chosen by name."""
    rows: list[Row] = []
    if "streams" in arguments.only:
        rows.append(await streams(directory, mebibytes=arguments.mebibytes, runs=arguments.runs))
    if not {"forwarded", "namespaces"} & {*arguments.only}:
        return rows
    async with (
        KubeTarget.running(directory, controllers="none") as target,
        RunningProxy.before(target, directory / "proxy") as proxy,
    ):
        if "forwarded" in arguments.only:
            rows += await forwarded(target, proxy, runs=arguments.runs, times=_TIMES)
        if "namespaces" in arguments.only:
            await namespaces.seed(target, arguments.namespaces)
            rows += await namespaces.lists(proxy, arguments.namespaces, runs=arguments.runs, times=_TIMES)
            rows.append(await namespaces.watchers(target, proxy, arguments.watchers))
    return rows


async def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.proxy")
    parser.add_argument(
        "--namespaces",
        type=at_least(namespaces.OF_EACH),
        default=10_000,
        metavar="N",
        help=f"namespaces of tenants, {namespaces.OF_EACH} for each user",
    )
    parser.add_argument(
        "--watchers", type=at_least(1), default=1000, metavar="N", help="watches of namespaces by one user"
    )
    parser.add_argument(
        "--mebibytes", type=at_least(1), default=1024, metavar="N", help="sent over the upgraded connection in each run"
    )
    parser.add_argument("--runs", type=at_least(1), default=5, metavar="N", help="turns, of which the median counts")
    parser.add_argument(
        "--only", nargs="+", choices=_WORKLOADS, default=_WORKLOADS, help="measure these alone; else all"
    )
    add_json_option(parser)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        rows = await measure(Path(scratch), arguments)
    figures.report("tenant-apiserver proxy", rows, arguments.json)


if __name__ == "__main__":
    run(main())
