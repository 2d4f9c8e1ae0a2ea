"""A cluster that is unreachable, slow, broken or compacted: reads work, writes fail with a clear error, watches
survive, and afterwards the cache equals the cluster, object for object."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass

import pytest

from tests.e2e.support.clusters.cluster import PATIENCE, ROOT, E2eCluster, tenants_path
from tests.e2e.support.clusters.kube import KubeCluster
from tests.e2e.support.clusters.processes import wait_until
from tests.e2e.support.http.https_client import Response
from tests.e2e.support.http.pace import Pace
from tests.e2e.support.tenants import manifest
from tests.faults.support import faulty_proxy
from tests.faults.support.faulty_proxy import FaultyProxy
from tests.faults.support.reflector import Reflector
from tests.faults.support.server_behind_proxy import PROXIED_SERVER, RELEASES, ProxiedServer, started_proxied_server
from tests.faults.support.sizes import size

MERGE = "application/merge-patch+json"
# reads are served from memory
READ_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class FaultScenario:
    """A fault of the cluster: how it starts, which statuses a write may get meanwhile, whether reads carry a Warning
    that they may be stale, and whether the client repeats a write that gets 429, while a server lists the cluster
    anew."""

    start: Callable[[FaultyProxy], AbstractContextManager[None]]
    write_statuses: frozenset[int]
    reads_warn: bool = True
    repeats: bool = False


def injected(
    create_fault: Callable[[], faulty_proxy.RequestFault],
) -> Callable[[FaultyProxy], AbstractContextManager[None]]:
    return lambda proxy: proxy.injected(PROXIED_SERVER, create_fault())


SCENARIOS = [
    pytest.param(FaultScenario(lambda proxy: proxy.disconnected(PROXIED_SERVER), frozenset({503})), id="unreachable"),
    pytest.param(FaultScenario(injected(lambda: faulty_proxy.delay(2)), frozenset({201}), reads_warn=False), id="slow"),
    pytest.param(FaultScenario(injected(lambda: faulty_proxy.respond_with_status(429)), frozenset({429})), id="429"),
    pytest.param(
        FaultScenario(injected(lambda: faulty_proxy.respond_with_status(500)), frozenset({500, 503})), id="500"
    ),
    pytest.param(FaultScenario(injected(lambda: faulty_proxy.respond_with_status(503)), frozenset({503})), id="503"),
    pytest.param(
        FaultScenario(injected(faulty_proxy.respond_bad_gateway), frozenset({503})), id="502 of a load balancer"
    ),
    pytest.param(
        FaultScenario(lambda proxy: proxy.truncating(PROXIED_SERVER), frozenset({503})), id="truncated bodies"
    ),
    pytest.param(
        FaultScenario(injected(faulty_proxy.expire_watches), frozenset({201}), reads_warn=False, repeats=True),
        id="410 for every watch",
    ),
]


@pytest.fixture(scope="module")
def proxied(cluster: E2eCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProxiedServer]:
    identity = cluster.account if isinstance(cluster, KubeCluster) else cluster.admin
    with started_proxied_server(cluster, identity, tmp_path_factory.mktemp(PROXIED_SERVER)) as running:
        yield running


def helmrelease(name: str) -> dict[str, object]:
    """The HelmRelease of a Tenant of the root namespace."""
    application = {"kind": "Tenant", "group": "apps.cozystack.io", "name": name}
    labels = {f"apps.cozystack.io/application.{key}": value for key, value in application.items()}
    chart = {"kind": "ExternalArtifact", "name": "cozystack-tenant-application-default-tenant"}
    return {
        "apiVersion": "helm.toolkit.fluxcd.io/v2",
        "kind": "HelmRelease",
        "metadata": {"name": f"tenant-{name}", "labels": labels},
        "spec": {"chartRef": chart, "interval": "5m0s", "values": {}},
    }


def write_helmrelease(
    proxied: ProxiedServer, method: str, name: str, body: dict[str, object] | None = None
) -> Response:
    collection = f"{RELEASES}/namespaces/{ROOT}/helmreleases"
    path = collection if method == "POST" else f"{collection}/tenant-{name}"
    answer = proxied.cluster_client.request(
        method, path, body, content_type=MERGE if method == "PATCH" else "application/json"
    )
    assert answer.status in (200, 201), answer.content
    return answer


def change_everything(proxied: ProxiedServer, names: list[str]) -> None:
    """Updates the first of three releases in the cluster, deletes the second and creates the third."""
    write_helmrelease(proxied, "PATCH", names[0], {"spec": {"values": {"etcd": True}}})
    write_helmrelease(proxied, "DELETE", names[1])
    write_helmrelease(proxied, "POST", names[2], helmrelease(names[2]))


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_cache_equals_the_cluster_after_a_fault(
    proxied: ProxiedServer, unique: str, scenario: FaultScenario
) -> None:
    names = [f"{unique}{letter}" for letter in "abc"]
    for name in names[:2]:
        write_helmrelease(proxied, "POST", name, helmrelease(name))
    wait_until("the cache equals the cluster", proxied.cache_equals_cluster, seconds=PATIENCE)
    reflector = Reflector(lambda: proxied.client, tenants_path())
    try:
        wait_until("the watch has every object", lambda: reflector.state == proxied.served_tenants(), seconds=PATIENCE)
        with scenario.start(proxied.proxy):
            check_reads_and_writes(proxied, scenario, f"{unique}w", names[0])
            change_everything(proxied, names)
            time.sleep(size(short=1.5, full=30.0))
            check_reads(proxied, names[0])
            if scenario.repeats:
                check_write(proxied, scenario, f"{unique}x")
        wait_until(
            "the cache equals the cluster", proxied.cache_equals_cluster, seconds=PATIENCE, processes=[proxied.process]
        )
        assert {(ROOT, names[0]), (ROOT, names[2])} <= proxied.served_tenants().keys()
        wait_until(
            "the deleted Tenant is gone", lambda: (ROOT, names[1]) not in proxied.served_tenants(), seconds=PATIENCE
        )
        wait_until("the cache still equals the cluster", proxied.cache_equals_cluster, seconds=PATIENCE)
        wait_until("the watch has every change", lambda: reflector.state == proxied.served_tenants(), seconds=PATIENCE)
        assert reflector.inconsistencies == []
    finally:
        reflector.stop()
        for name in (names[0], names[2], f"{unique}w", f"{unique}x"):
            proxied.cluster_client.request("DELETE", f"{RELEASES}/namespaces/{ROOT}/helmreleases/tenant-{name}")
    wait_until("reads have no warning", lambda: not proxied.client.get(tenants_path(ROOT)).warnings, seconds=PATIENCE)
    assert "Traceback" not in proxied.process.log()


def check_reads_and_writes(proxied: ProxiedServer, scenario: FaultScenario, new: str, existing: str) -> None:
    if scenario.reads_warn:
        path = tenants_path(ROOT, existing)
        wait_until("reads have a warning", lambda: proxied.client.get(path).warnings, seconds=PATIENCE)
    check_reads(proxied, existing)
    check_write(proxied, scenario, new)


def check_write(proxied: ProxiedServer, scenario: FaultScenario, new: str) -> None:
    send = proxied.client.request_with_retries if scenario.repeats else proxied.client.request
    answer = send("POST", tenants_path(ROOT), manifest(new))
    assert answer.status in scenario.write_statuses, answer.content
    if answer.status != 201:
        status = answer.json()
        assert (status["kind"], status["status"]) == ("Status", "Failure")
        assert status["message"]
        # a stored object would be sent again
        assert answer.status == 500 or int(answer.headers["Retry-After"]) >= 1


def check_reads(proxied: ProxiedServer, existing: str) -> None:
    pace, started = Pace(proxied.client), time.monotonic()
    assert proxied.client.get(tenants_path(ROOT, existing)).status == 200
    assert proxied.client.get(tenants_path(ROOT)).status == 200
    assert proxied.client.get("/livez").status == 200
    elapsed = time.monotonic() - started
    assert elapsed < pace.limit(READ_SECONDS)
