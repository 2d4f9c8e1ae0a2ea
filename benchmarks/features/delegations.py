"""python -m benchmarks.features.delegations [--cluster embedded|kube] [--vertices 10000 --roots 1000 ...] [--json FILE]

Measures how long a change of one delegated route takes to reach the route that the Gateway serves, beside many others.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

from benchmarks import figures, load
from benchmarks.client import Connection, Endpoint
from benchmarks.command_line import add_cluster_option, add_json_option, at_least, run
from benchmarks.features.gateways import apex, make_owner, owner_namespace
from benchmarks.figures import Row
from benchmarks.objects import Object
from benchmarks.targets.by_name import TARGETS, running
from benchmarks.targets.cluster_traffic import QUIET_SECONDS, read_traffic, wait_until_quiet
from benchmarks.targets.target import Target

_GROUP = "gateway.networking.k8s.io"
_ROUTES = f"/apis/{_GROUP}/v1"
_GRANTS = f"/apis/{_GROUP}/v1beta1"
_MERGE = "application/merge-patch+json"
_WRITTEN = ("namespaces", "tenantgateways", "gateways", "httproutes", "issuers", "certificates", "referencegrants")
_CLIENTS = 16
_TIMEOUT_SECONDS = 60.0
# A Gateway has 63 listeners for hostnames; roots of one namespace share them.
_HOSTNAMES = 40
_TIMES = 50
# Vertices in one namespace of a tenant.
_IN_NAMESPACE = 20
_RULES = 16


@dataclass(frozen=True, slots=True)
class Trees:
    """`vertices` are distributed evenly over `roots`, and these over `gateways`, each in the namespace of its owner."""

    vertices: int
    roots: int
    gateways: int

    def gateway_of(self, root: int) -> int:
        return root * self.gateways // self.roots

    def root_of(self, vertex: int) -> int:
        return vertex * self.roots // self.vertices

    def below(self, root: int) -> range:
        share = self.vertices // self.roots
        return range(root * share, (root + 1) * share)


def vertex_namespace(vertex: int) -> str:
    return f"bench-{vertex // _IN_NAMESPACE}"


def backend(kind: str, namespace: str, name: str) -> Object:
    return {"group": _GROUP, "kind": kind, "namespace": namespace, "name": name}


def prefix(vertex: int) -> Sequence[Object]:
    return [{"path": {"type": "PathPrefix", "value": f"/v{vertex}"}}]


async def make_namespace(connection: Connection, number: int, *, trees: Trees) -> None:
    """With the consent for all of its vertices."""
    namespace = f"bench-{number}"
    body: Object = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    await connection.call("POST", "/api/v1/namespaces", body)
    guest = owner_namespace(trees.gateway_of(trees.root_of(number * _IN_NAMESPACE)))
    spec = {
        "from": [{"group": _GROUP, "kind": "HTTPRoute", "namespace": guest}],
        "to": [{"group": _GROUP, "kind": "HTTPRoute"}, {"group": "", "kind": "Service", "name": "web"}],
    }
    body = {"apiVersion": f"{_GROUP}/v1beta1", "kind": "ReferenceGrant", "metadata": {"name": "bench"}, "spec": spec}
    await connection.call("POST", f"{_GRANTS}/namespaces/{namespace}/referencegrants", body)


async def make_root(connection: Connection, root: int, *, trees: Trees) -> None:
    gateway = trees.gateway_of(root)
    rules = [
        {"matches": prefix(each), "backendRefs": [backend("HTTPRoute", vertex_namespace(each), f"v{each}")]}
        for each in trees.below(root)
    ]
    parent = {"group": "gateway.cozystack.io", "kind": "TenantGateway", "name": "cozystack"}
    spec = {"hostnames": [f"h{root % _HOSTNAMES}.{apex(gateway)}"], "parentRefs": [parent], "rules": rules}
    await _make_route(connection, owner_namespace(gateway), f"root{root}", spec)


async def make_vertex(connection: Connection, vertex: int, *, trees: Trees) -> None:
    root = trees.root_of(vertex)
    parent = backend("HTTPRoute", owner_namespace(trees.gateway_of(root)), f"root{root}")
    rules = [{"matches": prefix(vertex), "backendRefs": [{"name": "web", "port": 80}]}]
    await _make_route(connection, vertex_namespace(vertex), f"v{vertex}", {"parentRefs": [parent], "rules": rules})


async def _make_route(connection: Connection, namespace: str, name: str, spec: Object) -> None:
    body = {"apiVersion": f"{_GROUP}/v1", "kind": "HTTPRoute", "metadata": {"name": name}, "spec": spec}
    await connection.call("POST", f"{_ROUTES}/namespaces/{namespace}/httproutes", body)


class PathArrivals:
    """Records when a path first appears in a flat route, by a watch of its own."""

    def __init__(self) -> None:
        self._seen: dict[str, float] = {}
        self._changed = asyncio.Event()

    @classmethod
    @asynccontextmanager
    async def watching(cls, endpoint: Endpoint) -> AsyncIterator[PathArrivals]:
        version = (await endpoint.call("GET", f"{_ROUTES}/httproutes?limit=1"))["metadata"]["resourceVersion"]
        arrivals, opened = cls(), asyncio.Event()
        connection = await endpoint.connect()
        try:
            # a watch that fails ends the benchmark
            async with asyncio.TaskGroup() as group:
                task = group.create_task(arrivals._watch(connection, version, opened))
                await opened.wait()
                yield arrivals
                task.cancel()
        finally:
            connection.close()

    async def wait_for(self, path: str) -> float:
        async with asyncio.timeout(_TIMEOUT_SECONDS):
            while path not in self._seen:
                self._changed.clear()
                await self._changed.wait()
        return self._seen[path]

    async def _watch(self, connection: Connection, version: str, opened: asyncio.Event) -> None:
        selector = "labelSelector=gateway.cozystack.io/vertex"
        path = f"{_ROUTES}/httproutes?watch=true&timeoutSeconds=3600&{selector}&resourceVersion={version}"
        async for event in connection.stream(path):
            opened.set()
            now = time.perf_counter()
            for rule in event["object"]["spec"]["rules"] if event else ():
                self._seen.setdefault(rule["matches"][0]["path"]["value"], now)
            self._changed.set()


class DelegationBenchmark:
    def __init__(self, target: Target, trees: Trees) -> None:
        self._target = target
        self._trees = trees

    async def run(self) -> Sequence[Row]:
        return [await self._fill(), await self._time()]

    async def _fill(self) -> Row:
        start, admin, trees = time.perf_counter(), self._target.admin, self._trees
        await load.parallel(admin, make_owner, range(trees.gateways), clients=_CLIENTS, progress="TenantGateways")
        namespaces = range(trees.vertices // _IN_NAMESPACE)
        await load.parallel(
            admin, partial(make_namespace, trees=trees), namespaces, clients=_CLIENTS, progress="Namespaces"
        )
        await load.parallel(
            admin, partial(make_root, trees=trees), range(trees.roots), clients=_CLIENTS, progress="roots"
        )
        await load.parallel(
            admin, partial(make_vertex, trees=trees), range(trees.vertices), clients=_CLIENTS, progress="vertices"
        )
        written = time.perf_counter() - start
        await wait_until_quiet(admin, _WRITTEN)
        return figures.row(
            f"{trees.vertices} vertices, {trees.roots} roots, {trees.gateways} gateways",
            written_s=round(written, 1),
            settled_s=round(time.perf_counter() - start - QUIET_SECONDS, 1),
            rss_mib=round(self._target.server.memory_mib()[0]),
        )

    async def _time(self) -> Row:
        """Times from sending a changed vertex until its flat route has the new path, one vertex after the other."""
        server, seconds, trees = self._target.server, list[float](), self._trees
        connection = await self._target.admin.connect()
        async with PathArrivals.watching(self._target.admin) as arrivals:
            await wait_until_quiet(self._target.admin, _WRITTEN)
            before, cpu = await self._writes(), server.cpu_seconds()
            for number in range(_TIMES):
                vertex = number * trees.vertices // _TIMES
                matches = [{"path": {"type": "PathPrefix", "value": f"/v{vertex}/new"}}]
                rules = [{"matches": matches, "backendRefs": [{"name": "web", "port": 80}]}]
                path = f"{_ROUTES}/namespaces/{vertex_namespace(vertex)}/httproutes/v{vertex}"
                start = time.perf_counter()
                await connection.call("PATCH", path, {"spec": {"rules": rules}}, content_type=_MERGE)
                seconds.append(await arrivals.wait_for(f"/v{vertex}/new") - start)
            # includes the writes that the last change causes
            await wait_until_quiet(self._target.admin, _WRITTEN)
            cpu, writes = server.cpu_seconds() - cpu, await self._writes() - before
        connection.close()
        return figures.row(
            f"a changed vertex among {trees.vertices}",
            seconds,
            server_cpu_ms=round(cpu * 1000 / _TIMES, 1),
            writes=round(writes / _TIMES, 1),
        )

    async def _writes(self) -> float:
        return (await read_traffic(self._target.admin, _WRITTEN)).writes()


async def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.features.delegations")
    add_cluster_option(parser, choices=TARGETS, default="embedded")
    parser.add_argument(
        "--vertices", type=at_least(_TIMES), default=10000, metavar="N", help="routes that are delegated to"
    )
    parser.add_argument("--roots", type=at_least(1), default=1000, metavar="N", help="routes that delegate")
    parser.add_argument("--gateways", type=at_least(1), default=50, metavar="N", help="TenantGateways of the roots")
    add_json_option(parser)
    arguments = parser.parse_args()
    if arguments.roots % arguments.gateways or arguments.vertices % arguments.roots:
        parser.error("--vertices must be a multiple of --roots, and --roots one of --gateways")
    if arguments.vertices > _RULES * arguments.roots:
        parser.error(f"--vertices must be at most {_RULES} for each of --roots: a route has no more rules")
    if arguments.vertices % (_IN_NAMESPACE * arguments.gateways):
        parser.error(f"--vertices must be a multiple of {_IN_NAMESPACE} for each of --gateways")
    trees = Trees(arguments.vertices, arguments.roots, arguments.gateways)
    async with running(arguments.cluster) as target:
        print(target.title, flush=True)
        rows = await DelegationBenchmark(target, trees).run()
        figures.report(target.title, rows, arguments.json)


if __name__ == "__main__":
    run(main())
