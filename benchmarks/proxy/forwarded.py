"""GET and LIST through the proxy and directly, in turns, one after the other on one connection each."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence

from benchmarks import figures
from benchmarks.client import Connection, Endpoint
from benchmarks.figures import Row
from benchmarks.proxy.running_proxy import RunningProxy
from benchmarks.targets.kube import KubeTarget
from benchmarks.targets.processes import ObservedProcess
from benchmarks.targets.target import RBAC

USER = "bench-forwarded"
_CONFIGMAPS = 50
_NAMESPACE = "default"
_RULE = {"apiGroups": [""], "resources": ["namespaces", "configmaps"], "verbs": ["get", "list"]}
_TARGETS = {
    "GET": f"/api/v1/namespaces/{_NAMESPACE}",
    f"LIST of {_CONFIGMAPS} ConfigMaps": f"/api/v1/namespaces/{_NAMESPACE}/configmaps?labelSelector=bench",
}


async def forwarded(target: KubeTarget, proxy: RunningProxy, *, runs: int, times: int) -> Sequence[Row]:
    """For each request the milliseconds of processor time of the proxy, the median of the `runs` and their range, and
    the seconds that clients wait. The cluster allows the user what is measured."""
    await _prepare(target)
    rows = []
    for name, path in _TARGETS.items():
        through = _Side(proxy.endpoint_of(USER), proxy.process)
        direct = _Side(target.endpoint_of(USER), target.cluster_processes["kube-apiserver"])
        sides = (through, direct)
        for each in sides:
            await each.turn(path, times)
            each.forget()
        for _ in range(runs):
            for each in sides:
                await each.turn(path, times)
        rows += [
            figures.row(f"{name}, forwarded", through.seconds, **through.processor("proxy")),
            figures.row(f"{name}, direct", direct.seconds, **direct.processor("kube-apiserver")),
        ]
    return rows


async def _prepare(target: KubeTarget) -> None:
    role = {"metadata": {"name": USER}, "rules": [_RULE]}
    await target.admin.call("POST", f"{RBAC}/clusterroles", role)
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": USER}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": USER}
    binding = {"metadata": {"name": USER}, "roleRef": reference, "subjects": [subject]}
    await target.admin.call("POST", f"{RBAC}/clusterrolebindings", binding)
    for number in range(_CONFIGMAPS):
        body = {"metadata": {"name": f"bench-{number}", "labels": {"bench": ""}}, "data": {"key": "value"}}
        await target.admin.call("POST", f"/api/v1/namespaces/{_NAMESPACE}/configmaps", body)


class _Side:
    """`process` is the one whose processor time counts."""

    def __init__(self, endpoint: Endpoint, process: ObservedProcess) -> None:
        self._endpoint = endpoint
        self._process = process
        self._connection: Connection | None = None
        self.seconds: list[float] = []
        self._milliseconds: list[float] = []

    async def turn(self, path: str, times: int) -> None:
        connection = self._connection = self._connection or await self._endpoint.connect()
        before = self._process.cpu_seconds()
        for _ in range(times):
            start = time.perf_counter()
            await connection.call("GET", path)
            self.seconds.append(time.perf_counter() - start)
        self._milliseconds.append((self._process.cpu_seconds() - before) / times * 1000)

    def forget(self) -> None:
        """The first turn is of a server that is cold."""
        self.seconds.clear()
        self._milliseconds.clear()

    def processor(self, name: str) -> dict[str, float]:
        found = self._milliseconds
        return {
            f"{name}_cpu_ms": round(statistics.median(found), 3),
            "lowest": round(min(found), 3),
            "highest": round(max(found), 3),
        }
