"""SIGKILL at random points of a write storm: what was acknowledged is there, whole, and nothing else is.

Acknowledged means that the client has read the whole of a 2xx.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.support.clusters import PATIENCE, ROOT, ROOT_HOST, KubeCluster, tenants_path
from tests.e2e.support.https_client import Client
from tests.e2e.support.processes import Process, WaitTimeout, free_port, run_command, wait_until
from tests.e2e.support.recording_proxy import RecordingProxy
from tests.faults.failing_database_cluster import FailingDatabaseCluster
from tests.faults.failing_database_command import MOMENTS, kill_at
from tests.faults.sizes import new_seed, size
from tests.faults.write_storm import ConfigMapKind, Storm, TenantKind

WRITERS = 6
# the kill comes at a commit, or at a request to the host, of 1 to so many
COMMITS, REQUESTS = 120, 80
# of a database that is new: all that the embedded host holds from the start
FIRST_COMMITS = 40


def integrity(data: Path, scratch: Path) -> str:
    """What SQLite says of a copy: to look at the database itself would mend it."""
    for each in data.glob("host.db*"):
        shutil.copy(each, scratch / each.name)
    with closing(sqlite3.connect(scratch / "host.db")) as connection:
        answer: str = connection.execute("PRAGMA integrity_check").fetchone()[0]
    for each in scratch.glob("host.db*"):
        each.unlink()
    return answer


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    made = tmp_path / "scratch"
    made.mkdir()
    return made


@pytest.fixture
def mortal(tmp_path: Path) -> Iterator[FailingDatabaseCluster]:
    running = FailingDatabaseCluster(tmp_path)
    yield running
    running.spare()
    running.stop()


def test_what_the_embedded_host_acknowledged_survives(mortal: FailingDatabaseCluster, scratch: Path) -> None:
    seed, points = new_seed(), size(short=6, full=200)
    chance = random.Random(seed)
    storm = Storm(seed, [TenantKind(), ConfigMapKind()], writers=WRITERS)
    for _ in range(points):
        at, moment = chance.randint(1, COMMITS), chance.choice(MOMENTS)
        print(f"killed {moment} commit {at}")
        writing = storm.blow(mortal.client())
        mortal.doom(at, moment)
        assert mortal.server.wait(seconds=PATIENCE) == -signal.SIGKILL
        for each in writing:
            each.join(timeout=PATIENCE)
        mortal.spare()
        assert integrity(mortal.data, scratch) == "ok"
        mortal.start()
        storm.check(mortal.client())
    print(f"{storm.acknowledged} writes acknowledged, {points} kills")
    assert storm.acknowledged > points


def test_a_host_that_is_killed_while_it_is_made_is_made_all_the_same(tmp_path: Path, scratch: Path) -> None:
    seed = new_seed()
    chance = random.Random(seed)
    for number in range(size(short=3, full=40)):
        directory, order = tmp_path / str(number), kill_at(chance.randint(1, FIRST_COMMITS), chance.choice(MOMENTS))
        print(order)
        directory.mkdir()
        with pytest.raises(WaitTimeout):
            FailingDatabaseCluster(directory, order)
        assert integrity(directory / "data", scratch) == "ok"
        cluster = FailingDatabaseCluster(directory)
        cluster.client().request("POST", tenants_path(ROOT), TenantKind().body("w1", 1, "x")).expect(201)
        assert cluster.stop() == 0


@dataclass(slots=True)
class Replica:
    """A server on a real kube-apiserver that dies at a request to its host."""

    kube: KubeCluster
    proxy: RecordingProxy
    directory: Path
    port: int
    process: Process | None = None
    # requests left until the kill, and whether it comes once the request is answered; none while it is 0
    left: int = 0
    after: bool = False

    def watch(self, number: int, passed: bool) -> None:
        if not self.left or passed != self.after:
            return
        self.left -= 1
        if not self.left and self.process is not None:
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
        straight = self.kube.direct_client()
        return Client(f"https://127.0.0.1:{self.port}", straight.tls, straight.headers)


@pytest.fixture
def replica(kube: KubeCluster, tmp_path: Path) -> Iterator[Replica]:
    made = Replica(kube, RecordingProxy(kube.url, kube.account), tmp_path, free_port())
    yield made
    if made.process is not None:
        made.process.stop()
    made.proxy.close()


def test_what_a_replica_acknowledged_survives_it(kube: KubeCluster, replica: Replica, tmp_path: Path) -> None:
    seed, points = new_seed(), size(short=3, full=200)
    chance = random.Random(seed)
    kubeconfig = replica.proxy.add_server("replica", tmp_path, observer=replica.watch)
    storm = Storm(seed, [TenantKind()], writers=WRITERS)
    replica.start(kubeconfig)
    for _ in range(points):
        at, replica.after = chance.randint(1, REQUESTS), chance.random() < 0.5
        print(f"killed at request {at}{', once it was answered' if replica.after else ''}")
        writing = storm.blow(replica.client())
        replica.left = at
        assert replica.process is not None
        assert replica.process.wait(seconds=PATIENCE) == -signal.SIGKILL
        for each in writing:
            each.join(timeout=PATIENCE)
        replica.start(kubeconfig)
        storm.check(replica.client())
    # a replica that was never killed says the same
    wait_until(
        "the other replica has seen it all", lambda: versions(kube.direct_client()) == versions(replica.client())
    )
    print(f"{storm.acknowledged} writes acknowledged, {points} kills")
    storm.clear(kube.client())
    assert storm.acknowledged > points


def versions(client: Client) -> dict[str, str]:
    items = client.get(tenants_path(ROOT)).expect(200)["items"]
    return {item["metadata"]["name"]: item["metadata"]["resourceVersion"] for item in items}
