"""python -m benchmarks.features.isolation [--cluster embedded|kube] [--tenants 1000] [--json FILE]

Creates Tenants at once and measures how long it takes until all of them are isolated, and how many objects the
controllers write a second for that. Then a bare client writes as many objects, of the same contents and by the same
number of requests at a time as the creating clients, on the same cluster in the same run.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from functools import partial

from benchmarks import figures, load, objects
from benchmarks.client import Connection, Endpoint
from benchmarks.command_line import add_cluster_option, add_json_option, at_least, run
from benchmarks.figures import Row
from benchmarks.objects import COLLECTION, Object
from benchmarks.targets.by_name import TARGETS, running
from benchmarks.targets.cluster_traffic import QUIET_SECONDS, WRITTEN, Traffic, read_traffic, wait_until_quiet
from benchmarks.targets.target import RBAC, Target
from registry.names import NAMESPACE_PREFIX

_CORE, _NETWORKING = "/api/v1", "/apis/networking.k8s.io/v1"
_POLICIES = f"{_NETWORKING}/networkpolicies"
_CONTENTS = (
    (_NETWORKING, "networkpolicies"),
    (_CORE, "secrets"),
    (_CORE, "serviceaccounts"),
    (RBAC, "rolebindings"),
)
"""The collections in the Namespace of a Tenant that the controllers write into."""
_SETTINGS = """
isolation: {clusterCIDRs: [10.0.0.0/8], nodeCIDRs: [10.0.0.0/16]}
tenants: {release: none}
"""
"""As on plain Kubernetes: without them, the Tenants would wait for a Flux, and for networks that nobody tells."""
_CLIENTS = 16
_BARE = "bench-bare"
_POLL_SECONDS = 0.5
_TIMEOUT_SECONDS = 1800.0


async def isolate(target: Target, count: int) -> list[Row]:
    """The rows of the controllers and of the bare client."""
    of_each = await _policies_of_a_tenant(target)
    before = await read_traffic(target.admin, WRITTEN)
    names = [objects.name("i", number) for number in range(count)]
    namespaces = [f"{NAMESPACE_PREFIX}{name}" for name in names]
    spent, start = _ProcessorTime(target), time.monotonic()
    created = await load.parallel(
        target.user, partial(_create, names=names), range(count), clients=_CLIENTS, progress="Tenants"
    )
    isolated = await _isolated(target.admin, start, namespaces, of_each=of_each)
    await wait_until_quiet(target.admin, WRITTEN)
    # the time without writes at the end is no work
    quiet = time.monotonic() - start - QUIET_SECONDS
    cpu, traffic = spent.seconds(), await read_traffic(target.admin, WRITTEN)
    written = Traffic(traffic.since(before), 0)
    posted, patched = (written.requests.get(f"{verb} networkpolicies", 0.0) for verb in ("POST", "PATCH"))
    controllers = figures.row(
        f"{count} tenants isolated",
        created_s=round(created.wall, 1),
        isolated_s=isolated,
        policies_posted=posted,
        policies_patched=patched,
        writes=written.writes(),
        writes_per_second=round(written.writes() / quiet),
        cpu_s=cpu,
    )
    return [controllers, await _write_bare(target, namespaces)]


async def _policies_of_a_tenant(target: Target) -> int:
    """The number of policies of a Tenant like those that are measured. The root, which has services, has more."""
    await target.user.call("POST", COLLECTION, objects.tenant("first"))
    # controllers that have just started look for kinds first
    await _isolated(target.admin, time.monotonic(), [f"{NAMESPACE_PREFIX}first"], of_each=1)
    await wait_until_quiet(target.admin, WRITTEN)
    return (await _policies(target.admin))[f"{NAMESPACE_PREFIX}first"]


async def _create(connection: Connection, number: int, *, names: list[str]) -> None:
    await connection.call("POST", COLLECTION, objects.tenant(names[number]))


async def _policies(cluster: Endpoint) -> Counter[str]:
    """The number of policies of each Namespace."""
    document = await cluster.call("GET", f"{_POLICIES}?resourceVersion=0")
    return Counter(each["metadata"]["namespace"] for each in document["items"])


async def _count_policies(cluster: Endpoint) -> int:
    """The number of all policies. A list of them all, several times a second, would be most of the cluster's work."""
    document = await cluster.call("GET", f"{_POLICIES}?limit=1")
    return len(document["items"]) + int(document["metadata"].get("remainingItemCount", 0))


