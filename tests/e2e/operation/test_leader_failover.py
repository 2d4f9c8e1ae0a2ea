"""Leader election of two replicas: when the leader is killed, frozen or cut off, the other one takes over in time.

No write of the old leader succeeds after the first write of the new one.
"""

from __future__ import annotations

import signal
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest

from tests.e2e.support.clusters.cluster import PATIENCE, ROOT
from tests.e2e.support.clusters.kube import KubeCluster
from tests.e2e.support.clusters.processes import Process, free_port, run_command, wait_until
from tests.e2e.support.http.https_client import Client
from tests.e2e.support.http.pace import Pace
from tests.e2e.support.http.recording_proxy import ForwardedRequest, RecordingProxy

pytestmark = pytest.mark.faults

# the lease duration plus the longest retry interval of client-go
TAKEOVER_SECONDS = 20.0
# of which this much is work of the new leader: the first reconcile
WORK_SECONDS = 1.0
FROZEN_SECONDS = 20.0
# after the recovery: the time in which the old leader must notice that it no longer leads
AFTERMATH_SECONDS = 4.0
# between two changes for the leader to undo: often enough to see a late write in the aftermath
EDIT_SECONDS = 0.1
MERGE = "application/merge-patch+json"
# more than the leader writes before the test sees the first
TENANTS, POLICIES = 40, 4


@dataclass(frozen=True, slots=True)
class Pair:
    """Two replicas by name, and the proxy through which they reach the cluster."""

    replicas: dict[str, Process]
    proxy: RecordingProxy

    def leader(self) -> str:
        """The replica of the last write, empty if there was none."""
        writes = self.proxy.writes()
        return writes[-1].server if writes else ""

    def first_write(self, name: str) -> ForwardedRequest | None:
        return next(iter(self.proxy.writes(name)), None)


@pytest.fixture
def pair(kube: KubeCluster, tmp_path: Path) -> Iterator[Pair]:
    """Two replicas; the server of the session is stopped meanwhile and releases its lease."""
    kube.server.stop()
    proxy = RecordingProxy(kube.url, kube.account)
    replicas: dict[str, Process] = {}
    try:
        for name in ("one", "two"):
            flags = [f"--kubeconfig={proxy.add_server(name, tmp_path)}", f"--secure-port={free_port()}"]
            replicas[name] = run_command("serve", *flags, "--bind-address=127.0.0.1", log=tmp_path / f"{name}.log")
        yield Pair(replicas, proxy)
    finally:
        for process in replicas.values():
            # the leader releases its lease when it stops, for which a frozen one must be resumed
            if not process.ended:
                process.signal(signal.SIGCONT)
            process.stop()
        proxy.close()
        kube.restart()


