"""python -m benchmarks [--tenants 100,1000,10000] [--json FILE]: measure a stand-alone server of its own."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import statistics
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import workloads
from benchmarks.server import Server, standalone
from benchmarks.workloads import COLLECTION, PARTIAL, TABLE, Client

Row = dict[str, Any]


def row(workload: str, spent: list[float], **more: object) -> Row:
    """Milliseconds: median, p99 and the spread of a workload's requests."""
    ordered = sorted(value * 1000 for value in spent)
    p99 = ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]
    return {
        "workload": workload,
        "n": len(ordered),
        "median_ms": round(statistics.median(ordered), 2),
        "p99_ms": round(p99, 2),
        "min_ms": round(ordered[0], 2),
        "max_ms": round(ordered[-1], 2),
        **more,
    }


async def fill(client: Client, have: int, want: int) -> Row:
    wall, spent = await workloads.concurrently(
        lambda number: client.create(workloads.name(have + number)), want - have, 16
    )
    return row(f"CREATE, 16 writers, {have} to {want}", spent, per_second=round((want - have) / wall))


async def lists(client: Client, size: int) -> list[Row]:
    rows = []
    for title, accept, gzip in (
        ("JSON", "application/json", False),
        ("JSON, gzip", "application/json", True),
        ("Table", TABLE, False),
        ("PartialObjectMetadata", PARTIAL, False),
    ):
        length = await client.get(COLLECTION, accept=accept, gzip=gzip)
        spent = await workloads.repeat(partial(client.get, COLLECTION, accept=accept, gzip=gzip), 15)
        rows.append(row(f"LIST {size}, {title}", spent, bytes=length))
    return rows


async def gets(client: Client, size: int, workers: int) -> Row:
    path = f"{COLLECTION}/{workloads.name(size // 2)}"
    total = 3000 if workers > 1 else 1000
    wall, spent = await workloads.concurrently(lambda _: client.get(path), total, workers)
    return row(f"GET, {workers} clients, {size} tenants", spent, per_second=round(total / wall))


async def measure(server: Server, sizes: list[int], watchers: int) -> list[Row]:
    client = Client(server, server.tls(), connections=watchers + 32)
    rows: list[Row] = []
    have = 0
    for size in sizes:
        rows.append(await fill(client, have, size))
        have = size
        rows.extend(await lists(client, size))
        rows.extend([await gets(client, size, workers) for workers in (1, 16, 128)])
        rows.append({"workload": f"memory, {size} tenants", "rss_mib": round(server.rss_mib(), 1)})
    spent = await workloads.fan_out(client, watchers, 10)
    rows.append(row(f"one change to {watchers} watchers", spent, rss_mib=round(server.rss_mib(), 1)))
    await client.session.close()
    return rows


def show(rows: list[Row]) -> None:
    for each in rows:
        rest = "  ".join(f"{key}={value}" for key, value in each.items() if key != "workload")
        print(f"{each['workload']:<44} {rest}", flush=True)


async def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    parser.add_argument("--tenants", default="100,1000,10000")
    parser.add_argument("--watchers", type=int, default=1000)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    sizes = [int(size) for size in arguments.tenants.split(",")]
    machine = {"cores": os.cpu_count(), "python": platform.python_version(), "machine": platform.machine()}
    print(machine)
    async with standalone() as server:
        rows = await measure(server, sizes, arguments.watchers)
    show(rows)
    if arguments.json:
        arguments.json.write_text(json.dumps({"machine": machine, "rows": rows}, indent=2) + "\n")


if __name__ == "__main__":
    asyncio.run(main())
