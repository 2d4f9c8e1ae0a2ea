"""Headers for browsers and metrics for dashboards (WIRE-I14, WIRE-I22)."""

from __future__ import annotations

import pytest

from tests.e2e.support.clusters.cluster import ROOT, E2eCluster, tenants_path
from tests.e2e.support.http.https_client import Client


@pytest.fixture
def client(cluster: E2eCluster) -> Client:
    """A client for our own server."""
    return cluster.direct_client()


def test_responses_carry_no_cors_headers(client: Client) -> None:
    origin = {"Origin": "https://example.org"}
    preflight = {**origin, "Access-Control-Request-Method": "GET"}
    answers = [
        client.get(tenants_path(ROOT), headers=origin),
        client.get("/healthz", headers=origin),
        client.request("OPTIONS", tenants_path(ROOT), headers=preflight),
    ]
    assert [answer.status for answer in answers] == [200, 200, 405]
    for answer in answers:
        names = {name.lower() for name in answer.headers}
        assert "strict-transport-security" not in names
        assert not [name for name in names if name.startswith("access-control-")]


def test_every_metric_series_belongs_to_a_described_family(client: Client) -> None:
    client.get(tenants_path(ROOT)).expect(200)
    answer = client.get("/metrics")
    assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    lines = answer.content.decode().splitlines()
    described = {line.split()[2] for line in lines if line.startswith("# TYPE ")}
    series = {line.partition("{")[0].partition(" ")[0] for line in lines if line and not line.startswith("#")}
    assert "apiserver_request_total" in series
    assert "apiserver_tls_handshake_errors_total" in series
    assert "apiserver_event_loop_longest_stall_seconds" in series
    assert not [name for name in series | described if name.endswith("_created")]
    for name in series:
        family = name
        for suffix in ("_bucket", "_sum", "_count"):
            family = family.removesuffix(suffix) if family not in described else family
        assert family in described, name


def test_a_request_is_counted_once_under_all_of_its_labels(client: Client, unique: str) -> None:
    # of the status, which no garbage collector reads
    labels = (
        'code="404",component="apiserver",dry_run="",group="apps.cozystack.io",resource="tenants",'
        'scope="resource",subresource="status",verb="GET",version="v1alpha1"'
    )

    def counted() -> float:
        for line in client.get("/metrics").content.decode().splitlines():
            name, _, rest = line.partition("{")
            inside, _, value = rest.rpartition("} ")
            if name == "apiserver_request_total" and sorted(inside.split(",")) == sorted(labels.split(",")):
                return float(value)
        return 0.0

    before = counted()
    client.get(tenants_path(ROOT, unique, "status")).expect(404)
    assert counted() == before + 1