class NamespaceLabelEditor:
    """Keeps changing a label of a Namespace, so that the leader always has something to write."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> NamespaceLabelEditor:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stopped.set()
        self._thread.join(timeout=30)

    def _run(self) -> None:
        for number in count():
            body = {"metadata": {"labels": {"namespace.cozystack.io/host": f"n{number}.example.org"}}}
            self._client.request("PATCH", f"/api/v1/namespaces/{ROOT}", body, content_type=MERGE)
            if self._stopped.wait(EDIT_SECONDS):
                return


def kill(pair: Pair, leader: str) -> Callable[[], None]:
    pair.replicas[leader].kill()
    return lambda: None


def freeze(pair: Pair, leader: str) -> Callable[[], None]:
    process, since = pair.replicas[leader], time.monotonic()
    process.signal(signal.SIGSTOP)

    def resume() -> None:
        time.sleep(max(0.0, since + FROZEN_SECONDS - time.monotonic()))
        process.signal(signal.SIGCONT)

    return resume


def cut_off(pair: Pair, leader: str) -> Callable[[], None]:
    pair.proxy.disconnect(leader)
    return lambda: pair.proxy.reconnect(leader)


@pytest.mark.parametrize(
    "disrupt",
    [
        pytest.param(kill, id="killed"),
        pytest.param(freeze, id="frozen"),
        pytest.param(cut_off, id="cut off"),
    ],
)
def test_the_other_replica_takes_over(
    kube: KubeCluster, pair: Pair, disrupt: Callable[[Pair, str], Callable[[], None]]
) -> None:
    with NamespaceLabelEditor(kube.client()):
        wait_until("a replica leads", lambda: len(pair.proxy.writes()) > 5, seconds=PATIENCE)
        leader = pair.leader()
        [other] = pair.replicas.keys() - {leader}
        assert pair.first_write(other) is None
        wait_until("the other replica is ready", lambda: _has_requested_the_lease(pair, other), seconds=PATIENCE)
        pace, began = Pace(kube.client()), time.monotonic()
        recover = disrupt(pair, leader)
        first = wait_until(
            "the other replica writes",
            lambda: pair.first_write(other),
            seconds=PATIENCE,
            processes=[pair.replicas[other]],
        )
        print(f"took over after {first.at - began:.1f} s")
        # a slow machine needs longer for the work, but not until the lease expires
        assert first.at - began <= TAKEOVER_SECONDS - WORK_SECONDS + pace.limit(WORK_SECONDS)
        recover()
        time.sleep(AFTERMATH_SECONDS)
        late = [each for each in pair.proxy.writes(leader) if each.at > first.at]
        assert late == []
        assert pair.leader() == other


def _has_requested_the_lease(pair: Pair, name: str) -> bool:
    return any(each.server == name and "/leases/" in each.path for each in tuple(pair.proxy.forwarded))


def test_isolation_goes_on_when_the_leader_is_killed_while_it_writes_policies(kube: KubeCluster, pair: Pair) -> None:
    """The other replica writes the policies that are missing: each is written once, by either of them, and before
    anybody gets access to its Namespace."""
    client = kube.client()
    wait_until("both ask for the lease", lambda: all(_has_requested_the_lease(pair, each) for each in pair.replicas))
    namespaces = [_store_tenant(client, f"k{uuid.uuid4().hex[:8]}") for _ in range(TENANTS)]
    wait_until("some policies are written", lambda: len(_policies_posted(pair)) >= TENANTS, seconds=PATIENCE)
    leader = pair.leader()
    pair.replicas[leader].kill()
    [other] = pair.replicas.keys() - {leader}
    wait_until("the others have access", lambda: _accessible(client) >= set(namespaces), seconds=PATIENCE)
    assert Counter(_policies_posted(pair)) == dict.fromkeys(namespaces, POLICIES)
    assert {each.server for each in pair.proxy.writes() if _is_policy(each)} == {leader, other}
    # the root's may have been written by the server before
    assert _opened_before_isolated(pair).isdisjoint(namespaces)


def _store_tenant(client: Client, name: str) -> str:
    """Creates the HelmRelease that stores a Tenant, and returns its Namespace: the API needs a server with an address
    that the cluster knows."""
    marks = {"kind": "Tenant", "group": "apps.cozystack.io", "name": name}
    labels = {f"apps.cozystack.io/application.{key}": value for key, value in marks.items()}
    spec = {"interval": "5m", "chartRef": {"kind": "ExternalArtifact", "name": "tenant"}, "values": {}}
    version = "helm.toolkit.fluxcd.io/v2"
    metadata = {"name": f"tenant-{name}", "labels": labels}
    body = {"apiVersion": version, "kind": "HelmRelease", "metadata": metadata, "spec": spec}
    client.request("POST", f"/apis/{version}/namespaces/{ROOT}/helmreleases", body).expect(201)
    return f"tenant-{name}"


def _is_policy(request: ForwardedRequest) -> bool:
    return request.path.endswith("/networkpolicies")


def _namespace(request: ForwardedRequest) -> str:
    return request.path.split("/")[-2]


def _policies_posted(pair: Pair) -> list[str]:
    """The Namespace of each policy that was sent, by either replica."""
    return [_namespace(each) for each in pair.proxy.writes() if _is_policy(each)]


def _opened_before_isolated(pair: Pair) -> set[str]:
    """The Namespaces to which a RoleBinding was sent before all policies were."""
    sent, found = Counter[str](), set[str]()
    for each in pair.proxy.writes():
        if _is_policy(each):
            sent[_namespace(each)] += 1
        elif each.path.endswith("/rolebindings") and sent[_namespace(each)] < POLICIES:
            found.add(_namespace(each))
    return found


def _accessible(client: Client) -> set[str]:
    """The Namespaces that have a RoleBinding of their administrators."""
    bindings = client.get("/apis/rbac.authorization.k8s.io/v1/rolebindings").expect(200)["items"]
    return {each["metadata"]["namespace"] for each in bindings if each["metadata"]["name"] == "cozy:tenant:admin"}
