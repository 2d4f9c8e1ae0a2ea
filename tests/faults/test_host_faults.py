"""A host that is away, slow, broken or forgetful: reads go on, writes fail clearly, watches survive, and afterwards
the cache equals the host, object for object."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass

import pytest

from tests.e2e.support.clusters import PATIENCE, ROOT, E2eCluster, KubeCluster, tenants_path
from tests.e2e.support.https_client import Response
from tests.e2e.support.processes import wait_until
from tests.e2e.support.tenants import manifest
from tests.faults import faulty_proxy as weather
from tests.faults.faulty_proxy import SpoilingProxy
from tests.faults.reflector import Reflector
from tests.faults.server_behind_proxy import DOOR, RELEASES, Front, standing_before
from tests.faults.sizes import size

MERGE = "application/merge-patch+json"
# reads come from memory, whatever the host does
READ_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Fault:
    """`writes` are the codes that a write may be answered; `warns` tells whether reads say that they may be old."""

    spoil: Callable[[SpoilingProxy], AbstractContextManager[None]]
    writes: frozenset[int]
    warns: bool = True


def spoilt(fault: Callable[[], weather.Fault]) -> Callable[[SpoilingProxy], AbstractContextManager[None]]:
    return lambda proxy: proxy.spoilt(DOOR, fault())


FAULTS = [
    pytest.param(Fault(lambda proxy: proxy.away(DOOR), frozenset({503})), id="away"),
    pytest.param(Fault(spoilt(lambda: weather.slow(2)), frozenset({201}), warns=False), id="slow"),
    pytest.param(Fault(spoilt(lambda: weather.answering(429)), frozenset({429})), id="429"),
    pytest.param(Fault(spoilt(lambda: weather.answering(500)), frozenset({500, 503})), id="500"),
    pytest.param(Fault(spoilt(lambda: weather.answering(503)), frozenset({503})), id="503"),
    pytest.param(Fault(spoilt(weather.no_kubernetes), frozenset({503})), id="no Kubernetes"),
    pytest.param(Fault(lambda proxy: proxy.truncated(DOOR), frozenset({503})), id="truncated bodies"),
    pytest.param(Fault(spoilt(weather.forgetful), frozenset({201}), warns=False), id="410 at any time"),
]


@pytest.fixture(scope="module")
def front(cluster: E2eCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Front]:
    identity = cluster.account if isinstance(cluster, KubeCluster) else cluster.admin
    with standing_before(cluster, identity, tmp_path_factory.mktemp("front")) as made:
        yield made


def release(name: str) -> dict[str, object]:
    application = {"kind": "Tenant", "group": "apps.cozystack.io", "name": name}
    labels = {f"apps.cozystack.io/application.{key}": value for key, value in application.items()}
    chart = {"kind": "ExternalArtifact", "name": "cozystack-tenant-application-default-tenant"}
    return {
        "apiVersion": "helm.toolkit.fluxcd.io/v2",
        "kind": "HelmRelease",
        "metadata": {"name": f"tenant-{name}", "labels": labels},
        "spec": {"chartRef": chart, "interval": "5m0s", "values": {}},
    }


def at_cluster(front: Front, method: str, name: str, body: dict[str, object] | None = None) -> Response:
    collection = f"{RELEASES}/namespaces/{ROOT}/helmreleases"
    path = collection if method == "POST" else f"{collection}/tenant-{name}"
    answer = front.host.request(method, path, body, content_type=MERGE if method == "PATCH" else "application/json")
    assert answer.status in (200, 201), answer.content
    return answer


def change_everything(front: Front, names: list[str]) -> None:
    """One of three is changed at the host, one is deleted, one is new."""
    at_cluster(front, "PATCH", names[0], {"spec": {"values": {"etcd": True}}})
    at_cluster(front, "DELETE", names[1])
    at_cluster(front, "POST", names[2], release(names[2]))


@pytest.mark.parametrize("fault", FAULTS)
def test_the_cache_equals_the_host_afterwards(front: Front, unique: str, fault: Fault) -> None:
    names = [f"{unique}{letter}" for letter in "abc"]
    for name in names[:2]:
        at_cluster(front, "POST", name, release(name))
    wait_until("the cache equals the host", front.agrees, seconds=PATIENCE)
    watching = Reflector(lambda: front.client, tenants_path())
    try:
        wait_until("the watch has it all", lambda: watching.state == front.served(), seconds=PATIENCE)
        with fault.spoil(front.proxy):
            check_service(front, fault, f"{unique}w", names[0])
            change_everything(front, names)
            time.sleep(size(short=1.5, full=30.0))
            check_reads(front, names[0])
        wait_until("the cache equals the host", front.agrees, seconds=PATIENCE, processes=[front.process])
        assert {(ROOT, names[0]), (ROOT, names[2])} <= front.served().keys()
        wait_until("what was deleted is gone", lambda: (ROOT, names[1]) not in front.served(), seconds=PATIENCE)
        wait_until("the cache equals the host", front.agrees, seconds=PATIENCE)
        wait_until("the watch has it all", lambda: watching.state == front.served(), seconds=PATIENCE)
        assert watching.contradictions == []
    finally:
        watching.stop()
        for name in (names[0], names[2], f"{unique}w"):
            front.host.request("DELETE", f"{RELEASES}/namespaces/{ROOT}/helmreleases/tenant-{name}")
    wait_until("reads come without a warning", lambda: not front.client.get(tenants_path(ROOT)).warnings)
    assert "Traceback" not in front.process.log()


def check_service(front: Front, fault: Fault, fresh: str, there: str) -> None:
    if fault.warns:
        path = tenants_path(ROOT, there)
        wait_until("reads come with a warning", lambda: front.client.get(path).warnings, seconds=PATIENCE)
    check_reads(front, there)
    written = front.client.request("POST", tenants_path(ROOT), manifest(fresh))
    assert written.status in fault.writes, written.content
    if written.status != 201:
        status = written.json()
        assert (status["kind"], status["status"]) == ("Status", "Failure")
        assert status["message"]
        assert written.status == 500 or int(written.headers["Retry-After"]) >= 1


def check_reads(front: Front, there: str) -> None:
    started = time.monotonic()
    assert front.client.get(tenants_path(ROOT, there)).status == 200
    assert front.client.get(tenants_path(ROOT)).status == 200
    assert front.client.get("/livez").status == 200
    assert time.monotonic() - started < READ_SECONDS
