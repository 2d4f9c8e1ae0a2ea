"""The groups of tests that pytest-xdist gives to its processes, and the order in which it does so."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import PurePosixPath
from typing import Final

import pytest
from _pytest.nodeid import NodeId
from xdist.remote import Producer
from xdist.scheduler import LoadGroupScheduling
from xdist.workermanage import WorkerController

SUITES_WITH_SERVERS: Final = ("attacks", "e2e", "faults")
"""Folders of tests/ whose tests use servers in processes of their own."""

_FAULTS, _EMBEDDED = "faults", "embedded"
# with fewer processes, a single one would be left with all tests that wait
_LEAST_PROCESSES: Final = 3


class MixedGroupScheduling(LoadGroupScheduling):  # type: ignore[misc]
    """Runs tests that compute beside tests that wait.

    Tests with servers wait for most of their time, longest for a kube-apiserver and its controllers: three processes of
    them leave half of two cores idle. So the first process begins with the tests without servers.
    """

    def __init__(self, config: pytest.Config, log: Producer | None = None) -> None:
        super().__init__(config, log)
        self._processes = self.numnodes

    def _assign_work_unit(self, node: WorkerController) -> None:
        computes = self._processes >= _LEAST_PROCESSES and node is self.nodes[0]
        self.workqueue.move_to_end(next_group(self.workqueue, computes=computes), last=False)
        super()._assign_work_unit(node)


def position(suite: str, cluster: str, *, every_tenant: bool = False) -> int:
    """Of a test in the order of a run: by its folder, and the kind of the session's `cluster` that it uses, empty if it
    uses none.

    No cluster of a session is left running beside tests that do not use it: each change stops the former one. Tenants
    of a test stay in a kube-apiserver, hundreds in a run. A test that changes `every_tenant`, and brings its group
    along, begins before they are there.
    """
    if not cluster:
        return 0 if suite in SUITES_WITH_SERVERS else 6
    if suite == _FAULTS:
        return 1 if cluster != _EMBEDDED else 2
    if cluster == _EMBEDDED:
        return 5
    return 3 if every_tenant else 4


def next_group(waiting: Collection[str], *, computes: bool) -> str:
    """The group that a process gets: the first, or if it `computes`, the first without servers, and at last the last.

    `waiting` has the names of tests.conftest, which begin with the path below tests/, in the order of the tests. Its
    last groups with servers are those of the embedded cluster, which starts faster than a kube-apiserver.
    """
    if not computes:
        return next(iter(waiting))
    return next((group for group in waiting if not _has_servers(group)), _last(waiting))


def name_group(item: pytest.Item) -> None:
    """Adds the group to the id of the test, which is where pytest-xdist looks for it.

    pytest-xdist 3.8 does so with an attribute that pytest 9.2 no longer reads: any process would get any test, and each
    would start every cluster and every fixture of a module.
    """
    [group] = {str(mark.args[0]) for mark in item.iter_markers("xdist_group")}
    if not item.nodeid.endswith(f"@{group}"):
        item._id = NodeId.parse(f"{item.nodeid}@{group}")
    assert item.nodeid.endswith(f"@{group}")


def _has_servers(group: str) -> bool:
    return PurePosixPath(group).parts[0] in SUITES_WITH_SERVERS


def _last(groups: Iterable[str]) -> str:
    *_, last = groups
    return last
