"""Watch lists: initial lists that are streamed as watch events (WIRE-J17 to WIRE-J20)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.e2e.support.clusters.cluster import ROOT, E2eCluster, tenants_path
from tests.e2e.support.tenants import Tenants

PARTIAL = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
END = "k8s.io/initial-events-end"


def watch_list_query(unique: str) -> dict[str, str]:
    return {
        "watch": "true",
        "sendInitialEvents": "true",
        "allowWatchBookmarks": "true",
        "resourceVersionMatch": "NotOlderThan",
        "labelSelector": f"e2e={unique}",
    }


def read_initial_events(frames: Iterator[dict[str, Any]]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Returns the initial events and the bookmark that ends them."""
    events: list[dict[str, Any]] = []
    for frame in frames:
        if frame["type"] == "BOOKMARK":
            return events, frame["object"]
        events.append(frame)
    raise AssertionError("the watch ended without a bookmark")


def test_the_list_comes_first_then_the_bookmark_then_changes(
    cluster: E2eCluster, tenants: Tenants, unique: str
) -> None:
    made = sorted(tenants.create(labels={"e2e": unique})["metadata"]["name"] for _ in range(3))
    with cluster.client().stream(tenants_path(ROOT), query=watch_list_query(unique)) as frames:
        events, bookmark = read_initial_events(frames)
        assert [(event["type"], event["object"]["metadata"]["name"]) for event in events] == [
            ("ADDED", name) for name in made
        ]
        assert bookmark["kind"] == "Tenant"
        assert bookmark["metadata"]["annotations"][END] == "true"
        tenants.patch(made[0], {"spec": {"etcd": True}})
        change = next(frame for frame in frames if frame["type"] != "BOOKMARK")
        assert change["type"] == "MODIFIED"
        assert int(change["object"]["metadata"]["resourceVersion"]) > int(bookmark["metadata"]["resourceVersion"])


def test_an_empty_list_is_only_a_bookmark(cluster: E2eCluster, unique: str) -> None:
    with cluster.client().stream(tenants_path(ROOT), query=watch_list_query(unique)) as frames:
        events, bookmark = read_initial_events(frames)
    assert events == []
    assert bookmark["metadata"]["annotations"][END] == "true"


def test_a_watch_list_of_metadata(cluster: E2eCluster, tenants: Tenants, unique: str) -> None:
    tenant = tenants.create(labels={"e2e": unique})
    with cluster.client().stream(
        tenants_path(ROOT), query=watch_list_query(unique), headers={"Accept": PARTIAL}
    ) as frames:
        events, bookmark = read_initial_events(frames)
    assert [event["object"]["kind"] for event in events] == ["PartialObjectMetadata"]
    assert events[0]["object"]["metadata"]["uid"] == tenant["metadata"]["uid"]
    assert "spec" not in events[0]["object"]
    assert (bookmark["kind"], bookmark["metadata"]["annotations"][END]) == ("PartialObjectMetadata", "true")


def test_a_watch_list_of_tables(cluster: E2eCluster, tenants: Tenants, unique: str) -> None:
    for _ in range(2):
        tenants.create(labels={"e2e": unique})
    with cluster.client().stream(
        tenants_path(ROOT), query=watch_list_query(unique), headers={"Accept": TABLE}
    ) as frames:
        events, bookmark = read_initial_events(frames)
    assert [bool(event["object"].get("columnDefinitions")) for event in events] == [True, False]
    assert [len(event["object"]["rows"]) for event in events] == [1, 1]
    assert bookmark["kind"] == "Table"
    assert [row["object"]["metadata"]["annotations"][END] for row in bookmark["rows"]] == ["true"]


def test_a_watch_list_equals_a_list(cluster: E2eCluster, tenants: Tenants, unique: str) -> None:
    for _ in range(2):
        tenants.create(labels={"e2e": unique})
    listed = cluster.client().get(tenants_path(ROOT), query={"labelSelector": f"e2e={unique}"}).expect(200)["items"]
    with cluster.client().stream(tenants_path(ROOT), query=watch_list_query(unique)) as frames:
        events, _ = read_initial_events(frames)
    names = {item["metadata"]["name"] for item in listed}
    assert {event["object"]["metadata"]["name"] for event in events} == names


def test_send_initial_events_requires_resource_version_match(cluster: E2eCluster) -> None:
    parameters = {"watch": "true", "sendInitialEvents": "true", "allowWatchBookmarks": "true"}
    status = cluster.client().get(tenants_path(ROOT), query=parameters).expect(422)
    assert "resourceVersionMatch" in status["message"]
