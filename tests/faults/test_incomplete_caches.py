"""Writes while a server has not listed yet what it judges them by: at its start, and after it has missed events."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.support.clusters.cluster import PATIENCE, ROOT, E2eCluster, tenants_path
from tests.e2e.support.clusters.credentials import Identity
from tests.e2e.support.clusters.kube import KubeCluster
from tests.e2e.support.clusters.processes import wait_until
from tests.e2e.support.http.https_client import Response
from tests.e2e.support.tenants import manifest
from tests.faults.support.server_behind_proxy import PROXIED_SERVER, RELEASES, ProxiedServer, started_proxied_server
from tests.faults.test_cluster_faults import helmrelease

JUDGED_BY = [
    "helmreleases",
    "namespaces",
    "validatingadmissionpolicies",
    "validatingadmissionpolicybindings",
    "mutatingwebhookconfigurations",
    "validatingwebhookconfigurations",
]


@pytest.fixture
def identity(cluster: E2eCluster) -> Identity:
    return cluster.account if isinstance(cluster, KubeCluster) else cluster.admin


@pytest.fixture
def taken_host(cluster: E2eCluster, unique: str) -> Iterator[str]:
    """The host of a Tenant in the cluster that no server of ours has admitted."""
    name, host = f"{unique}holder", f"{unique}.example.net"
    release = helmrelease(name)
    release["spec"] = {**release["spec"], "values": {"host": host}}  # type: ignore[dict-item]
    collection = f"{RELEASES}/namespaces/{ROOT}/helmreleases"
    cluster.client().request("POST", collection, release).expect(201)
    yield host
    cluster.client().request("DELETE", f"{collection}/tenant-{name}")


def assert_must_retry(answer: Response) -> None:
    status = answer.expect(429)
    assert (status["reason"], status["message"]) == ("TooManyRequests", "storage is (re)initializing")
    assert answer.headers["Retry-After"] == "1"


@pytest.mark.parametrize("plural", JUDGED_BY)
def test_writes_get_429_until_a_starting_server_has_listed_what_it_judges_by(
    cluster: E2eCluster, identity: Identity, tmp_path: Path, unique: str, plural: str
) -> None:
    with started_proxied_server(cluster, identity, tmp_path, withheld=plural) as starting:
        path, dry = tenants_path(ROOT), {"dryRun": "All"}
        assert_must_retry(starting.client.request("POST", path, manifest(unique), query=dry))
        assert_must_retry(starting.client.request("DELETE", f"{path}/root", query=dry))
        assert starting.client.get("/readyz").status == 500


def test_no_host_is_given_away_while_missed_events_are_listed(
    cluster: E2eCluster, identity: Identity, tmp_path: Path, unique: str, request: pytest.FixtureRequest
) -> None:
    def create(server: ProxiedServer) -> Response:
        return server.client.request("POST", tenants_path(ROOT), manifest(unique, spec={"host": host}))

    with started_proxied_server(cluster, identity, tmp_path) as server:
        with server.proxy.withholding(PROXIED_SERVER, "helmreleases"):
            wait_until("Tenants are listed again", lambda: "" in server.proxy.held, seconds=PATIENCE)
            host = request.getfixturevalue("taken_host")
            assert_must_retry(create(server))
            assert server.client.get(tenants_path(ROOT)).status == 200
        wait_until("the write is judged", lambda: create(server).status != 429, seconds=PATIENCE)
        body = create(server).expect(422)
    assert [(cause["field"], cause["reason"]) for cause in body["details"]["causes"]] == [
        ("spec.host", "FieldValueDuplicate")
    ]
