from __future__ import annotations

import copy

import pytest

from apiserver.meta.resource import Key
from apiserver.storage.event_history import CacheEvent
from registry.application.release_metadata import mark_unconfirmed
from registry.names import DELETION_MARK_ANNOTATION
from registry.tenant.convert import to_release
from registry.tenant.readiness import unreadable_status
from registry.tenant.release_settings import ReleaseSettings
from tests.registry.tenant.release_cluster import KEY, World, tenant


async def test_a_relist_converts_only_what_changed(world: World) -> None:
    settings = ReleaseSettings()
    for name in ("alice", "bob"):
        world.cluster.put(
            to_release({"metadata": {"name": name, "namespace": "tenant-root"}, "spec": {}}, None, settings)
        )
    world.cluster.deliver(world.feed)
    cached = world.cache.peek(KEY)
    bob = world.cluster.objects["tenant-root", "tenant-bob"]
    world.cluster.put(bob)
    world.cluster.events.clear()
    await world.feed.replace(list(world.cluster.objects.values()), world.cluster.rv)
    assert world.cache.peek(KEY) is cached
    found = world.cache.peek(Key("tenant-root", "bob"))
    assert found is not None
    assert found.rv == world.cluster.rv


async def test_an_invalid_helmrelease_stays_visible_and_is_logged(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    release = to_release(tenant(), None, ReleaseSettings())
    release["spec"]["values"] = {"etcd": "yes"}
    world.cluster.put(release)
    world.cluster.deliver(world.feed)
    found = await world.backend.read(KEY, live=False)
    assert found is not None
    assert found["spec"]["etcd"] is False
    assert world.feed.unreadable_fields == {KEY: ("spec.values.etcd",)}
    assert "spec.values.etcd" in caplog.text
    assert "yes" not in caplog.text
    world.cluster.put(release | {"spec": {"values": {"etcd": True}}})
    world.cluster.deliver(world.feed)
    assert world.feed.unreadable_fields == {}


async def test_a_helmrelease_that_cannot_be_converted_stays_visible(world: World) -> None:
    release = to_release(tenant(), None, ReleaseSettings())
    release["metadata"]["finalizers"] = 5
    world.cluster.put(release)
    world.cluster.deliver(world.feed)
    found = await world.backend.read(KEY, live=False)
    assert found is not None
    assert found["status"] == unreadable_status("tenant-alice")


async def test_a_tenant_whose_helmrelease_loses_its_labels_is_deleted_in_its_last_state(world: World) -> None:
    release = to_release(tenant(), None, ReleaseSettings())
    world.cluster.put(release)
    world.cluster.deliver(world.feed)
    last = world.cache.peek(KEY)
    assert last is not None
    events = list[CacheEvent]()
    world.cache.subscribe(events.append)
    found = {**release, "metadata": {**release["metadata"], "labels": {}, "resourceVersion": str(world.cache.rv + 1)}}
    world.feed.apply("DELETED", found, world.cache.rv + 1)
    assert world.cache.peek(KEY) is None
    [deleted] = events
    assert deleted.type == "DELETED"
    assert (deleted.object.object()["spec"], deleted.object.labels) == (last.object()["spec"], last.labels)


async def test_another_helmrelease_only_advances_the_version(world: World) -> None:
    world.cluster.put({"metadata": {"name": "other", "namespace": "x", "uid": "o"}})
    world.cluster.deliver(world.feed)
    assert len(world.cache) == 0
    assert world.cache.rv == 11


async def test_a_deletion_mark_is_noted_as_long_as_the_helmrelease_has_it(world: World) -> None:
    marked = to_release(tenant(), None, ReleaseSettings())
    unmarked = copy.deepcopy(marked)
    marked["metadata"].setdefault("annotations", {})[DELETION_MARK_ANNOTATION] = "one-1"
    world.cluster.put(marked)
    world.cluster.deliver(world.feed)
    assert world.feed.deletion_marks == {KEY: "one-1"}
    shown = world.cache.peek(KEY)
    assert shown is not None
    assert "one-1" not in str(shown.object())
    # the object has not changed and is not converted again
    await world.feed.replace(list(world.cluster.objects.values()), world.cluster.rv)
    assert world.feed.deletion_marks == {KEY: "one-1"}
    world.cluster.put(unmarked)
    world.cluster.deliver(world.feed)
    assert world.feed.deletion_marks == {}


async def test_a_deletion_mark_ends_with_the_helmrelease(world: World) -> None:
    marked = to_release(tenant(), None, ReleaseSettings())
    marked["metadata"].setdefault("annotations", {})[DELETION_MARK_ANNOTATION] = "one-1"
    world.cluster.put(marked)
    world.cluster.deliver(world.feed)
    world.cluster.remove(KEY)
    world.cluster.deliver(world.feed)
    assert world.feed.deletion_marks == {}


async def test_the_mark_of_an_unconfirmed_write_is_noted_as_long_as_the_helmrelease_has_it(world: World) -> None:
    marked = to_release(tenant(), None, ReleaseSettings())
    mark_unconfirmed(marked, "one-1")
    world.cluster.put(marked)
    world.cluster.deliver(world.feed)
    assert world.feed.unconfirmed == {KEY: "one-1"}
    await world.feed.replace(list(world.cluster.objects.values()), world.cluster.rv)
    assert world.feed.unconfirmed == {KEY: "one-1"}
    world.cluster.remove(KEY)
    world.cluster.deliver(world.feed)
    assert world.feed.unconfirmed == {}
