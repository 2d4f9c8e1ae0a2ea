"""A kube-apiserver that hangs or restarts: reads continue, and watches miss no event."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.e2e.support.clusters.cluster import PATIENCE, ROOT, tenants_path
from tests.e2e.support.clusters.kube import KubeCluster
from tests.e2e.support.clusters.processes import wait_until
from tests.e2e.support.http.pace import Pace
from tests.e2e.support.tenants import Tenants, manifest

pytestmark = [pytest.mark.faults, pytest.mark.timeout(400)]


@contextmanager
def stalled(kube: KubeCluster) -> Iterator[None]:
    """The kernel still accepts connections, but kube-apiserver answers no request."""
    kube.kube_apiserver.signal(signal.SIGSTOP)
    try:
        yield
    finally:
        kube.kube_apiserver.signal(signal.SIGCONT)


def wait_for_cluster(kube: KubeCluster) -> None:
    client = kube.client()

    def is_serving() -> bool:
        try:
            return client.get("/readyz").status == 200 and client.get(tenants_path(ROOT)).status == 200
        except OSError:
            return False

    # kube-controller-manager exits while kube-apiserver is unreachable, so it is not watched here
    wait_until("kube-apiserver is back", is_serving, seconds=2 * PATIENCE, processes=[kube.server, kube.kube_apiserver])


def create_tenant(kube: KubeCluster, tenants: Tenants, labels: dict[str, str]) -> str:
    """Creates a Tenant and returns its name. Repeats a request that fails: what kube-apiserver had begun before it was
    stopped, such as its check that our server is available, may still fail after it has answered other requests."""
    name, client = tenants.new_name(), kube.client()
    body = manifest(name, labels=labels)
    # a request may have been executed although it failed
    wait_until(
        "a tenant is created",
        lambda: client.request("POST", tenants_path(ROOT), body).status in (201, 409),
        seconds=PATIENCE,
    )
    return name


def test_reads_continue_and_writes_fail_while_kube_apiserver_hangs(own_kube: KubeCluster, unique: str) -> None:
    kube, tenants = own_kube, Tenants(own_kube)
    name = tenants.create()["metadata"]["name"]
    direct = kube.direct_client()
    path = tenants_path(ROOT, name)
    wait_until("our server shows the tenant", lambda: direct.get(path).status == 200, seconds=PATIENCE)
    pace = Pace(direct)
    with stalled(kube):
        started = time.monotonic()
        assert direct.get(path).expect(200)["metadata"]["name"] == name
        listed = direct.get(tenants_path(ROOT)).expect(200)["items"]
        assert name in {item["metadata"]["name"] for item in listed}
        # reads are served from memory and are not delayed
        elapsed = time.monotonic() - started
        assert elapsed < pace.limit(5)
        rejected = direct.request("POST", tenants_path(ROOT), manifest(tenants.new_name()), seconds=60)
        # the code depends on whose timeout expires first
        assert rejected.status in (503, 504), rejected.content
        assert rejected.json()["kind"] == "Status"
        assert direct.get("/livez").status == 200
    wait_for_cluster(kube)
    made = create_tenant(kube, tenants, {"e2e": unique})
    wait_until("our server shows the new tenant", lambda: direct.get(tenants_path(ROOT, made)).status == 200)


def test_a_watch_survives_a_restart_of_kube_apiserver_without_missing_events(
    own_kube: KubeCluster, unique: str
) -> None:
    kube, tenants = own_kube, Tenants(own_kube)
    direct = kube.direct_client()
    labels = {"e2e": unique}
    first = tenants.create(labels=labels)["metadata"]["name"]
    wait_until(
        "our server shows the tenant", lambda: direct.get(tenants_path(ROOT, first)).status == 200, seconds=PATIENCE
    )
    version = direct.get(tenants_path(ROOT)).expect(200)["metadata"]["resourceVersion"]
    query = {"watch": "true", "resourceVersion": version, "labelSelector": f"e2e={unique}"}
    with direct.stream(tenants_path(ROOT), query=query, seconds=2 * PATIENCE) as frames:
        kube.kube_apiserver.kill()
        wait_until("reads have a warning", lambda: direct.get(tenants_path(ROOT, first)).warnings, seconds=PATIENCE)
        rejected = direct.request("POST", tenants_path(ROOT), manifest(tenants.new_name()))
        status: dict[str, Any] = rejected.expect(503)
        assert status["reason"] == "ServiceUnavailable"
        assert int(rejected.headers["Retry-After"]) >= 1
        kube.kube_apiserver.restart()
        wait_for_cluster(kube)
        second = create_tenant(kube, tenants, labels)
        tenants.patch(first, {"metadata": {"annotations": {"e2e": "back"}}})
        # the watch was never interrupted and misses no event
        expected = {(second, None), (first, "back")}
        for frame in frames:
            metadata = frame["object"]["metadata"]
            expected.discard((metadata["name"], (metadata.get("annotations") or {}).get("e2e")))
            if not expected:
                break
    assert not expected
    wait_until("reads have no warning", lambda: not direct.get(tenants_path(ROOT, second)).warnings, seconds=PATIENCE)
    assert not kube.server.ended
