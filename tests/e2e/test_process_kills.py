"""The process is killed at the n-th request to its host while 200 Tenants converge: its successors finish the work."""

from __future__ import annotations

import os
import random
import secrets
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.e2e import credentials
from tests.e2e.client import Client
from tests.e2e.hosts import ROOT
from tests.e2e.processes import Process, free_port, run_command, wait_until
from tests.e2e.recorder import RecordingProxy

GROUP = "/apis/helm.toolkit.fluxcd.io/v2"
RELEASES = f"{GROUP}/helmreleases"
PARENTS, CHILDREN = 20, 9
TOTAL = PARENTS * (1 + CHILDREN)
# Each kill comes at a request of 1 to so many, by chance. Making all takes over 2,000, so that the first always comes.
AMID_MAKING, AMID_DELETING = (1600, 400, 400), (600, 200)
PATIENCE = 50.0
FINALIZER = "apps.cozystack.io/tenant"


class Arena:
    """A host without controllers, and one server after the other that works on it through a proxy."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        port = free_port()
        flags = ["--bind-address=127.0.0.1", f"--secure-port={port}", "--controllers=none"]
        self.host = run_command("standalone", f"--data-dir={directory / 'data'}", *flags, log=directory / "host.log")
        kubeconfig = directory / "data" / "kubeconfig"
        wait_until("the kubeconfig is written", kubeconfig.is_file, processes=[self.host])
        admin = credentials.from_kubeconfig(kubeconfig)
        self.client = Client(f"https://127.0.0.1:{port}", admin.tls, admin.headers)
        wait_until("the host is ready", lambda: self.client.get("/readyz").status == 200, processes=[self.host])
        self.proxy = RecordingProxy(f"https://127.0.0.1:{port}", admin)
        self._servers = 0

    @contextmanager
    def server(self, *, kill_at: int = 0, after: bool = False) -> Iterator[Process]:
        """A server that is killed at this request, before or after it reaches the host."""
        self._servers += 1
        name, running = f"server{self._servers}", list[Process]()

        def watch(number: int, passed: bool) -> None:
            if number == kill_at and passed == after and running:
                os.kill(running[0].pid, signal.SIGKILL)

        kubeconfig = self.proxy.door(name, self.directory, watch=watch)
        flags = [f"--kubeconfig={kubeconfig}", f"--cert-dir={self.directory / 'certs'}", "--leader-elect=false"]
        address = ["--bind-address=127.0.0.1", f"--secure-port={free_port()}"]
        running.append(run_command("serve", *flags, *address, log=self.directory / f"{name}.log"))
        try:
            yield running[0]
        finally:
            running[0].stop()

    def list(self, path: str) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = self.client.get(path).expect(200)["items"]
        return items

    def create(self, name: str, namespace: str) -> None:
        body = {
            "metadata": {
                "name": f"tenant-{name}",
                "labels": {
                    "apps.cozystack.io/application.kind": "Tenant",
                    "apps.cozystack.io/application.group": "apps.cozystack.io",
                    "apps.cozystack.io/application.name": name,
                },
            },
            "spec": {"values": {}},
        }
        self.client.request("POST", f"{GROUP}/namespaces/{namespace}/helmreleases", body).expect(201)

    def stop(self) -> None:
        self.proxy.close()
        self.host.stop()


@pytest.fixture
def arena(tmp_path: Path) -> Iterator[Arena]:
    made = Arena(tmp_path)
    yield made
    made.stop()


class Growth:
    """Makes the Tenants: parents as soon as the root's Namespace is there, children as soon as their parent's is."""

    def __init__(self, arena: Arena) -> None:
        self._arena = arena
        self._waiting: dict[str, list[str]] = {ROOT: [f"p{number}" for number in range(PARENTS)]}
        self._waiting |= {f"tenant-p{number}": [f"c{each}" for each in range(CHILDREN)] for number in range(PARENTS)}

    def go_on(self) -> bool:
        """Whether all are made."""
        there = {each["metadata"]["name"] for each in self._arena.list("/api/v1/namespaces")}
        for namespace in [each for each in self._waiting if each in there]:
            for name in self._waiting.pop(namespace):
                self._arena.create(name, namespace)
        return not self._waiting


def is_settled(arena: Arena) -> bool:
    return len(arena.list(RELEASES)) == TOTAL + 1 and all(
        '"type":"Ready"' in each["metadata"].get("annotations", {}).get("apps.cozystack.io/tenant-status", "")
        for each in arena.list(RELEASES)
    )


def expected_namespaces() -> dict[str, str]:
    """Of every Tenant but the root, the namespace and its domain."""
    parents = {f"tenant-p{number}": f"p{number}.example.org" for number in range(PARENTS)}
    children = {
        f"{parent}-c{number}": f"c{number}.{host}" for parent, host in parents.items() for number in range(CHILDREN)
    }
    return parents | children


def check(arena: Arena) -> None:
    """Everything is there, once."""
    uids = {
        (each["metadata"]["namespace"], each["metadata"]["name"]): each["metadata"]["uid"]
        for each in arena.list(RELEASES)
    }
    tenants = [each for each in arena.list("/api/v1/namespaces") if each["metadata"]["name"].startswith("tenant-")]
    held = {each["metadata"]["name"]: each["metadata"] for each in tenants}
    hosts = {name: each["labels"]["namespace.cozystack.io/host"] for name, each in held.items() if name != ROOT}
    assert hosts == expected_namespaces()
    for name, metadata in held.items():
        if name == ROOT:
            continue
        home, _, tenant = metadata["annotations"]["apps.cozystack.io/tenant"].partition("/")
        assert metadata["annotations"]["apps.cozystack.io/tenant-uid"] == uids[home, f"tenant-{tenant}"]
        assert [each["name"] for each in metadata["ownerReferences"]] == [home]
    for release in arena.list(RELEASES):
        finalizers = release["metadata"].get("finalizers", [])
        assert finalizers == ([] if release["metadata"]["name"] == "tenant-root" else [FINALIZER])
    for path, each in (
        ("/apis/rbac.authorization.k8s.io/v1/rolebindings", 5),
        ("/api/v1/serviceaccounts", 1),
        ("/api/v1/secrets", 1),
    ):
        counts = Counter(obj["metadata"]["namespace"] for obj in arena.list(path) if _is_ours(obj))
        assert counts == dict.fromkeys(held, each)


def _is_ours(obj: dict[str, Any]) -> bool:
    return bool(obj["metadata"].get("labels", {}).get("app.kubernetes.io/managed-by") == "tenant-controller")


def delete_all(arena: Arena) -> bool:
    """Whether all are gone; each parent is told to go once."""
    left = [each for each in arena.list(RELEASES) if each["metadata"]["name"] != "tenant-root"]
    for each in left:
        metadata = each["metadata"]
        if metadata["namespace"] == ROOT and "deletionTimestamp" not in metadata:
            arena.client.request("DELETE", f"{GROUP}/namespaces/{ROOT}/helmreleases/{metadata['name']}").expect(200)
    return not left


def with_kills(arena: Arena, chance: random.Random, requests: Sequence[int], done: Callable[[], bool]) -> int:
    """Run servers, of which the first ones are killed, until `done`; how many were."""
    killed = 0
    for most in (*requests, 0):
        at, after = chance.randint(1, most) if most else 0, chance.random() < 0.5
        if at:
            print(f"killed at request {at}{', once it was answered' if after else ''}")
        with arena.server(kill_at=at, after=after) as process:
            deadline = time.monotonic() + PATIENCE
            while not process.ended:
                if done():
                    return killed
                assert time.monotonic() < deadline, f"{arena.host.tail()}\n{process.tail()}"
                time.sleep(0.05)
            killed += 1
    raise AssertionError("the last server ended by itself")


def test_what_a_killed_process_left_its_successors_finish(arena: Arena) -> None:
    seed = secrets.randbits(32)
    print(f"seed {seed}")
    chance, growth = random.Random(seed), Growth(arena)
    assert with_kills(arena, chance, AMID_MAKING, lambda: growth.go_on() and is_settled(arena)) > 0
    with arena.server():
        before = len(arena.proxy.writes())
        wait_until("the successor has looked", lambda: _is_quiet(arena), seconds=PATIENCE)
        assert [each for each in arena.proxy.writes()[before:] if "/events" not in each.path] == []
    check(arena)
    with_kills(arena, chance, AMID_DELETING, lambda: delete_all(arena))
    left = [each["metadata"]["name"] for each in arena.list("/api/v1/namespaces")]
    assert [name for name in left if name.startswith("tenant-")] == [ROOT]


def _is_quiet(arena: Arena) -> bool:
    """Whether nobody has asked for anything for a second."""
    return bool(arena.proxy.passed) and time.monotonic() - arena.proxy.passed[-1].at > 1.0