async def _isolated(cluster: Endpoint, start: float, namespaces: Sequence[str], *, of_each: int) -> float:
    """The seconds from `start` until each of these Namespaces has at least so many policies."""
    while True:
        spent = time.monotonic() - start
        if await _count_policies(cluster) >= of_each * len(namespaces):
            found = await _policies(cluster)
            if all(found[each] >= of_each for each in namespaces):
                return round(spent, 1)
        if spent > _TIMEOUT_SECONDS:
            raise RuntimeError(f"not all tenants have {of_each} policies after {_TIMEOUT_SECONDS:.0f} s")
        await asyncio.sleep(_POLL_SECONDS)


class _ProcessorTime:
    """The processor time of each process of a target since this was made."""

    def __init__(self, target: Target) -> None:
        self._processes = target.processes()
        self._before = self._now()

    def seconds(self) -> Mapping[str, float]:
        return {name: round(now - self._before[name], 1) for name, now in self._now().items()}

    def _now(self) -> Mapping[str, float]:
        return {name: each.cpu_seconds() for name, each in self._processes.items()}


async def _write_bare(target: Target, namespaces: Sequence[str]) -> Row:
    """The row of writes of the same objects into as many Namespaces without Tenants."""
    template = [each async for each in _contents(target.admin, namespaces[0])]
    fresh = [f"{_BARE}-{number}" for number in range(len(namespaces))]
    bodies = [each for namespace in fresh for each in _copies(template, namespace)]
    spent, start = _ProcessorTime(target), time.monotonic()

    async def write_namespace(connection: Connection, number: int) -> None:
        await connection.call("POST", f"{_CORE}/namespaces", {"metadata": {"name": fresh[number]}})

    async def write(connection: Connection, number: int) -> None:
        path, body = bodies[number]
        await connection.call("POST", path, body)

    await load.parallel(target.admin, write_namespace, range(len(fresh)), clients=_CLIENTS, progress="Namespaces")
    await load.parallel(target.admin, write, range(len(bodies)), clients=_CLIENTS, progress="objects")
    wall, writes = time.monotonic() - start, len(fresh) + len(bodies)
    return figures.row(
        "a bare client, the same objects",
        writes=writes,
        writes_per_second=round(writes / wall),
        cpu_s=spent.seconds(),
    )


async def _contents(cluster: Endpoint, namespace: str) -> AsyncIterator[tuple[str, str, Object]]:
    """The API group's path, the plural and the body of each object that the controllers have written there."""
    for path, plural in _CONTENTS:
        document = await cluster.call("GET", f"{path}/namespaces/{namespace}/{plural}")
        for each in document["items"]:
            metadata = {key: each["metadata"][key] for key in ("name", "labels") if key in each["metadata"]}
            if (plural, metadata["name"]) == ("serviceaccounts", "default"):
                # the cluster's own, which it creates in each Namespace
                continue
            yield path, plural, {**each, "metadata": metadata}


def _copies(template: Sequence[tuple[str, str, Object]], namespace: str) -> Iterator[tuple[str, Object]]:
    for path, plural, body in template:
        yield f"{path}/namespaces/{namespace}/{plural}", body


async def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.features.isolation")
    add_cluster_option(parser, choices=TARGETS, default="embedded")
    parser.add_argument("--tenants", type=at_least(1), default=1000, metavar="N", help="Tenants created at once")
    add_json_option(parser)
    arguments = parser.parse_args()
    async with running(arguments.cluster, settings=_SETTINGS) as target:
        print(target.title, flush=True)
        await target.grant()
        rows = await isolate(target, arguments.tenants)
    figures.report(target.title, rows, arguments.json)


if __name__ == "__main__":
    run(main())
