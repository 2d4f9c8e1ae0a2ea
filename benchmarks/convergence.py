"""The time until many Tenants created at once are reconciled, and until all follow a change of the parent's domain."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Mapping
from functools import partial

import orjson

from benchmarks import figures, load, objects
from benchmarks.client import Connection
from benchmarks.figures import Row
from benchmarks.objects import COLLECTION, RELEASES
from benchmarks.progress import Progress
from benchmarks.targets.cluster_traffic import wait_until_quiet
from benchmarks.workloads import TenantBenchmark

_CLIENTS = 16
_POLL_SECONDS = 0.2
_TIMEOUT_SECONDS = 600.0
_HOST_LABEL = "namespace.cozystack.io/host"
_MOVED = "moved.example"


async def converge(bench: TenantBenchmark, count: int) -> list[Row]:
    """Creates `count` Tenants at once and waits until each has a Namespace with its domain; then changes the root's
    domain."""
    target = bench.target
    names = [objects.name("c", number) for number in range(count)]
    async with bench.measure(count) as measured:
        start = time.monotonic()
        create = partial(_create, names=names)
        await load.parallel(target.user, create, range(count), clients=_CLIENTS, progress="Tenants")
        created = round(time.monotonic() - start, 1)
        labelled = await _labelled(bench, start, names, "")
        await wait_until_quiet(target.admin)
    rows = [figures.row(f"{count} tenants at once", created_s=created, labelled_s=labelled, **measured.figures)]
    async with bench.measure(count) as measured:
        start = time.monotonic()
        change = {"spec": {"values": {"host": _MOVED}}}
        kind = "application/merge-patch+json"
        await target.admin.call("PATCH", f"{RELEASES}/tenant-root", change, content_type=kind)
        labelled = await _labelled(bench, start, names, _MOVED)
        await wait_until_quiet(target.admin)
    return [*rows, figures.row(f"another domain for {count} tenants", labelled_s=labelled, **measured.figures)]


async def _create(connection: Connection, number: int, *, names: list[str]) -> None:
    await connection.call("POST", COLLECTION, objects.tenant(names[number]))


async def _labelled(bench: TenantBenchmark, start: float, names: Collection[str], domain: str) -> float:
    """Returns the seconds from `start` until the Namespace of each Tenant has a domain below `domain`."""
    progress = Progress("Namespaces with the domain", len(names))
    while True:
        domains = await _domains(bench)
        found = {name: domains.get(f"tenant-{name}", "") for name in names}
        missing = [
            name for name, found_domain in found.items() if not found_domain or not found_domain.endswith(domain)
        ]
        progress.reach(len(names) - len(missing))
        spent = time.monotonic() - start
        if not missing:
            return round(spent, 1)
        if spent > _TIMEOUT_SECONDS:
            raise RuntimeError(f"{len(missing)} of {len(names)} tenants did not converge in {_TIMEOUT_SECONDS:.0f} s")
        await asyncio.sleep(_POLL_SECONDS)


async def _domains(bench: TenantBenchmark) -> Mapping[str, str]:
    """Returns the domains of the Namespaces that have one."""
    connection = await bench.target.admin.connect()
    try:
        document = orjson.loads(await connection.call("GET", "/api/v1/namespaces"))
    finally:
        connection.close()
    labels = {each["metadata"]["name"]: each["metadata"].get("labels") or {} for each in document["items"]}
    return {
        name: namespace_labels[_HOST_LABEL]
        for name, namespace_labels in labels.items()
        if namespace_labels.get(_HOST_LABEL)
    }
