"""The process is killed at its n-th request to the cluster while 200 Tenants converge, or 40 on a real kube-apiserver.

Its successors finish the work.
"""

from __future__ import annotations

import random
import secrets
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from registry.names import CASCADE_ANNOTATION, stored_key
from tests.e2e.support.applying import MERGE
from tests.e2e.support.clusters.cluster import ROOT
from tests.e2e.support.clusters.killed_servers import (
    GROUP,
    EmbeddedKillTestbed,
    KillTestbed,
    KubeKillTestbed,
    WorkloadSize,
)
from tests.e2e.support.clusters.processes import wait_until
from tests.server_fixtures import control_plane_with_crds

pytestmark = pytest.mark.faults

RELEASES = f"{GROUP}/helmreleases"
# for one server, on a busy machine
TIMEOUT = 180.0
FINALIZER = "apps.cozystack.io/tenant"
ROLES, ROLEBINDINGS = (f"/apis/rbac.authorization.k8s.io/v1/{plural}" for plural in ("roles", "rolebindings"))
SELF_ROLE = "cozy:tenant-self:"
CASCADE = {"metadata": {"annotations": {stored_key(CASCADE_ANNOTATION): "true"}}}


@pytest.fixture(params=["embedded", "kube"])
def testbed(
    request: pytest.FixtureRequest, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[KillTestbed]:
    if request.param == "embedded":
        created: KillTestbed = EmbeddedKillTestbed(tmp_path)
    else:
        created = KubeKillTestbed(tmp_path, control_plane_with_crds(tmp_path, tmp_path_factory))
    yield created
    created.stop()


class TenantCreator:
    """Creates each Tenant as soon as the Namespace of its parent exists."""

    def __init__(self, testbed: KillTestbed) -> None:
        self._testbed = testbed
        parents = [f"p{number}" for number in range(testbed.size.parents)]
        children = [f"c{number}" for number in range(testbed.size.children)]
        self._waiting: dict[str, list[str]] = {ROOT: parents}
        self._waiting |= {f"tenant-{parent}": children for parent in parents}

    def create_ready(self) -> bool:
        """Creates the Tenants whose parent has a Namespace; returns whether all have been created."""
        existing = {each["metadata"]["name"] for each in self._testbed.list("/api/v1/namespaces")}
        for namespace in [each for each in self._waiting if each in existing]:
            for name in self._waiting.pop(namespace):
                self._testbed.create_tenant(name, namespace)
        return not self._waiting


def is_settled(testbed: KillTestbed) -> bool:
    releases = testbed.list(RELEASES)
    return len(releases) == testbed.size.total + 1 and all(
        '"type":"Ready"' in each["metadata"].get("annotations", {}).get("apps.cozystack.io/tenant-status", "")
        for each in releases
    )


def expected_namespaces(size: WorkloadSize) -> dict[str, str]:
    """The namespace of every Tenant except the root, with its host."""
    parents = {f"tenant-p{number}": f"p{number}.example.org" for number in range(size.parents)}
    children = {
        f"{parent}-c{number}": f"c{number}.{host}"
        for parent, host in parents.items()
        for number in range(size.children)
    }
    return parents | children


def assert_converged(testbed: KillTestbed) -> None:
    """Asserts that every expected object exists exactly once."""
    uids = {
        (each["metadata"]["namespace"], each["metadata"]["name"]): each["metadata"]["uid"]
        for each in testbed.list(RELEASES)
    }
    tenants = [each for each in testbed.list("/api/v1/namespaces") if each["metadata"]["name"].startswith("tenant-")]
    namespaces = {each["metadata"]["name"]: each["metadata"] for each in tenants}
    hosts = {name: each["labels"]["namespace.cozystack.io/host"] for name, each in namespaces.items() if name != ROOT}
    assert hosts == expected_namespaces(testbed.size)
    for name, metadata in namespaces.items():
        if name == ROOT:
            continue
        home, _, tenant = metadata["annotations"]["apps.cozystack.io/tenant"].partition("/")
        assert metadata["annotations"]["apps.cozystack.io/tenant-uid"] == uids[home, f"tenant-{tenant}"]
        assert [each["name"] for each in metadata["ownerReferences"]] == [home]
    for release in testbed.list(RELEASES):
        finalizers = release["metadata"].get("finalizers", [])
        assert finalizers == ([] if release["metadata"]["name"] == "tenant-root" else [FINALIZER])
    for path, number in (
        (ROLEBINDINGS, 5),
        ("/api/v1/serviceaccounts", 1),
        ("/api/v1/secrets", 1),
    ):
        ours = [obj["metadata"] for obj in testbed.list(path) if _is_ours(obj)]
        counts = Counter(each["namespace"] for each in ours if not each["name"].startswith(SELF_ROLE))
        assert counts == dict.fromkeys(namespaces, number)
    of_tenants = {(home, f"{SELF_ROLE}{name.removeprefix('tenant-')}") for home, name in uids if name != ROOT}
    assert [_own_tenants(testbed, path) for path in (ROLES, ROLEBINDINGS)] == [of_tenants, of_tenants]


def _own_tenants(testbed: KillTestbed, path: str) -> set[tuple[str, str]]:
    """The objects by which people see their own Tenant: namespace and name."""
    found = ((each["metadata"]["namespace"], each["metadata"]["name"]) for each in testbed.list(path))
    return {each for each in found if each[1].startswith(SELF_ROLE)}


def _is_ours(obj: dict[str, Any]) -> bool:
    return bool(obj["metadata"].get("labels", {}).get("app.kubernetes.io/managed-by") == "tenant-controller")


def delete_all(testbed: KillTestbed) -> bool:
    """Requests the deletion of each parent with its children once; returns whether all Tenants are deleted."""
    remaining = [each for each in testbed.list(RELEASES) if each["metadata"]["name"] != "tenant-root"]
    for each in remaining:
        metadata = each["metadata"]
        if metadata["namespace"] == ROOT and "deletionTimestamp" not in metadata:
            path = f"{GROUP}/namespaces/{ROOT}/helmreleases/{metadata['name']}"
            testbed.client.request("PATCH", path, CASCADE, content_type=MERGE).expect(200)
            testbed.client.request("DELETE", path).expect(200)
    return not remaining


def run_with_kills(testbed: KillTestbed, rng: random.Random, requests: Sequence[int], done: Callable[[], bool]) -> int:
    """Runs one server after another, each but the last killed at a random request, until `done`.

    Returns the number of killed servers.
    """
    killed = 0
    for most in (*requests, 0):
        kill_at, after_response = rng.randint(1, most) if most else 0, rng.random() < 0.5
        if kill_at:
            print(f"killed at request {kill_at}{' after the response' if after_response else ''}")
        with testbed.run_server(kill_at=kill_at, after_response=after_response) as process:
            deadline = time.monotonic() + TIMEOUT
            while not process.ended:
                if done():
                    return killed
                assert time.monotonic() < deadline, "\n".join(each.tail() for each in (*testbed.processes, process))
                # each look lists everything
                with suppress(subprocess.TimeoutExpired):
                    process.wait(seconds=1.0)
            killed += 1
    raise AssertionError("the last server ended by itself")


@pytest.mark.timeout(900)
def test_successors_finish_the_work_of_killed_processes(testbed: KillTestbed) -> None:
    seed = secrets.randbits(32)
    print(f"seed {seed}")
    rng, creator = random.Random(seed), TenantCreator(testbed)
    assert (
        run_with_kills(
            testbed, rng, testbed.size.kills_while_creating, lambda: creator.create_ready() and is_settled(testbed)
        )
        > 0
    )
    with testbed.run_server():
        before, requests = len(testbed.proxy.writes()), len(testbed.proxy.forwarded)
        wait_until("the successor has begun", lambda: len(testbed.proxy.forwarded) > requests, seconds=TIMEOUT)
        wait_until("the successor sends no more requests", lambda: _is_quiet(testbed), seconds=TIMEOUT)
        assert [each for each in testbed.proxy.writes()[before:] if "/events" not in each.path] == []
    assert_converged(testbed)
    run_with_kills(testbed, rng, testbed.size.kills_while_deleting, lambda: delete_all(testbed))
    names = [each["metadata"]["name"] for each in testbed.list("/api/v1/namespaces")]
    assert [name for name in names if name.startswith("tenant-")] == [ROOT]
    assert [_own_tenants(testbed, path) for path in (ROLES, ROLEBINDINGS)] == [set(), set()]


def _is_quiet(testbed: KillTestbed) -> bool:
    """True if there has been no request for two seconds."""
    return time.monotonic() - testbed.proxy.forwarded[-1].at > 2.0
