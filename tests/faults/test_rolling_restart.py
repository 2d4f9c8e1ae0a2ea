"""Two replicas behind a real kube-apiserver are restarted in turns under load: no acknowledged write is lost, and all
informers end with the same state."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.e2e.support.clusters.cluster import PATIENCE, tenants_path
from tests.e2e.support.clusters.kube import KubeCluster
from tests.e2e.support.clusters.processes import free_port, wait_until
from tests.e2e.support.http.https_client import Client
from tests.faults.support.balancer import Balancer
from tests.faults.support.reflector import Name, Object, Reflector, name_of
from tests.faults.support.replicas import Replicas
from tests.faults.support.server_behind_proxy import is_ready
from tests.faults.support.sizes import new_seed, size
from tests.faults.support.write_storm import TenantKind, WriteStorm

WRITERS, INFORMERS = 4, 3
PAUSE_SECONDS = 1.0


@pytest.fixture
def replicas(kube: KubeCluster, tmp_path: Path) -> Iterator[Replicas]:
    """Two replicas behind a load balancer on the port of the session's own server, which is stopped meanwhile."""
    kube.server.stop()
    started = Replicas(kube, tmp_path, {})
    ports = [free_port(), free_port()]
    clients = {port: started.client(port) for port in ports}
    balancer = Balancer(kube.port, {port: partial(is_ready, clients[port]) for port in ports})
    try:
        for port in ports:
            started.start(port)
        wait_until("both replicas are ready", lambda: len(balancer.ready) == 2, seconds=PATIENCE)
        wait_until("the aggregator works", lambda: kube.client().get(tenants_path()).status == 200, seconds=PATIENCE)
        yield started
    finally:
        balancer.close()
        for process in started.processes.values():
            process.stop()
        kube.restart()


def list_tenants(client: Client) -> dict[Name, Object]:
    """Repeats a list that fails: the aggregator may still use a connection to a replica that was stopped."""
    found = wait_until("Tenants are listed", lambda: _items(client), seconds=PATIENCE)
    return {name_of(item): item for item in found}


def _items(client: Client) -> list[Object]:
    answer = client.get(tenants_path())
    return answer.json()["items"] if answer.status == 200 else []


def is_unchanging(client: Client) -> bool:
    before = list_tenants(client)
    time.sleep(PAUSE_SECONDS)
    return list_tenants(client) == before


def restart_in_turns(replicas: Replicas, number: signal.Signals) -> None:
    """Restarts each replica as soon as the previous one is ready again."""
    for port, process in tuple(replicas.processes.items()):
        process.signal(number)
        process.wait(seconds=PATIENCE)
        replicas.start(port)
        client = replicas.client(port)
        wait_until("the replica is ready again", lambda client=client: is_ready(client), seconds=PATIENCE)  # type: ignore[misc]
        time.sleep(PAUSE_SECONDS)


def wait_until_all_equal(client: Client, informers: list[Reflector]) -> None:
    """Lists again on every try, since the reconciler may still write a status."""

    def are_equal() -> bool:
        expected = list_tenants(client)
        return all(informer.state == expected for informer in informers)

    wait_until("every informer has the same state", are_equal, seconds=PATIENCE)


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
    lists = [informer.lists for informer in informers]
    print(f"{storm.acknowledged} writes acknowledged, {storm.unanswered} not; lists: {lists}")
    try:
        wait_until("the reconciler is idle", lambda: is_unchanging(client), seconds=PATIENCE)
        wait_until_all_equal(client, informers)
        storm.check(client)
        assert [informer.inconsistencies for informer in informers] == [[]] * INFORMERS
        assert storm.acknowledged > 0
    finally:
        for informer in informers:
            informer.stop()
        storm.clear(client)
