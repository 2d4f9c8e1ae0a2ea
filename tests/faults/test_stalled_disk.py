"""A stalled disk: writes wait for it, reads and watches do not, and no write is lost."""

from __future__ import annotations

import signal
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, contextmanager
from functools import partial
from pathlib import Path

import pytest

from tests.e2e.support.clusters.cluster import PATIENCE, ROOT, tenants_path
from tests.e2e.support.clusters.embedded import EmbeddedCluster
from tests.e2e.support.clusters.kube import KubeCluster
from tests.e2e.support.clusters.processes import wait_until
from tests.e2e.support.http.https_client import Client, Response
from tests.e2e.support.tenants import manifest
from tests.faults.support.failing_database_cluster import FailingDatabaseCluster
from tests.faults.support.reflector import Reflector
from tests.faults.support.sizes import size

WRITERS = 8
# the slowest read: it is served from memory, while eight writes wait
READ_SECONDS = 1.0
# and on a busy machine compared with the slowest one before the stall
SLOWER = 5.0
# more than the deadline of a write, 34 s
WRITE_SECONDS = 40.0


@pytest.fixture
def failing_cluster(tmp_path: Path) -> Iterator[FailingDatabaseCluster]:
    running = FailingDatabaseCluster(tmp_path)
    yield running
    running.clear_fault()
    assert running.stop() == 0, running.server.tail()


@contextmanager
def stopped_etcd(kube: KubeCluster) -> Iterator[None]:
    [etcd] = [process for process in kube.processes if process.name == "etcd"]
    etcd.signal(signal.SIGSTOP)
    try:
        yield
    finally:
        etcd.signal(signal.SIGCONT)


def read_until(end: float, readers: Sequence[Client], existing: str) -> float:
    """Reads until the time `end`; returns the duration of the slowest read."""
    longest = 0.0
    while time.monotonic() < end:
        for reader in readers:
            for path in (tenants_path(ROOT, existing), tenants_path(ROOT), "/livez"):
                started = time.monotonic()
                assert reader.get(path).status == 200
                longest = max(longest, time.monotonic() - started)
        time.sleep(0.05)
    return longest


def create_during_stall(
    readers: Sequence[Client], stall: Callable[[], AbstractContextManager[None]], unique: str
) -> list[Response]:
    """Creates Tenants named `unique` and a number during the stall, and returns the responses."""
    client, existing = readers[0], f"{unique}there"
    client.request("POST", tenants_path(ROOT), manifest(existing)).expect(201)
    for reader in readers:
        # the reviews of these requests are cached from now on
        wait_until("the reader may read the Tenant", partial(may_read, reader, tenants_path(ROOT, existing)))
        reader.get(tenants_path(ROOT)).expect(200)
    reflector = Reflector(lambda: client, tenants_path())
    try:
        wait_until("the reflector has listed", lambda: reflector.lists)
        before = read_until(time.monotonic() + 1.0, readers, existing)
        with ThreadPoolExecutor(WRITERS) as pool:
            with stall():
                bodies = [manifest(f"{unique}{number}") for number in range(WRITERS)]
                create = partial(client.request, "POST", tenants_path(ROOT), seconds=WRITE_SECONDS)
                pending = [pool.submit(create, body) for body in bodies]
                longest = read_until(time.monotonic() + size(short=3.0, full=20.0), readers, existing)
                assert [each for each in pending if each.done() and each.result().status == 201] == []
            answers = [each.result() for each in pending]
        print(f"the slowest read took {longest:.3f} s; writes: {[answer.status for answer in answers]}")
        assert longest < max(READ_SECONDS, SLOWER * before), before
        check_watch_is_complete(client, reflector)
    finally:
        reflector.stop()
    return answers


def may_read(client: Client, path: str) -> bool:
    return client.get(path).status == 200


def check_watch_is_complete(client: Client, reflector: Reflector) -> None:
    """Fails unless the watch has every change and was never interrupted."""

    def listed() -> dict[str, str]:
        items = client.get(tenants_path()).expect(200)["items"]
        return {item["metadata"]["uid"]: item["metadata"]["resourceVersion"] for item in items}

    def received() -> dict[str, str]:
        objects = reflector.state.values()
        return {obj["metadata"]["uid"]: obj["metadata"]["resourceVersion"] for obj in objects}

    wait_until("the watch has every change", lambda: received() == listed(), seconds=PATIENCE)
    assert (reflector.lists, reflector.inconsistencies) == (1, [])


def test_the_embedded_cluster_waits_for_its_disk(failing_cluster: FailingDatabaseCluster, unique: str) -> None:
    failing_cluster.grant(unique, "cluster-admin", ROOT)
    client = failing_cluster.client()
    answers = create_during_stall([client, failing_cluster.client(unique)], failing_cluster.stalled, unique)
    assert [answer.status for answer in answers] == [201] * WRITERS
    failing_cluster.server.kill()
    failing_cluster.start()
    names = {item["metadata"]["name"] for item in failing_cluster.client().get(tenants_path(ROOT)).expect(200)["items"]}
    assert {f"{unique}{number}" for number in range(WRITERS)} <= names


def test_a_cluster_waits_for_a_stalled_etcd(kube: KubeCluster, unique: str) -> None:
    kube.grant(unique, "cluster-admin", ROOT)
    client = kube.direct_client()
    answers = create_during_stall([client, kube.direct_client(unique)], lambda: stopped_etcd(kube), unique)
    for number, answer in enumerate(answers):
        # a creation that timed out may have been stored all the same
        assert answer.status in (201, 500, 503, 504), answer.content
        if answer.status == 201:
            client.get(tenants_path(ROOT, f"{unique}{number}")).expect(200)
    names = [f"{unique}{number}" for number in range(WRITERS)] + [f"{unique}there"]
    for name in names:
        kube.client().request("DELETE", tenants_path(ROOT, name))


def test_no_other_process_can_lock_the_database(own: EmbeddedCluster, unique: str) -> None:
    client = own.client()
    with closing(sqlite3.connect(own.data / "host.db", timeout=0.5, isolation_level=None)) as other:
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            other.execute("BEGIN EXCLUSIVE")
        client.request("POST", tenants_path(ROOT), manifest(unique)).expect(201)
    assert client.get(tenants_path(ROOT, unique)).status == 200
