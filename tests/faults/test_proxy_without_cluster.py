"""The kube-apiserver behind the proxy is killed and comes back: what clients of the proxy see meanwhile, and after."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.proxy.test_merged_lists import CONFIGMAPS, create, grant, keys
from tests.e2e.support.clusters.cluster import PATIENCE
from tests.e2e.support.clusters.kube import KubeCluster
from tests.e2e.support.clusters.processes import wait_until
from tests.e2e.support.clusters.tenant_proxy import TenantProxy
from tests.e2e.support.http.https_client import Client
from tests.e2e.support.tenants import Tenants
from tests.e2e.support.visibility import RbacObjects, WatchReader, open_watch, user_subject
from tests.faults.support.sizes import size

NAMESPACES = "/api/v1/namespaces"
# the time in which kube-apiserver starts comes on top
OUTAGE_SECONDS = size(short=5, full=30)
USER = "eve"


@pytest.fixture
def proxy(own_kube: KubeCluster, tmp_path: Path) -> Iterator[TenantProxy]:
    config = tmp_path / "proxy.yaml"
    config.write_text("namespacedKinds: [configmaps]\n")
    running = TenantProxy(own_kube, tmp_path / "proxy", f"--config={config}")
    yield running
    running.stop()


@pytest.fixture
def tenants(own_kube: KubeCluster) -> Tenants:
    """Nothing is deleted afterwards: the cluster is the test's own."""
    return Tenants(own_kube)


def test_the_proxy_outlives_the_kube_apiserver(own_kube: KubeCluster, proxy: TenantProxy, tenants: Tenants) -> None:
    """Every answer is a 503 that comes at once; the watch of Namespaces stays open and has what changed since."""
    access, client = RbacObjects(own_kube), proxy.client(USER)
    one, later = (tenants.create_with_namespace() for _ in range(2))
    create(tenants, one, "kept")
    grant(access, USER, one)
    access.bind(f"{USER}-view", one, user_subject(USER))
    own_kube.wait_until("the list has the ConfigMap", lambda: keys(client) == [(one, "kept")])
    own_kube.wait_until("the Namespace is listed", lambda: client.get(NAMESPACES).status == 200)
    with open_watch(client, NAMESPACES) as namespaces:
        own_kube.kube_apiserver.kill()
        _expect_unavailable(client, NAMESPACES, CONFIGMAPS, f"{NAMESPACES}/{one}/configmaps/kept")
        own_kube.kube_apiserver.start_again()
        own_kube.wait_until("the list is back", lambda: keys(client) == [(one, "kept")], seconds=2 * PATIENCE)
        access.bind(f"{USER}-view", later, user_subject(USER))
        WatchReader(namespaces).wait_for_event("ADDED", later)
    listed = client.get(NAMESPACES).expect(200)["items"]
    assert {one, later} <= {each["metadata"]["name"] for each in listed}


def _expect_unavailable(client: Client, *paths: str) -> None:
    """For as long as the outage is to last."""
    end = time.monotonic() + OUTAGE_SECONDS

    def is_over() -> bool:
        for path in paths:
            begun = time.monotonic()
            answer = client.get(path)
            assert answer.expect(503)["reason"] == "ServiceUnavailable"
            assert answer.headers["Retry-After"] == "1"
            assert time.monotonic() - begun < PATIENCE / 4
        assert client.get("/proxy/livez").status == 200
        return time.monotonic() > end

    wait_until("the outage has lasted long enough", is_over, seconds=2 * PATIENCE)
