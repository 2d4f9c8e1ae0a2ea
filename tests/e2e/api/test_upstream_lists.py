"""Upstream's tests of lists and watch lists with typed, metadata and table clients (WIRE-J10, WIRE-J11, WIRE-J17 to
WIRE-J20)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.support.clusters.cluster import E2eCluster, tenants_path
from tests.e2e.support.tenants import Object, Tenants

COUNT = 20
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
# the Accept headers of client-go's metadata client
PARTIAL = (
    "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,"
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
)
PARTIAL_LIST = PARTIAL.replace("as=PartialObjectMetadata;", "as=PartialObjectMetadataList;")
# the first request of a reflector of client-go 1.35
WATCH_LIST = {
    "watch": "true",
    "sendInitialEvents": "true",
    "allowWatchBookmarks": "true",
    "resourceVersionMatch": "NotOlderThan",
    "timeoutSeconds": "397",
}
END = "k8s.io/initial-events-end"


def read_initial_events(frames: Iterator[Object]) -> tuple[list[Object], Object]:
    """Returns the initial objects and the bookmark that ends them."""
    added: list[Object] = []
    for frame in frames:
        if frame["type"] == "BOOKMARK":
            return added, frame["object"]
        assert frame["type"] == "ADDED", frame
        added.append(frame["object"])
    raise AssertionError("the watch ended without a bookmark")


@pytest.fixture(scope="module")
def workload(module_tenants: Tenants) -> str:
    """A namespace with COUNT Tenants that the reconciler will not write any more, not even after a changed label."""
    namespace = module_tenants.create_with_namespace()
    for name in [module_tenants.create(namespace)["metadata"]["name"] for _ in range(COUNT)]:
        module_tenants.wait_until_settled(name, namespace)
    return namespace


def names(objects: list[Object]) -> list[str]:
    return [each["metadata"]["name"] for each in objects]


def test_repeated_paginated_lists_agree(cluster: E2eCluster, workload: str) -> None:
    for _ in range(3):
        found: list[Object] = []
        query: dict[str, Any] = {"limit": 7}
        versions = set()
        while True:
            page = cluster.client().get(tenants_path(workload), query=query).expect(200)
            found += page["items"]
            metadata = page["metadata"]
            versions.add(metadata["resourceVersion"])
            assert len(page["items"]) <= 7
            assert ("remainingItemCount" in metadata) == bool(metadata.get("continue"))
            assert metadata.get("remainingItemCount", 0) + len(found) == COUNT
            if not metadata.get("continue"):
                break
            query["continue"] = metadata["continue"]
        assert len(versions) == 1
        assert names(found) == sorted(names(found))


def test_a_limit_above_the_number_of_objects_returns_all(cluster: E2eCluster, workload: str) -> None:
    page = cluster.client().get(tenants_path(workload), query={"limit": COUNT + 1}).expect(200)
    assert len(page["items"]) == COUNT
    assert {"continue", "remainingItemCount"}.isdisjoint(page["metadata"])


def test_typed_and_metadata_lists_agree(cluster: E2eCluster, workload: str) -> None:
    client = cluster.client()
    whole = client.get(tenants_path(workload)).expect(200)
    assert whole["kind"] == "TenantList"
    assert len(whole["items"]) == COUNT
    partial = client.get(tenants_path(workload), headers={"Accept": PARTIAL_LIST})
    assert partial.headers["Content-Type"] == "application/json"
    assert partial.json()["kind"] == "PartialObjectMetadataList"
    each = [
        client.get(tenants_path(workload, name), headers={"Accept": PARTIAL}).expect(200)
        for name in names(whole["items"])
    ]
    assert partial.json()["items"] == each
    assert [item["metadata"] for item in each] == [item["metadata"] for item in whole["items"]]


def test_an_informer_can_start_with_a_watch_list(cluster: E2eCluster, workload: str) -> None:
    client = cluster.client()
    listed = client.get(tenants_path(workload)).expect(200)
    with client.stream(tenants_path(workload), query=WATCH_LIST) as frames:
        added, bookmark = read_initial_events(frames)
        assert added == listed["items"]
        assert (bookmark["kind"], bookmark["apiVersion"]) == ("Tenant", "apps.cozystack.io/v1alpha1")
        assert bookmark["metadata"]["annotations"] == {END: "true"}
        assert int(bookmark["metadata"]["resourceVersion"]) >= int(listed["metadata"]["resourceVersion"])
        path, body = tenants_path(workload, names(added)[0]), {"metadata": {"labels": {"a": "b"}}}
        changed = client.request("PATCH", path, body, content_type="application/merge-patch+json").expect(200)
        update = next(frame for frame in frames if frame["type"] != "BOOKMARK")
    assert (update["type"], update["object"]) == ("MODIFIED", changed)


def test_a_metadata_informer_can_start_with_a_watch_list(cluster: E2eCluster, workload: str) -> None:
    client = cluster.client()
    listed = client.get(tenants_path(workload), headers={"Accept": PARTIAL_LIST}).expect(200)
    accept = {"Accept": PARTIAL}
    with client.stream(tenants_path(workload), query=WATCH_LIST, headers=accept) as frames:
        added, bookmark = read_initial_events(frames)
    assert added == listed["items"]
    assert (bookmark["kind"], bookmark["apiVersion"]) == ("PartialObjectMetadata", "meta.k8s.io/v1")
    assert bookmark["metadata"]["annotations"] == {END: "true"}


def test_a_watch_list_of_tables_matches_the_tables_of_single_objects(cluster: E2eCluster, workload: str) -> None:
    client, accept = cluster.client(), {"Accept": TABLE}
    with client.stream(tenants_path(workload), query=WATCH_LIST, headers=accept) as frames:
        added, bookmark = read_initial_events(frames)
    assert [bool(table["columnDefinitions"]) for table in added] == [True] + [False] * (COUNT - 1)
    age = [column["name"] for column in added[0]["columnDefinitions"]].index("Age")
    for table in added:
        name = table["rows"][0]["cells"][0]
        single = client.get(tenants_path(workload, name), headers=accept).expect(200)
        for each in (table, single):
            each["rows"][0]["cells"][age] = ""
        assert {**single, "columnDefinitions": None} == {**table, "columnDefinitions": None}
    assert bookmark["kind"] == "Table"
    [row] = bookmark["rows"]
    assert row["object"]["metadata"]["annotations"] == {END: "true"}
