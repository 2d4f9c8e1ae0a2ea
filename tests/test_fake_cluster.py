"""The fake cluster behaves like a real one, because many tests depend on it."""

from __future__ import annotations

import pytest

from apiserver.meta import errors
from apiserver.patch.media_types import MERGE_PATCH
from registry.cluster.interface import CONFIGMAPS, ClusterUnreachable
from tests.fake_cluster import FakeCluster


def configmap(name: str, **metadata: object) -> dict[str, object]:
    return {"metadata": {"name": name, "namespace": "default", **metadata}}


async def test_a_stale_update_is_a_conflict(cluster: FakeCluster) -> None:
    first = await cluster.create(CONFIGMAPS, configmap("a"))
    await cluster.update(CONFIGMAPS, {**first, "data": {"k": "1"}})
    with pytest.raises(errors.Conflict):
        await cluster.update(CONFIGMAPS, {**first, "data": {"k": "2"}})


async def test_a_dry_run_stores_nothing_and_is_recorded(cluster: FakeCluster) -> None:
    await cluster.create(CONFIGMAPS, configmap("a"), dry_run=True)
    assert cluster.peek(CONFIGMAPS, "default", "a") is None
    assert [write.dry_run for write in cluster.writes] == [True]


async def test_an_object_is_deleted_when_its_last_finalizer_is_removed(cluster: FakeCluster) -> None:
    cluster.add(CONFIGMAPS, configmap("a", finalizers=["example.org/keep"]))
    await cluster.delete(CONFIGMAPS, "default", "a")
    terminating = await cluster.get(CONFIGMAPS, "default", "a")
    assert terminating["metadata"]["deletionTimestamp"]
    await cluster.patch(CONFIGMAPS, "default", "a", {"metadata": {"finalizers": None}}, content_type=MERGE_PATCH)
    assert cluster.peek(CONFIGMAPS, "default", "a") is None


async def test_an_object_that_no_longer_matches_the_selector_is_deleted_in_the_watch(cluster: FakeCluster) -> None:
    cluster.add(CONFIGMAPS, configmap("a", labels={"team": "x"}))
    start = str(cluster.rv)
    body = {"metadata": {"labels": {"team": "y"}}}
    await cluster.patch(CONFIGMAPS, "default", "a", body, content_type=MERGE_PATCH)
    events = cluster.watch(CONFIGMAPS, resource_version=start, label_selector="team=x")
    event = await anext(events)
    assert (event.type, event.object["metadata"]["name"]) == ("DELETED", "a")


async def test_a_watch_from_a_compacted_version_is_expired(cluster: FakeCluster) -> None:
    start = str(cluster.rv)
    cluster.add(CONFIGMAPS, configmap("a"))
    cluster.compact()
    with pytest.raises(errors.Expired):
        await anext(cluster.watch(CONFIGMAPS, resource_version=start))


async def test_an_unreachable_cluster_ends_watches_and_rejects_calls(cluster: FakeCluster) -> None:
    events = cluster.watch(CONFIGMAPS, resource_version="", send_initial_events=True)
    assert (await anext(events)).type == "BOOKMARK"
    cluster.unreachable = True
    with pytest.raises(StopAsyncIteration):
        await anext(events)
    with pytest.raises(ClusterUnreachable):
        await cluster.get(CONFIGMAPS, "default", "a")
