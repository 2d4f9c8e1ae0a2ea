"""Two replicas behind a real kube-apiserver are restarted in turns under load: nothing that was acknowledged is lost,
and every informer ends with the same state."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from tests.e2e.support.clusters import PATIENCE, ROOT_HOST, KubeCluster, tenants_path
from tests.e2e.support.https_client import Client
from tests.e2e.support.processes import Process, free_port, run_command, wait_until
from tests.faults.balancer import Balancer
from tests.faults.reflector import Name, Object, Reflector, name_of
from tests.faults.server_behind_proxy import is_ready
from tests.faults.sizes import new_seed, size
from tests.faults.write_storm import TenantKind, WriteStorm

WRITERS, INFORMERS = 4, 3
PAUSE_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Replicas:
    kube: KubeCluster
    directory: Path
    processes: dict[int, Process]

    def start(self, port: int) -> None:
        flags = [f"--kubeconfig={self.kube.account.kubeconfig}", f"--secure-port={port}", "--bind-address=127.0.0.1"]
        log = self.directory / f"{port}.log"
        self.processes[port] = run_command("serve", *flags, f"--root-host={ROOT_HOST}", log=log)

    def client(self, port: int) -> Client:
        straight = self.kube.direct_client()
        return Client(f"https://127.0.0.1:{port}", straight.tls, straight.headers)


@pytest.fixture
def replicas(kube: KubeCluster, tmp_path: Path) -> Iterator[Replicas]:
    """Two, which the kube-apiserver reaches by the port of the session's own server, and that one is stopped."""
    kube.server.stop()
    made = Replicas(kube, tmp_path, {})
    ports = [free_port(), free_port()]
    clients = {port: made.client(port) for port in ports}
    balancer = Balancer(kube.port, {port: partial(is_ready, clients[port]) for port in ports})
    try:
        for port in ports:
            made.start(port)
        wait_until("both are ready", lambda: len(balancer.ready) == 2, seconds=PATIENCE)
        wait_until("they are served", lambda: kube.client().get(tenants_path()).status == 200, seconds=PATIENCE)
        yield made
    finally:
        balancer.close()
        for process in made.processes.values():
            process.stop()
        kube.restart()


def list_tenants(client: Client) -> dict[Name, Object]:
    return {name_of(item): item for item in client.get(tenants_path()).expect(200)["items"]}


def is_unchanging(client: Client) -> bool:
    before = list_tenants(client)
    time.sleep(PAUSE_SECONDS)
    return list_tenants(client) == before


def restart_in_turns(replicas: Replicas, number: signal.Signals) -> None:
    """One after the other; the next one waits until the last is ready again."""
    for port, process in tuple(replicas.processes.items()):
        process.signal(number)
        process.wait(seconds=PATIENCE)
        replicas.start(port)
        client = replicas.client(port)
        wait_until("it is ready again", lambda client=client: is_ready(client), seconds=PATIENCE)  # type: ignore[misc]
        time.sleep(PAUSE_SECONDS)


def wait_until_all_equal(expected: Mapping[Name, Object], informers: list[Reflector]) -> None:
    def equal() -> bool:
        return all(informer.state == expected for informer in informers)

    wait_until("every informer has the same state", equal, seconds=PATIENCE)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL], ids=["rolling restart", "killed in turns"])
def test_no_write_is_lost_and_informers_agree(kube: KubeCluster, replicas: Replicas, how: signal.Signals) -> None:
    storm, over, client = WriteStorm(new_seed(), [TenantKind()], writers=WRITERS), threading.Event(), kube.client()
    informers = [Reflector(kube.client, tenants_path()) for _ in range(INFORMERS)]
    writing = storm.start_writers_until(over, client)
    try:
        for _ in range(size(short=1, full=10)):
            restart_in_turns(replicas, how)
    finally:
        over.set()
        for each in writing:
            each.join(timeout=PATIENCE)
    print(f"{storm.acknowledged} writes acknowledged, {storm.unanswered} not; lists: {[i.lists for i in informers]}")
    try:
        wait_until("the reconciler is done", lambda: is_unchanging(client), seconds=PATIENCE)
        wait_until_all_equal(list_tenants(client), informers)
        storm.check(client)
        assert [informer.inconsistencies for informer in informers] == [[]] * INFORMERS
        assert storm.acknowledged > 0
    finally:
        for informer in informers:
            informer.stop()
        storm.clear(client)
