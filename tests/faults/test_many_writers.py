"""Fifty concurrent writers: every acknowledged change is stored, and quotas are exact."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import pytest

from tests.e2e.support.clusters.cluster import ROOT, E2eCluster, tenants_path
from tests.e2e.support.http.https_client import Client
from tests.e2e.support.tenants import Tenants, manifest
from tests.faults.support.sizes import size

T = TypeVar("T")

WRITERS, QUOTA = 50, 20
MERGE = "application/merge-patch+json"


def all_at_once(call: Callable[[int], T]) -> list[T]:
    with ThreadPoolExecutor(WRITERS) as pool:
        return list(pool.map(call, range(WRITERS)))


def increase(client: Client, path: str) -> int:
    """Increases a counter by a PUT with a resourceVersion, and returns the number of conflicts until it succeeded."""
    conflicts = 0
    while True:
        tenant = client.get(path).expect(200)
        annotations = tenant["metadata"].setdefault("annotations", {})
        annotations["number"] = str(int(annotations.get("number", 0)) + 1)
        answer = client.request("PUT", path, tenant)
        if answer.status == 200:
            return conflicts
        assert answer.expect(409)["reason"] == "Conflict"
        conflicts += 1


def test_every_acknowledged_change_is_stored(cluster: E2eCluster, tenants: Tenants) -> None:
    times = size(short=1, full=5)
    client, path = cluster.client(), tenants_path(ROOT, tenants.create()["metadata"]["name"])
    conflicts = all_at_once(lambda _: sum(increase(client, path) for _ in range(times)))
    assert client.get(path).expect(200)["metadata"]["annotations"]["number"] == str(WRITERS * times)
    # without conflicts the writes were not concurrent, and the test proves nothing
    assert sum(conflicts) > 0
    print(f"{WRITERS * times} changes, {sum(conflicts)} conflicts")


def test_concurrent_patches_without_a_version_are_all_stored(cluster: E2eCluster, tenants: Tenants) -> None:
    client, path = cluster.client(), tenants_path(ROOT, tenants.create()["metadata"]["name"])
    times = size(short=1, full=5)

    def patch(number: int) -> list[int]:
        bodies = [{"metadata": {"annotations": {f"w{number}x{turn}": "written"}}} for turn in range(times)]
        return [client.request("PATCH", path, body, content_type=MERGE).status for body in bodies]

    assert {status for statuses in all_at_once(patch) for status in statuses} == {200}
    annotations = client.get(path).expect(200)["metadata"]["annotations"]
    assert {f"w{number}x{turn}" for number in range(WRITERS) for turn in range(times)} <= annotations.keys()


@pytest.mark.parametrize("_", range(size(short=1, full=10)))
def test_a_quota_for_twenty_admits_twenty_of_fifty_concurrent_creations(
    cluster: E2eCluster, tenants: Tenants, _: int
) -> None:
    parent = tenants.create_with_namespace(spec={"resourceQuotas": {"cpu": str(QUOTA)}})
    spec = {"resourceQuotas": {"cpu": "1"}}
    bodies = [manifest(tenants.new_name(parent), parent, spec=spec) for _ in range(WRITERS)]
    client, path = cluster.client(), tenants_path(parent)
    statuses = all_at_once(lambda number: client.request("POST", path, bodies[number]).status)
    assert Counter(statuses) == {201: QUOTA, 422: WRITERS - QUOTA}
    created = {item["metadata"]["name"] for item in client.get(path).expect(200)["items"]}
    assert created == {body["metadata"]["name"] for body, code in zip(bodies, statuses, strict=True) if code == 201}
