"""SIGKILL at random points of a write storm: exactly the acknowledged writes are stored, each completely.

A write is acknowledged if the client has read the whole 2xx response.
"""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.support.clusters.cluster import PATIENCE, ROOT, ROOT_HOST, tenants_path
from tests.e2e.support.clusters.kube import KubeCluster
from tests.e2e.support.clusters.processes import Process, WaitTimeout, free_port, run_command, wait_until
from tests.e2e.support.clusters.stored_data import check_integrity
from tests.e2e.support.http.https_client import Client
from tests.e2e.support.http.recording_proxy import RecordingProxy
from tests.faults.support.failing_database_cluster import FailingDatabaseCluster
from tests.faults.support.failing_database_command import MOMENTS, kill_instruction
from tests.faults.support.sizes import new_seed, size
from tests.faults.support.write_storm import ConfigMapKind, TenantKind, WriteStorm

WRITERS = 6
# the kill comes at a random commit, or request to the cluster, up to this one
COMMITS, REQUESTS = 120, 240
# commits of the embedded cluster's first start
FIRST_COMMITS = 40


@pytest.fixture
def failing_cluster(tmp_path: Path) -> Iterator[FailingDatabaseCluster]:
    running = FailingDatabaseCluster(tmp_path)
    yield running
    running.clear_fault()
    running.stop()


def test_acknowledged_writes_survive_kills_of_the_embedded_cluster(failing_cluster: FailingDatabaseCluster) -> None:
    seed, kills = new_seed(), size(short=6, full=200)
    rng = random.Random(seed)
    storm = WriteStorm(seed, [TenantKind(), ConfigMapKind()], writers=WRITERS)
    for _ in range(kills):
        at, moment = rng.randint(1, COMMITS), rng.choice(MOMENTS)
        print(f"killed {moment} commit {at}")
        writing = storm.start_writers(failing_cluster.client())
        failing_cluster.kill_at_commit(at, moment)
        assert failing_cluster.server.wait(seconds=PATIENCE) == -signal.SIGKILL
        for each in writing:
            each.join(timeout=PATIENCE)
        failing_cluster.clear_fault()
        assert check_integrity(failing_cluster.data) == "ok"
        failing_cluster.start()
        storm.check(failing_cluster.client())
    print(f"{storm.acknowledged} writes acknowledged, {kills} kills")
    assert storm.acknowledged > kills


def start_until_killed(parent: Path, rng: random.Random) -> Path:
    """Starts a cluster that is killed at one of its first commits, and returns its directory. A busy machine combines
    more writes into each commit, and its first start has fewer: then an earlier one is tried."""
    commit, moment = rng.randint(1, FIRST_COMMITS), rng.choice(MOMENTS)
    while True:
        instruction, directory = kill_instruction(commit, moment), parent / str(commit)
        print(instruction)
        directory.mkdir(parents=True)
        try:
            started = FailingDatabaseCluster(directory, instruction)
        except WaitTimeout:
            return directory
        started.stop()
        assert commit > 1, "it was not killed at its first commit"
        commit //= 2


def test_the_embedded_cluster_recovers_from_a_kill_during_its_first_start(tmp_path: Path) -> None:
    seed = new_seed()
    rng = random.Random(seed)
    for number in range(size(short=3, full=40)):
        directory = start_until_killed(tmp_path / str(number), rng)
        assert check_integrity(directory / "data") == "ok"
        cluster = FailingDatabaseCluster(directory)
        cluster.client().request("POST", tenants_path(ROOT), TenantKind().body("w1", 1, "x")).expect(201)
        assert cluster.stop() == 0


@dataclass(slots=True)
class KillableReplica:
    """A server on a real kube-apiserver that is killed at one of its requests to the cluster."""

    kube: KubeCluster
    proxy: RecordingProxy
    directory: Path
    port: int
    process: Process | None = None
    # the number of requests until the kill, 0 for no kill, and whether it comes after the response
    requests_left: int = 0
    kill_after_answer: bool = False

    def count_request(self, number: int, answered: bool) -> None:
        """The observer of the proxy, called before and after each request."""
        if not self.requests_left or answered != self.kill_after_answer:
            return
        self.requests_left -= 1
        if not self.requests_left and self.process is not None:
            os.kill(self.process.pid, signal.SIGKILL)

    def start(self, kubeconfig: Path) -> None:
        flags = [f"--kubeconfig={kubeconfig}", f"--secure-port={self.port}", "--bind-address=127.0.0.1"]
        log = self.directory / "replica.log"
        self.process = run_command("serve", *flags, f"--root-host={ROOT_HOST}", log=log)
        wait_until("the replica is ready", self.is_ready, seconds=PATIENCE, processes=[self.process])

    def is_ready(self) -> bool:
        try:
            return self.client().get("/readyz").status == 200
        except OSError:
            return False

    def client(self) -> Client:
        direct = self.kube.direct_client()
        return Client(f"https://127.0.0.1:{self.port}", direct.tls, direct.headers)


@pytest.fixture
def killable(kube: KubeCluster, tmp_path: Path) -> Iterator[KillableReplica]:
    replica = KillableReplica(kube, RecordingProxy(kube.url, kube.account), tmp_path, free_port())
    yield replica
    if replica.process is not None:
        replica.process.stop()
    replica.proxy.close()


def test_acknowledged_writes_survive_kills_of_a_replica(
    kube: KubeCluster, killable: KillableReplica, tmp_path: Path
) -> None:
    seed, kills = new_seed(), size(short=3, full=200)
    rng = random.Random(seed)
    kubeconfig = killable.proxy.add_server("replica", tmp_path, observer=killable.count_request)
    storm = WriteStorm(seed, [TenantKind()], writers=WRITERS)
    killable.start(kubeconfig)
    # the first requests are questions about rights: one kill comes late enough for writes
    for at in (*(rng.randint(1, REQUESTS) for _ in range(kills - 1)), REQUESTS):
        killable.kill_after_answer = rng.random() < 0.5
        print(f"killed at request {at}{', once it was answered' if killable.kill_after_answer else ''}")
        writing = storm.start_writers(killable.client())
        killable.requests_left = at
        assert killable.process is not None
        assert killable.process.wait(seconds=PATIENCE) == -signal.SIGKILL
        for each in writing:
            each.join(timeout=PATIENCE)
        killable.start(kubeconfig)
        storm.check(killable.client())
    # another replica, which was never killed, returns the same objects
    wait_until(
        "both replicas have the same versions",
        lambda: versions(kube.direct_client()) == versions(killable.client()),
        seconds=PATIENCE,
    )
    print(f"{storm.acknowledged} writes acknowledged, {kills} kills")
    storm.clear(kube.client())
    assert storm.acknowledged > kills


def versions(client: Client) -> dict[str, str]:
    items = client.get(tenants_path(ROOT)).expect(200)["items"]
    return {item["metadata"]["name"]: item["metadata"]["resourceVersion"] for item in items}
