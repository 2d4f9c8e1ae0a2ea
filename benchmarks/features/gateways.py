"""python -m benchmarks.features.gateways [--cluster embedded|kube] [--routes 10000 --namespaces 500 ...] [--json FILE]

Measures how long a new HTTPRoute takes to reach its Gateway, and the label of a Namespace to end the claims of its
routes, and what both cost, beside few and beside many other routes.
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
from benchmarks.figures import Row
from benchmarks.objects import Object
from benchmarks.targets.by_name import TARGETS, running
from benchmarks.targets.cluster_traffic import QUIET_SECONDS, read_traffic, wait_until_quiet
from benchmarks.targets.target import Target

_ROUTES = "/apis/gateway.networking.k8s.io/v1"
_TENANTGATEWAYS = "/apis/gateway.cozystack.io/v1alpha1"
_WRITTEN = ("namespaces", "tenantgateways", "gateways", "httproutes", "issuers", "certificates")
_CLIENTS = 16
_TIMEOUT_SECONDS = 60.0
# A Gateway has 63 listeners for hostnames: this number leaves room for the routes that are timed.
_HOSTNAMES = 40
_FEW_TIMES = 10


@dataclass(frozen=True, slots=True)
class Layout:
    """`routes` are distributed evenly and in order over `namespaces`, and these over `gateways`."""

    routes: int
    namespaces: int
    gateways: int

    def gateway_of(self, namespace: int) -> int:
        return namespace * self.gateways // self.namespaces

    def namespace_of(self, route: int) -> int:
        return route * self.namespaces // self.routes

    def hostname_of(self, route: int) -> str:
        """Routes of a namespace share hostnames, as the paths of an application do."""
        namespace = self.namespace_of(route)
        hostnames = max(1, _HOSTNAMES * self.gateways // self.namespaces)
        return f"h{route % hostnames}.n{namespace}.{apex(self.gateway_of(namespace))}"


def owner_namespace(gateway: int) -> str:
    return f"tenant-bench-owner-{gateway}"


def namespace_name(namespace: int) -> str:
    return f"bench-{namespace}"


def apex(gateway: int) -> str:
    return f"g{gateway}.example.org"


def httproute(name: str, namespace: str, gateway: int, hostname: str) -> Object:
    return {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "HTTPRoute",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "parentRefs": [{"namespace": owner_namespace(gateway), "name": "cozystack", "port": 443}],
            "hostnames": [hostname],
            "rules": [{"backendRefs": [{"name": "backend", "port": 80}]}],
        },
    }


async def make_owner(connection: Connection, gateway: int) -> None:
    await _make_namespace(connection, owner_namespace(gateway), {"namespace.cozystack.io/host": apex(gateway)})
    body = {
        "apiVersion": "gateway.cozystack.io/v1alpha1",
        "kind": "TenantGateway",
        "metadata": {"name": "cozystack"},
        "spec": {"apex": apex(gateway)},
    }
    await connection.call("POST", f"{_TENANTGATEWAYS}/namespaces/{owner_namespace(gateway)}/tenantgateways", body)


async def make_namespace(connection: Connection, namespace: int, *, layout: Layout) -> None:
    labels = {"namespace.cozystack.io/gateway": owner_namespace(layout.gateway_of(namespace))}
    await _make_namespace(connection, namespace_name(namespace), labels)


async def make_route(connection: Connection, route: int, *, layout: Layout) -> None:
    number = layout.namespace_of(route)
    namespace, gateway = namespace_name(number), layout.gateway_of(number)
    body = httproute(f"r{route}", namespace, gateway, layout.hostname_of(route))
    await connection.call("POST", f"{_ROUTES}/namespaces/{namespace}/httproutes", body)


async def _make_namespace(connection: Connection, name: str, labels: dict[str, str]) -> None:
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
    await connection.call("POST", "/api/v1/namespaces", body)


async def _label(connection: Connection, namespace: int, owner: str | None) -> None:
    body = {"metadata": {"labels": {"namespace.cozystack.io/gateway": owner}}}
    path = f"/api/v1/namespaces/{namespace_name(namespace)}"
    await connection.call("PATCH", path, body, content_type="application/merge-patch+json")


class HostnameArrivals:
    """Records when each hostname first appears on a Gateway, by a watch of its own."""

    def __init__(self) -> None:
        self._seen: dict[str, float] = {}
        self._present: dict[str, set[str]] = {}
        self._changed = asyncio.Event()

    @classmethod
    @asynccontextmanager
    async def watching(cls, endpoint: Endpoint) -> AsyncIterator[HostnameArrivals]:
        version = (await endpoint.call("GET", f"{_ROUTES}/gateways?limit=1"))["metadata"]["resourceVersion"]
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

    async def wait_for(self, hostname: str) -> float:
        async with asyncio.timeout(_TIMEOUT_SECONDS):
            while hostname not in self._seen:
                self._changed.clear()
                await self._changed.wait()
        return self._seen[hostname]

    async def wait_until(self, namespace: str, hostname: str, *, present: bool) -> float:
        """Waits until the Gateway of a namespace has the hostname, or has lost it."""
        async with asyncio.timeout(_TIMEOUT_SECONDS):
            while namespace not in self._present or (hostname in self._present[namespace]) is not present:
                self._changed.clear()
                await self._changed.wait()
        return time.perf_counter()

    async def _watch(self, connection: Connection, version: str, opened: asyncio.Event) -> None:
        path = f"{_ROUTES}/gateways?watch=true&timeoutSeconds=3600&resourceVersion={version}"
        async for event in connection.stream(path):
            opened.set()
            now = time.perf_counter()
            listeners = event["object"]["spec"]["listeners"] if event else ()
            found = {listener.get("hostname", "") for listener in listeners}
            for hostname in found:
                self._seen.setdefault(hostname, now)
            if event:
                self._present[event["object"]["metadata"]["namespace"]] = found
            self._changed.set()


class GatewayBenchmark:
    def __init__(self, target: Target, layout: Layout) -> None:
        self._target = target
        self._layout = layout
        self._timed = 0

    async def run(self) -> Sequence[Row]:
        """Measures with the share of a single gateway first, then with all gateways."""
        whole = self._layout
        share = Layout(whole.routes // whole.gateways, whole.namespaces // whole.gateways, 1)
        return [
            await self._fill(Layout(0, 0, 0), share),
            await self._time(share, _FEW_TIMES),
            await self._time_labels(share),
            await self._fill(share, whole),
            await self._time(whole, whole.gateways),
            await self._time_labels(whole),
        ]

    async def _fill(self, existing: Layout, wanted: Layout) -> Row:
        """Names and hostnames are those of the whole layout, so that the second step extends the first."""
        start, admin = time.perf_counter(), self._target.admin
        await load.parallel(
            admin, make_owner, range(existing.gateways, wanted.gateways), clients=_CLIENTS, progress="TenantGateways"
        )
        namespaces = range(existing.namespaces, wanted.namespaces)
        await load.parallel(
            admin, partial(make_namespace, layout=self._layout), namespaces, clients=_CLIENTS, progress="Namespaces"
        )
        routes = range(existing.routes, wanted.routes)
        await load.parallel(
            admin, partial(make_route, layout=self._layout), routes, clients=_CLIENTS, progress="HTTPRoutes"
        )
        written = time.perf_counter() - start
        await wait_until_quiet(self._target.admin, _WRITTEN)
        return figures.row(
            f"{wanted.routes} routes, {wanted.namespaces} namespaces, {wanted.gateways} gateways",
            written_s=round(written, 1),
            settled_s=round(time.perf_counter() - start - QUIET_SECONDS, 1),
            rss_mib=round(self._target.server.memory_mib()[0]),
        )

    async def _time(self, present: Layout, times: int) -> Row:
        """Times from sending a route until its hostname is on the Gateway, one route after the other, each at another
        gateway."""
        server, seconds = self._target.server, list[float]()
        connection = await self._target.admin.connect()
        async with HostnameArrivals.watching(self._target.admin) as arrivals:
            await wait_until_quiet(self._target.admin, _WRITTEN)
            before, cpu = await self._writes(), server.cpu_seconds()
            for number in range(times):
                gateway, self._timed = number % present.gateways, self._timed + 1
                hostname, namespace = f"new{self._timed}.{apex(gateway)}", owner_namespace(gateway)
                body = httproute(f"new{self._timed}", namespace, gateway, hostname)
                start = time.perf_counter()
                await connection.call("POST", f"{_ROUTES}/namespaces/{namespace}/httproutes", body)
                seconds.append(await arrivals.wait_for(hostname) - start)
            # includes the writes that the last route causes
            await wait_until_quiet(self._target.admin, _WRITTEN)
            cpu, writes = server.cpu_seconds() - cpu, await self._writes() - before
        connection.close()
        return figures.row(
            f"a new route beside {present.routes}",
            seconds,
            server_cpu_ms=round(cpu * 1000 / times, 1),
            writes=round(writes / times, 1),
        )

    async def _time_labels(self, present: Layout) -> Row:
        """Times from removing the label of a namespace until the Gateway has lost its hostnames; then it gets the label
        back. Each of its routes is told, which is one write."""
        server, seconds = self._target.server, list[float]()
        connection = await self._target.admin.connect()
        async with HostnameArrivals.watching(self._target.admin) as arrivals:
            await wait_until_quiet(self._target.admin, _WRITTEN)
            before, cpu = await self._writes(), server.cpu_seconds()
            for number in range(_FEW_TIMES):
                namespace = number % present.namespaces
                owner = owner_namespace(present.gateway_of(namespace))
                start = time.perf_counter()
                await _label(connection, namespace, None)
                hostname = self._layout.hostname_of(namespace * self._layout.routes // self._layout.namespaces)
                seconds.append(await arrivals.wait_until(owner, hostname, present=False) - start)
                await _label(connection, namespace, owner)
                await arrivals.wait_until(owner, hostname, present=True)
            # includes what the routes are told last
            await wait_until_quiet(self._target.admin, _WRITTEN)
            cpu, writes = server.cpu_seconds() - cpu, await self._writes() - before
        connection.close()
        return figures.row(
            f"the label of a namespace with {present.routes // present.namespaces} routes beside {present.routes}",
            seconds,
            server_cpu_ms=round(cpu * 1000 / _FEW_TIMES, 1),
            writes=round(writes / _FEW_TIMES, 1),
        )

    async def _writes(self) -> float:
        return (await read_traffic(self._target.admin, _WRITTEN)).writes()


async def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.features.gateways")
    add_cluster_option(parser, choices=TARGETS, default="embedded")
    parser.add_argument("--routes", type=at_least(1), default=10000, metavar="N", help="HTTPRoutes of all namespaces")
    parser.add_argument("--namespaces", type=at_least(1), default=500, metavar="N", help="namespaces of the routes")
    parser.add_argument("--gateways", type=at_least(1), default=50, metavar="N", help="TenantGateways")
    add_json_option(parser)
    arguments = parser.parse_args()
    if arguments.namespaces % arguments.gateways or arguments.routes % arguments.namespaces:
        parser.error("--routes must be a multiple of --namespaces, and --namespaces one of --gateways")
    layout = Layout(arguments.routes, arguments.namespaces, arguments.gateways)
    async with running(arguments.cluster) as target:
        print(target.title, flush=True)
        rows = await GatewayBenchmark(target, layout).run()
        figures.report(target.title, rows, arguments.json)


if __name__ == "__main__":
    run(main())
