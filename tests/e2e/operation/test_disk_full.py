"""A full disk: writes fail with a 503, acknowledged writes survive, and writes succeed once there is space again."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.support.clusters.embedded import EmbeddedCluster

pytestmark = pytest.mark.faults

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
def own_embedded(tmp_path: Path) -> Iterator[EmbeddedCluster]:
    running = EmbeddedCluster(tmp_path)
    yield running
    assert running.stop() == 0


def limit_file_size(cluster: EmbeddedCluster, size: int) -> None:
    """Limits the file size of the server; the kernel fails larger writes as on a full disk."""
    hard = resource.RLIM_INFINITY
    resource.prlimit(cluster.server.pid, resource.RLIMIT_FSIZE, (size, hard))


def configmap(name: str) -> dict[str, object]:
    return {"metadata": {"name": name}, "data": {"a": "x" * 50_000}}


def test_a_full_disk_loses_no_acknowledged_write(own_embedded: EmbeddedCluster) -> None:
    client = own_embedded.client()
    client.request("POST", CONFIGMAPS, configmap("before")).expect(201)
    limit_file_size(own_embedded, (own_embedded.data / "host.db-wal").stat().st_size)
    rejected = client.request("POST", CONFIGMAPS, configmap("during"))
    assert rejected.expect(503)["message"] == "the database cannot be written"
    assert rejected.headers["Retry-After"] == "1"
    assert client.get(f"{CONFIGMAPS}/before").status == 200
    assert client.get(f"{CONFIGMAPS}/during").status == 404
    limit_file_size(own_embedded, resource.RLIM_INFINITY)
    client.request("POST", CONFIGMAPS, configmap("after")).expect(201)
    assert own_embedded.stop() == 0
    own_embedded.start()
    client = own_embedded.client()
    names = {each["metadata"]["name"] for each in client.get(CONFIGMAPS).expect(200)["items"]}
    assert {"before", "after"} <= names
    assert "during" not in names
