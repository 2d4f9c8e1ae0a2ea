"""python -m benchmarks.features.role_bindings: what the RoleBindings of many tenants in their parent's namespace cost a
kube-apiserver for each request there, which reads all of them.

The same requests are timed without the bindings and with them: those of a user whom one of the bindings allows to read
one Tenant's HelmRelease, and of a user whom none does.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from pathlib import Path

from apiserver.meta.resource import Object
from benchmarks import figures, load
from benchmarks.client import Connection, Endpoint, UnexpectedStatus
from benchmarks.command_line import at_least, run
from benchmarks.figures import Row
from benchmarks.targets.kube import KubeTarget
from benchmarks.targets.target import RBAC

_NAMESPACE = "bench-parent"
_ROLES = f"{RBAC}/namespaces/{_NAMESPACE}/roles"
_BINDINGS = f"{RBAC}/namespaces/{_NAMESPACE}/rolebindings"
_READ = f"/api/v1/namespaces/{_NAMESPACE}/configmaps/read"
_SEEDERS = 16
_REQUESTS = 500
_LEVELS = ("view", "use", "admin", "super-admin")


def _subjects(number: int) -> list[Object]:
    namespace = f"tenant-t{number}"
    groups = [
        {"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": f"{namespace}-{level}"} for level in _LEVELS
    ]
    return [*groups, {"kind": "ServiceAccount", "namespace": namespace, "name": namespace}]


def _binding(number: int, *more: Object) -> Object:
    name = f"cozy:tenant-self:t{number}"
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name}
    return {"metadata": {"name": name}, "roleRef": reference, "subjects": [*_subjects(number), *more]}


async def _bind(connection: Connection, number: int) -> None:
    await connection.call("POST", _BINDINGS, _binding(number))


async def _read(connection: Connection, _: int) -> None:
    try:
        await connection.call("GET", _READ)
    except UnexpectedStatus as error:
        if error.status != 403:
            raise


class RoleBindings:
    def __init__(self, target: KubeTarget, bound: int) -> None:
        self._target = target
        self._bound = bound

    async def seed(self) -> None:
        """The user's own binding, and a Role that it names."""
        admin = self._target.admin
        await admin.call("POST", "/api/v1/namespaces", {"metadata": {"name": _NAMESPACE}})
        await admin.call("POST", _READ.rpartition("/")[0], {"metadata": {"name": "read"}})
        rule = {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["read"], "verbs": ["get"]}
        await admin.call("POST", _ROLES, {"metadata": {"name": "cozy:tenant-self:t0"}, "rules": [rule]})
        user = {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "bench-allowed"}
        await admin.call("POST", _BINDINGS, _binding(0, user))

    async def bind(self) -> None:
        await load.parallel(self._target.admin, _bind, range(1, self._bound), clients=_SEEDERS, progress="RoleBindings")
        # the authorizer's informer has them a moment later
        await asyncio.sleep(5)

    async def measure(self, title: str, user: Endpoint) -> Row:
        kube_apiserver = self._target.cluster_processes["kube-apiserver"]
        await load.repeat(user, _read, _REQUESTS // 5)
        before = kube_apiserver.cpu_seconds()
        seconds = await load.repeat(user, _read, _REQUESTS)
        spent = (kube_apiserver.cpu_seconds() - before) / _REQUESTS * 1000
        return figures.row(title, seconds, cpu_ms=round(spent, 2))


async def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.features.role_bindings")
    parser.add_argument(
        "--bindings", type=at_least(1), default=10_000, metavar="N", help="RoleBindings in the namespace"
    )
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        async with KubeTarget.running(Path(scratch), controllers="none") as target:
            bench = RoleBindings(target, arguments.bindings)
            await bench.seed()
            users = {each: target.endpoint_of(each) for each in ("bench-allowed", "bench-denied")}
            print(target.title, flush=True)
            for count in (1, arguments.bindings):
                for name, user in users.items():
                    print(figures.format_row(await bench.measure(f"{name}, {count} RoleBindings", user)), flush=True)
                if count == 1:
                    await bench.bind()


if __name__ == "__main__":
    run(main())
