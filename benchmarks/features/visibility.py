"""python -m benchmarks.features.visibility: the cost of showing users only the Tenants that they may get.

One user sees ten of many Tenants, with forty RoleBindings in each namespace; then a grant makes ten more visible to a
thousand watchers of all namespaces.
"""

from __future__ import annotations

import argparse
import time
from functools import partial

import orjson

from benchmarks import figures, load, objects
from benchmarks.client import Connection
from benchmarks.command_line import add_cluster_option, at_least, run
from benchmarks.figures import Row
from benchmarks.targets.by_name import TARGETS, running
from benchmarks.targets.cluster_traffic import wait_until_quiet
from benchmarks.targets.target import HELM, NAMESPACE, RBAC, TENANTS, USER, Target
from benchmarks.watcher_group import WatcherGroup

_VISIBLE = 10
_SEEDERS = 16
_LISTS = 200
_GRANTS = 10
_EVERYWHERE = f"/apis/{TENANTS}/v1alpha1/tenants"
_VIEW = "bench-view"


def _workload(parent: int) -> str:
    return f"tenant-{objects.name('b', parent)}"


class Visibility:
    """Each of `namespaces` has ten Tenants."""

    def __init__(self, target: Target, *, namespaces: int, bindings: int) -> None:
        self._target = target
        self._namespaces = namespaces
        self._bindings = bindings // namespaces

    async def seed(self) -> Row:
        target, start = self._target, time.perf_counter()
        rules = [{"apiGroups": [TENANTS], "resources": ["tenants"], "verbs": ["get", "list", "watch"]}]
        await target.admin.call("POST", f"{RBAC}/clusterroles", {"metadata": {"name": _VIEW}, "rules": rules})
        await load.parallel(target.admin, _parent, range(self._namespaces), clients=_SEEDERS, progress="parents")
        await wait_until_quiet(target.admin)
        await load.parallel(
            target.admin, _child, range(self._namespaces * _VISIBLE), clients=_SEEDERS, progress="children"
        )
        before = target.server.memory_mib()[0]
        calls = range(self._namespaces * self._bindings)
        await load.parallel(
            target.admin,
            partial(_others, namespaces=self._namespaces),
            calls,
            clients=_SEEDERS,
            progress="RoleBindings of others",
        )
        await wait_until_quiet(target.admin)
        after = target.server.memory_mib()[0]
        title = f"{self._namespaces * _VISIBLE} tenants, {len(calls)} RoleBindings"
        return figures.row(
            title, took_s=round(time.perf_counter() - start), rss_mib=round(after), more_mib=round(after - before)
        )

    async def lists(self) -> Row:
        """Times the list of a user who sees the Tenants of one namespace."""
        await self._grant(0)
        return figures.row(f"LIST of {_VISIBLE} visible tenants", await load.repeat(self._target.user, _list, _LISTS))

    async def grants(self, watchers: int) -> Row:
        """Times from creating the binding until the last watcher has received all ten ADDED events."""
        group = WatcherGroup(self._target.user, _EVERYWHERE, watchers)
        await group.open()
        try:
            seconds = [
                await group.time_until_received(partial(self._grant, number), counts=_is_added, frames=_VISIBLE)
                for number in range(1, _GRANTS + 1)
            ]
        finally:
            await group.close()
        return figures.row(f"grant to {watchers} watchers", seconds, rss_mib=round(self._target.server.memory_mib()[0]))

    async def _grant(self, number: int) -> None:
        await self._target.admin.call(
            "POST", f"{RBAC}/namespaces/{_workload(number)}/rolebindings", _binding("bench-seen", USER)
        )


def _binding(name: str, user: str) -> objects.Object:
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": _VIEW}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}
    return {"metadata": {"name": name}, "roleRef": reference, "subjects": [subject]}


async def _parent(connection: Connection, number: int) -> None:
    await connection.call("POST", objects.RELEASES, objects.release(objects.name("b", number)))


async def _child(connection: Connection, number: int) -> None:
    namespace, name = _workload(number // _VISIBLE), f"c{number % _VISIBLE}"
    release = objects.release(name)
    release["metadata"]["namespace"] = namespace
    await connection.call("POST", f"/apis/{HELM}/v2/namespaces/{namespace}/helmreleases", release)


async def _others(connection: Connection, number: int, *, namespaces: int) -> None:
    """Creates a binding for another user."""
    path = f"{RBAC}/namespaces/{_workload(number % namespaces)}/rolebindings"
    await connection.call("POST", path, _binding(f"other-{number}", f"user-{number % 997}"))


async def _list(connection: Connection, _: int) -> None:
    found = orjson.loads(await connection.call("GET", _EVERYWHERE))["items"]
    if len(found) != _VISIBLE:
        raise RuntimeError(f"{len(found)} tenants are visible instead of {_VISIBLE}")


def _is_added(frame: objects.Object) -> bool:
    return bool(frame["type"] == "ADDED")


async def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.features.visibility")
    add_cluster_option(parser, choices=TARGETS, default="embedded")
    parser.add_argument(
        "--namespaces",
        type=at_least(_GRANTS + 1),
        default=1000,
        metavar="N",
        help=f"namespaces, each with {_VISIBLE} Tenants: 100 are {100 * _VISIBLE:,} Tenants",
    )
    parser.add_argument(
        "--bindings",
        type=at_least(0),
        default=40_000,
        metavar="N",
        help="RoleBindings of other users, the same number in each namespace: a rest is left out",
    )
    parser.add_argument(
        "--watchers", type=at_least(1), default=1000, metavar="N", help="watches of the user in all namespaces"
    )
    arguments = parser.parse_args()
    async with running(arguments.cluster) as target:
        bench = Visibility(target, namespaces=arguments.namespaces, bindings=arguments.bindings)
        print(f"{target.title}, namespace of the parents {NAMESPACE}", flush=True)
        print(figures.format_row(await bench.seed()), flush=True)
        print(figures.format_row(await bench.lists()), flush=True)
        print(figures.format_row(await bench.grants(arguments.watchers)), flush=True)


if __name__ == "__main__":
    run(main())
