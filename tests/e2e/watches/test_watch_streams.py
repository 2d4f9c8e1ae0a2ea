"""Watches: delivered events, their order, and resuming after an interruption (WIRE-J31 to WIRE-J35)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.support.clusters.cluster import ROOT, E2eCluster, tenants_path
from tests.e2e.support.http.https_client import read_frames_until
from tests.e2e.support.tenants import Tenants

Frame = dict[str, Any]
MERGE = "application/merge-patch+json"


def relabel(tenants: Tenants, name: str, **labels: str | None) -> Frame:
    return tenants.patch(name, {"metadata": {"labels": labels}})


def next_events(frames: Iterator[Frame], count: int) -> list[tuple[str, str]]:
    """Returns type and name of the next events, without bookmarks."""
    seen: list[tuple[str, str]] = []
    while len(seen) < count:
        frame = next(frames)
        assert frame["type"] != "ERROR", frame
        if frame["type"] != "BOOKMARK":
            seen.append((frame["type"], frame["object"]["metadata"]["name"]))
    return seen


def delete(cluster: E2eCluster, name: str) -> None:
    assert cluster.client().request("DELETE", tenants_path(ROOT, name)).status == 200


def current_version(cluster: E2eCluster) -> str:
    version: str = cluster.client().get(tenants_path(ROOT)).expect(200)["metadata"]["resourceVersion"]
    return version


def watch(cluster: E2eCluster, selector: str, version: str) -> Any:
    query = {"watch": "true", "labelSelector": selector, "resourceVersion": version}
    return cluster.client().stream(tenants_path(ROOT), query=query)


def test_each_watch_gets_the_events_that_its_selector_matches(
    cluster: E2eCluster, tenants: Tenants, unique: str
) -> None:
    start = current_version(cluster)
    selectors = f"e2e={unique}a", f"e2e={unique}b", f"e2e in ({unique}a,{unique}b)"
    with (
        watch(cluster, selectors[0], start) as a,
        watch(cluster, selectors[1], start) as b,
        watch(cluster, selectors[2], start) as both,
    ):
        first = tenants.create(labels={"e2e": f"{unique}a"})["metadata"]["name"]
        tenants.patch(first, {"spec": {"etcd": True}})
        second = tenants.create(labels={"e2e": f"{unique}b"})["metadata"]["name"]
        assert ("ADDED", first) in next_events(a, 2)
        assert next_events(b, 1) == [("ADDED", second)]
        seen = next_events(both, 3)
        assert seen[0] == ("ADDED", first)
        assert ("MODIFIED", first) in seen


def test_an_object_that_leaves_the_selection_is_deleted_and_added_when_it_returns(
    cluster: E2eCluster, tenants: Tenants, unique: str
) -> None:
    name = tenants.create(labels={"e2e": unique})["metadata"]["name"]
    start = current_version(cluster)
    with watch(cluster, f"e2e={unique},out!=yes", start) as frames:
        relabel(tenants, name, out="yes")
        tenants.patch(name, {"spec": {"etcd": True}})
        relabel(tenants, name, out=None)
        seen = read_frames_until(frames, "ADDED")
    kinds = [frame["type"] for frame in seen]
    assert kinds[-2:] == ["DELETED", "ADDED"]
    assert seen[-1]["object"]["spec"]["etcd"] is True


def test_a_watch_resumes_from_the_last_resource_version(cluster: E2eCluster, tenants: Tenants, unique: str) -> None:
    name = tenants.create(labels={"e2e": unique})["metadata"]["name"]
    changed = tenants.patch(name, {"metadata": {"annotations": {"step": "1"}}})
    tenants.patch(name, {"metadata": {"annotations": {"step": "2"}}})
    delete(cluster, name)
    with watch(cluster, f"e2e={unique}", changed["metadata"]["resourceVersion"]) as frames:
        seen = read_frames_until(frames, "DELETED")
    steps = [frame["object"]["metadata"]["annotations"]["step"] for frame in seen]
    # status updates of the reconciler may come in between
    assert steps == sorted(steps)
    assert ("MODIFIED", "2") in [(frame["type"], step) for frame, step in zip(seen, steps, strict=True)]


def test_a_delete_event_shows_the_last_state(cluster: E2eCluster, tenants: Tenants, unique: str) -> None:
    tenant = tenants.create(labels={"e2e": unique}, spec={"etcd": True})
    start = current_version(cluster)
    delete(cluster, tenant["metadata"]["name"])
    with watch(cluster, f"e2e={unique}", start) as frames:
        last = read_frames_until(frames, "DELETED")[-1]["object"]
    assert last["spec"]["etcd"] is True
    assert last["metadata"]["uid"] == tenant["metadata"]["uid"]
    assert int(last["metadata"]["resourceVersion"]) > int(start)


def test_watches_from_successive_versions_agree(cluster: E2eCluster, tenants: Tenants, unique: str) -> None:
    name = tenants.create(labels={"e2e": unique})["metadata"]["name"]
    versions = []
    for step in range(6):
        changed = tenants.patch(name, {"metadata": {"annotations": {"step": str(step)}}})
        versions.append(changed["metadata"]["resourceVersion"])
    delete(cluster, name)
    versions_seen = []
    for version in versions:
        with watch(cluster, f"e2e={unique}", version) as frames:
            versions_seen.append(
                [frame["object"]["metadata"]["resourceVersion"] for frame in read_frames_until(frames, "DELETED")]
            )
    whole = versions_seen[0]
    assert all(tail == whole[-len(tail) :] for tail in versions_seen)
    assert len(whole) > len(versions_seen[-1])


def test_a_watch_without_a_version_begins_with_the_existing_objects(
    cluster: E2eCluster, tenants: Tenants, unique: str
) -> None:
    name = tenants.create(labels={"e2e": unique})["metadata"]["name"]
    with watch(cluster, f"e2e={unique}", "") as frames:
        assert next_events(frames, 1) == [("ADDED", name)]


def test_one_object_can_be_watched_by_its_name(cluster: E2eCluster, tenants: Tenants) -> None:
    name, other = (tenants.create()["metadata"]["name"] for _ in range(2))
    query = {"watch": "true", "fieldSelector": f"metadata.name={name}", "resourceVersion": current_version(cluster)}
    with cluster.client().stream(tenants_path(ROOT), query=query) as frames:
        tenants.patch(other, {"spec": {"etcd": True}})
        tenants.patch(name, {"spec": {"etcd": True}})
        assert next_events(frames, 1) == [("MODIFIED", name)]


@pytest.mark.parametrize("version", ["1"])
def test_a_compacted_resource_version_is_expired(cluster: E2eCluster, version: str) -> None:
    query = {"watch": "true", "resourceVersion": version, "timeoutSeconds": 5}
    answer = cluster.client().get(tenants_path(ROOT), query=query)
    if answer.status == 200:
        frame = answer.json()
        assert (frame["type"], frame["object"]["code"], frame["object"]["reason"]) == ("ERROR", 410, "Expired")
    else:
        assert answer.expect(410)["reason"] == "Expired"


def test_a_watch_ends_at_its_timeout(cluster: E2eCluster) -> None:
    query = {"watch": "true", "resourceVersion": current_version(cluster), "timeoutSeconds": 1}
    with cluster.client().stream(tenants_path(ROOT), query=query) as frames:
        assert [frame["type"] for frame in frames if frame["type"] == "ERROR"] == []
