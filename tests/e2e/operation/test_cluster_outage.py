"""An outage of the cluster: reads continue, writes are rejected, and watches miss no event."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from tests.e2e.support.clusters.cluster import GROUP_VERSION, PATIENCE, ROOT, tenants_path
from tests.e2e.support.clusters.kube import KubeCluster
from tests.e2e.support.clusters.processes import Process, free_port, run_command, wait_until
from tests.e2e.support.http.https_client import Client
from tests.e2e.support.http.relay import Relay
from tests.e2e.support.tenants import Tenants, manifest

pytestmark = pytest.mark.faults


@dataclass(frozen=True, slots=True)
class Replica:
    """A second server, which reaches the cluster through a relay."""

    process: Process
    relay: Relay
    url: str

    def client(self, kube: KubeCluster, user: str = "") -> Client:
        direct = kube.direct_client(user)
        return Client(self.url, direct.tls, direct.headers)


@pytest.fixture
def replica(kube: KubeCluster, tmp_path: Path) -> Iterator[Replica]:
    relay, port = Relay(int(kube.url.rpartition(":")[2])), free_port()
    document = yaml.load(kube.account.kubeconfig.read_text(), Loader=yaml.CSafeLoader)
    document["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{relay.port}"
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(yaml.safe_dump(document))
    flags = [f"--kubeconfig={kubeconfig}", f"--secure-port={port}", "--bind-address=127.0.0.1", "--controllers=none"]
    process = run_command("serve", *flags, log=tmp_path / "replica.log")
    started = Replica(process, relay, f"https://127.0.0.1:{port}")
    try:
        client = started.client(kube)
        wait_until("the replica is ready", lambda: _is_ready(client), seconds=PATIENCE, processes=[process])
        yield started
    finally:
        process.stop()
        relay.close()


def _is_ready(client: Client) -> bool:
    try:
        return client.get("/readyz").status == 200
    except OSError:
        return False


def test_reads_continue_and_writes_fail_during_an_outage(
    kube: KubeCluster, replica: Replica, tenants: Tenants, unique: str
) -> None:
    kube.grant(unique, "cozy:tenant:admin", ROOT)
    name = tenants.create()["metadata"]["name"]
    admin, user = replica.client(kube), replica.client(kube, unique)
    path = tenants_path(ROOT, name)
    wait_until("the replica has the tenant", lambda: user.get(path).status == 200, seconds=PATIENCE)
    replica.relay.disconnect()
    wait_until("reads have a warning", lambda: admin.get(path).warnings, seconds=PATIENCE)
    for client in (admin, user):
        answer = client.get(path)
        assert answer.expect(200)["metadata"]["name"] == name
        assert answer.warnings
    rejected = admin.request("POST", tenants_path(ROOT), manifest(tenants.new_name()))
    assert rejected.expect(503)["reason"] == "ServiceUnavailable"
    assert admin.get("/livez").status == 200
    # without discovery, garbage collection and namespace deletion would stop (WIRE-C10)
    assert admin.get(GROUP_VERSION).expect(200)["resources"]
    replica.relay.reconnect()
    fresh = manifest(tenants.new_name())
    wait_until(
        "writes succeed again",
        lambda: admin.request("POST", tenants_path(ROOT), fresh, query={"dryRun": "All"}).status == 201,
        seconds=PATIENCE,
    )
    wait_until("reads have no warning", lambda: not admin.get(path).warnings, seconds=PATIENCE)


def test_a_watch_survives_an_outage_without_missing_events(
    kube: KubeCluster, replica: Replica, tenants: Tenants, unique: str
) -> None:
    client = replica.client(kube)
    version = client.get(tenants_path(ROOT)).expect(200)["metadata"]["resourceVersion"]
    query = {"watch": "true", "resourceVersion": version, "labelSelector": f"e2e={unique}"}
    with client.stream(tenants_path(ROOT), query=query, seconds=PATIENCE) as frames:
        replica.relay.disconnect()
        first, second = (tenants.create(labels={"e2e": unique})["metadata"]["name"] for _ in range(2))
        assert kube.client().request("DELETE", tenants_path(ROOT, first)).status == 200
        replica.relay.reconnect()
        seen = set()
        for frame in frames:
            seen.add((frame["type"], frame["object"]["metadata"]["name"]))
            if ("ADDED", second) in seen and (("ADDED", first) not in seen or ("DELETED", first) in seen):
                break
    assert ("ADDED", second) in seen
