"""python -m benchmarks [--cluster embedded|kube] [--tenants 100,1000,10000] [--json FILE]: see docs/performance.md."""

from __future__ import annotations

import argparse
import json
import os
import platform
from collections.abc import Sequence

from benchmarks import figures, livez_probe
from benchmarks.command_line import add_cluster_option, add_json_option, at_least, parse_sizes, run
from benchmarks.convergence import converge
from benchmarks.figures import Row
from benchmarks.targets.by_name import TARGETS, running
from benchmarks.targets.target import Target
from benchmarks.workloads import TenantBenchmark


class RowReport:
    """Collects rows and prints each at once."""

    def __init__(self) -> None:
        self.rows: list[Row] = []

    def add(self, *rows: Row) -> None:
        for row in rows:
            print(figures.format_row(row), flush=True)
            self.rows.append(row)


async def measure(target: Target, sizes: Sequence[int], *, watchers: int, runs: int, report: RowReport) -> None:
    await target.grant()
    async with livez_probe.running(target.anonymous.url) as probe:
        bench = TenantBenchmark(target=target, probe=probe, runs=runs)
        report.add(bench.memory(0))
        seeded = 0
        for size in sizes:
            report.add(await bench.seed(seeded, size))
            seeded = size
            report.add(*await bench.lists(size), *await bench.gets(size), bench.memory(size))
        report.add(*await bench.fan_out(watchers))
        report.add(await bench.starts(seeded), *await bench.lists(seeded), bench.memory(seeded))
        report.add(*await bench.writes(seeded), bench.memory(seeded))


async def measure_convergence(target: Target, count: int, *, report: RowReport) -> None:
    await target.grant()
    async with livez_probe.running(target.anonymous.url) as probe:
        report.add(*await converge(TenantBenchmark(target=target, probe=probe, runs=1), count))


def machine() -> dict[str, object]:
    return {"cores": os.cpu_count(), "python": platform.python_version(), "machine": platform.machine()}


async def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    add_cluster_option(parser, choices=TARGETS, default="embedded")
    parser.add_argument(
        "--tenants",
        type=parse_sizes,
        default=[100, 1000, 10_000],
        metavar="N,…",
        help="the numbers of Tenants with which reads are measured, the smallest first; the rest is with the last",
    )
    parser.add_argument(
        "--watchers", type=at_least(1), default=1000, metavar="N", help="clients that watch all Tenants at a time"
    )
    parser.add_argument(
        "--converge",
        type=at_least(0),
        default=0,
        metavar="N",
        help="measure only this: how long so many tenants created at once take to converge",
    )
    parser.add_argument(
        "--runs", type=at_least(1), default=5, metavar="N", help="multiplies the number of calls of each workload"
    )
    add_json_option(parser)
    arguments = parser.parse_args()
    report = RowReport()
    async with running(arguments.cluster) as target:
        print(target.title, machine(), flush=True)
        if arguments.converge:
            await measure_convergence(target, arguments.converge, report=report)
        else:
            await measure(target, arguments.tenants, watchers=arguments.watchers, runs=arguments.runs, report=report)
        document = {"target": target.title, "machine": machine(), "rows": report.rows}
    if arguments.json:
        arguments.json.write_text(json.dumps(document, indent=2) + "\n")


if __name__ == "__main__":
    run(main())
