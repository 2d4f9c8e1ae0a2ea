"""The cluster is gone for a while: what the clients of the proxy see, and that they miss nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from tests.e2e.proxy.conftest import CONFIG
from tests.e2e.proxy.test_merged_lists import CONFIGMAPS, create, grant, keys
from tests.e2e.proxy.test_own_metrics import let_read_metrics
from tests.e2e.support.clusters import credentials
from tests.e2e.support.clusters.cluster import E2eCluster
from tests.e2e.support.clusters.tenant_proxy import ACCOUNT, TenantProxy
from tests.e2e.support.http.https_client import Client
from tests.e2e.support.http.relay import Relay
from tests.e2e.support.tenants import Tenants
from tests.e2e.support.visibility import ROLEBINDINGS, RbacObjects, WatchReader, open_watch, user_subject

NAMESPACES = "/api/v1/namespaces"


@dataclass(frozen=True, slots=True)
class CutProxy:
    """A proxy that reaches the cluster through a relay."""

    proxy: TenantProxy
    relay: Relay


@pytest.fixture
def cut(cluster: E2eCluster, tmp_path: Path) -> Iterator[CutProxy]:
    relay = Relay(int(cluster.url.rpartition(":")[2]))
    document = yaml.load(cluster.identity(ACCOUNT).kubeconfig.read_text(), Loader=yaml.CSafeLoader)
    document["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{relay.port}"
    account, config = tmp_path / "account", tmp_path / "config.yaml"
    account.write_text(yaml.safe_dump(document))
    config.write_text(CONFIG)
    proxy = TenantProxy(cluster, tmp_path, f"--config={config}", account=credentials.from_kubeconfig(account))
    yield CutProxy(proxy, relay)
    proxy.stop()
    relay.close()


def test_clients_miss_nothing_of_an_outage(
    cluster: E2eCluster, cut: CutProxy, tenants: Tenants, access: RbacObjects, unique: str
) -> None:
    """Requests get a 503 that says when to retry. A merged watch ends, as that of a kube-apiserver does: kubectl exits,
    and an informer goes on from what it has. The watch of the namespaces stays open."""
    one, revoked, granted = (tenants.create_with_namespace() for _ in range(3))
    create(tenants, one, "kept", "deleted")
    create(tenants, revoked, "a")
    create(tenants, granted, "a")
    for namespace in (one, revoked):
        grant(access, unique, namespace)
        access.bind(f"{unique}-view", namespace, user_subject(unique))
    client = cut.proxy.client(unique)
    before = sorted([(one, "deleted"), (one, "kept"), (revoked, "a")])
    cluster.wait_until("both are listed", lambda: keys(client) == before)
    listed = client.get(CONFIGMAPS, query={"labelSelector": "for=test"}).expect(200)
    query = {"watch": "true", "labelSelector": "for=test", "resourceVersion": listed["metadata"]["resourceVersion"]}
    kubectl = cut.proxy.start_kubectl("get", "configmaps", "-A", "-w", "-l", "for=test", user=unique)
    cluster.wait_until("kubectl shows all", lambda: kubectl.log().count("\n") == 1 + len(before))
    with client.stream(CONFIGMAPS, query=query) as merged, open_watch(client, NAMESPACES) as namespaces:
        cut.relay.disconnect()
        _expect_unavailable(client, CONFIGMAPS, NAMESPACES, f"{NAMESPACES}/{one}/configmaps/kept")
        cluster.wait_until("kubectl exits", lambda: kubectl.ended)
        assert list(merged) == []
        tenants.client.request("DELETE", f"{NAMESPACES}/{one}/configmaps/deleted").expect(200)
        create(tenants, one, "created")
        access.delete(ROLEBINDINGS, unique, revoked)
        grant(access, unique, granted)
        access.bind(f"{unique}-view", granted, user_subject(unique))
        cut.relay.reconnect()
        cluster.wait_until("the cluster is back", lambda: keys(client) is not None)
        WatchReader(namespaces).wait_for_event("ADDED", granted)
    with client.stream(CONFIGMAPS, query=query) as merged:
        expected = {
            *(("DELETED", one, "deleted"), ("ADDED", one, "created")),
            *(("DELETED", revoked, "a"), ("ADDED", granted, "a")),
        }
        for frame in merged:
            metadata = frame["object"]["metadata"]
            expected.discard((frame["type"], metadata["namespace"], metadata["name"]))
            if not expected:
                break
    assert expected == set()


def test_readyz_says_that_the_cluster_is_gone(
    cluster: E2eCluster, cut: CutProxy, access: RbacObjects, unique: str
) -> None:
    """As a note: the proxy stays ready, so that it answers with a 503 that says when to retry."""
    let_read_metrics(access, unique)
    client = cut.proxy.client(unique)
    cluster.wait_until("the metrics are readable", lambda: client.get("/proxy/metrics").status == 200)

    def cluster_line() -> str:
        lines = client.get("/proxy/readyz", query={"verbose": ""}).content.decode().splitlines()
        return next(line for line in lines if "]cluster" in line)

    assert cluster_line() == "[+]cluster ok"
    cut.relay.disconnect()
    cluster.wait_until("the cluster is missed", lambda: "namespaces" in cluster_line())
    assert cluster_line().startswith("[+]cluster ok: no answer at present about ")
    cut.relay.reconnect()
    cluster.wait_until("the cluster is back", lambda: cluster_line() == "[+]cluster ok")


def _expect_unavailable(client: Client, *paths: str) -> None:
    for path in paths:
        answer = client.get(path)
        assert answer.expect(503)["reason"] == "ServiceUnavailable"
        assert answer.headers["Retry-After"] == "1"
    assert client.get("/proxy/livez").status == 200
