"""`kubectl get namespaces` for a user of ten among many tenants, and many watchers of namespaces."""

from __future__ import annotations

import asyncio
import re
import statistics
from collections.abc import Sequence
from functools import partial

import orjson

from benchmarks import figures, load
from benchmarks.client import Connection
from benchmarks.figures import Row
from benchmarks.proxy.running_proxy import RunningProxy
from benchmarks.targets.kube import KubeTarget
from benchmarks.targets.processes import wait_until
from benchmarks.targets.target import RBAC

OF_EACH = 10
_ROLE = "bench-sees-tenants"
_NAMESPACES = "/api/v1/namespaces"
_FORMS = {"JSON": "", "Table": "Accept: application/json;as=Table;v=v1;g=meta.k8s.io\r\n"}
_WATCHES = re.compile(
    r'^apiserver_longrunning_requests\{[^}]*resource="namespaces"[^}]*verb="WATCH"[^}]*\} (\d+)', re.M
)
_CLIENTS = 16
_SEEDED_SECONDS = 300.0


async def seed(target: KubeTarget, count: int) -> None:
    """Creates so many namespaces of tenants, ten of them for each user."""
    rules = [{"apiGroups": ["apps.cozystack.io"], "resources": ["tenants"], "verbs": ["get"]}]
    await target.admin.call("POST", f"{RBAC}/clusterroles", {"metadata": {"name": _ROLE}, "rules": rules})
    await load.parallel(target.admin, _create, range(count), clients=_CLIENTS, progress="Namespaces")


async def _create(connection: Connection, number: int) -> None:
    name = f"tenant-b{number:05d}"
    labels = {f"tenant.cozystack.io/{name}": "", "tenant.cozystack.io/tenant-root": ""}
    await connection.call("POST", _NAMESPACES, {"metadata": {"name": name, "labels": labels}})
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": _ROLE}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": _user(number // OF_EACH)}
    binding = {"metadata": {"name": "bench"}, "roleRef": reference, "subjects": [subject]}
    await connection.call("POST", f"{RBAC}/namespaces/{name}/rolebindings", binding)


def _user(number: int) -> str:
    return f"bench-{number}"


async def lists(proxy: RunningProxy, count: int, *, runs: int, times: int) -> Sequence[Row]:
    """LIST of a user's ten namespaces among `count`, as kubectl requests it, and as JSON."""
    endpoint = proxy.endpoint_of(_user(count // OF_EACH - 1))

    async def sees_all() -> bool:
        return len((await endpoint.call("GET", _NAMESPACES))["items"]) == OF_EACH

    await wait_until("the namespaces are listed", sees_all, seconds=_SEEDED_SECONDS, child=proxy.process)
    rows = []
    for form, headers in _FORMS.items():
        call = partial(_list, headers=headers)
        seconds: list[float] = []
        milliseconds: list[float] = []
        for _ in range(runs):
            before = proxy.process.cpu_seconds()
            seconds += await load.repeat(endpoint, call, times)
            milliseconds.append((proxy.process.cpu_seconds() - before) / times * 1000)
        cpu = {"proxy_cpu_ms": round(statistics.median(milliseconds), 3)}
        spread = {"lowest": round(min(milliseconds), 3), "highest": round(max(milliseconds), 3)}
        rows.append(figures.row(f"LIST of 10 of {count} namespaces, {form}", seconds, **cpu, **spread))
    return rows


async def _list(connection: Connection, number: int, *, headers: str) -> None:
    await connection.call("GET", f"{_NAMESPACES}?limit=500", headers=headers)


async def watchers(target: KubeTarget, proxy: RunningProxy, count: int) -> Row:
    """So many watchers of one user, each on a connection of its own: what they cost the proxy and the cluster."""
    endpoint = proxy.endpoint_of(_user(0))
    version = (await endpoint.call("GET", _NAMESPACES))["metadata"]["resourceVersion"]
    before, memory = proxy.process.cpu_seconds(), proxy.process.memory_mib()[0]
    on_cluster = await _watches(target)
    path = f"{_NAMESPACES}?watch=true&resourceVersion={version}"
    async with load.connected(endpoint, count) as connections:
        await load.distribute(connections, partial(_watch, path=path), range(count))
        spent = (proxy.process.cpu_seconds() - before) / count * 1000
        on_cluster_then = await _watches(target)
        grown = proxy.process.memory_mib()[0] - memory
        seconds = await _time_to_all(target, connections)
    return figures.row(
        f"{count} watchers of namespaces",
        cpu_ms_each=round(spent, 2),
        memory_mib=round(grown, 1),
        watches_on_cluster=on_cluster_then,
        watches_before=on_cluster,
        change_reaches_all_s=round(seconds, 2),
    )


async def _watch(connection: Connection, number: int, *, path: str) -> None:
    await connection.watch(path)


async def _time_to_all(target: KubeTarget, connections: Sequence[Connection]) -> float:
    """The seconds until every watcher has the change of a namespace."""
    loop = asyncio.get_running_loop()
    start = loop.time()
    body = {"metadata": {"labels": {"bench": "changed"}}}
    path = f"{_NAMESPACES}/tenant-b00000"
    await target.admin.call("PATCH", path, body, content_type="application/merge-patch+json")
    await asyncio.gather(*map(_until_changed, connections))
    return loop.time() - start


async def _until_changed(connection: Connection) -> None:
    async for lines in connection.frames():
        if any((orjson.loads(line)["object"]["metadata"].get("labels") or {}).get("bench") for line in lines):
            return


async def _watches(target: KubeTarget) -> int:
    """The watches of namespaces that the kube-apiserver serves."""
    return sum(map(int, _WATCHES.findall(await target.admin.text("/metrics"))))
