"""The cache has the PersistentVolumes that have a claim, under its namespace."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from apiserver.meta.selectors import parse_field_selector, parse_label_selector
from apiserver.request.options import ListOptions, WatchOptions
from apiserver.storage.visibility import VisibleObjects
from apiserver.storage.watch_cache import WatchCache
from apiserver.storage.watcher import CacheWatcher
from registry.persistentvolume.convert import claimed_volume_resource
from registry.persistentvolume.watch_feed import ClaimedVolumeFeed
from tests.apiserver.storage.test_visibility import Reader
from tests.registry.persistentvolume.volumes import volume

SECRET_FIELDS = {"spec", "status"}


class Volumes:
    """A feed and its cache, and what viewers of a namespace get of it."""

    def __init__(self) -> None:
        self.cache = WatchCache(claimed_volume_resource())
        self.feed = ClaimedVolumeFeed(self.cache)

    async def names(self, *namespaces: str, **options: Any) -> list[str]:
        visible = VisibleObjects(frozenset(namespaces))
        page = await self.cache.list("", ListOptions(**options), visible=visible)
        return [each.key.name for each in page.items]

    async def watch(self, reader: Reader) -> CacheWatcher:
        return await self.cache.watch("", WatchOptions(resource_version=self.cache.rv), visibility=reader)


@pytest.fixture
async def volumes() -> Volumes:
    made = Volumes()
    listed = [volume("free"), volume("of-b", claim="tenant-b/data"), volume("of-a", claim="tenant-a/data")]
    await made.feed.replace(listed, 10)
    return made


async def next_events(watch: CacheWatcher, count: int = 1) -> list[tuple[str, dict[str, Any]]]:
    found: list[Any] = []
    while len(found) < count:
        found += await anext(watch)
    return [(event.type, orjson.loads(event.object.json)) for event in found]


async def test_viewers_of_a_namespace_see_the_volumes_of_its_claims(volumes: Volumes) -> None:
    assert await volumes.names("tenant-a") == ["of-a"]
    assert await volumes.names("tenant-a", "tenant-b") == ["of-a", "of-b"]
    assert await volumes.names("of-a", "free", "") == []


async def test_selectors_and_pages_hold(volumes: Volumes) -> None:
    assert await volumes.names("tenant-a", field_selector=parse_field_selector("metadata.name=of-a")) == ["of-a"]
    assert await volumes.names("tenant-a", field_selector=parse_field_selector("metadata.name=of-b")) == []
    assert await volumes.names("tenant-a", label_selector=parse_label_selector("a=b")) == []
    both = VisibleObjects(frozenset({"tenant-a", "tenant-b"}))
    page = await volumes.cache.list("", ListOptions(limit=1), visible=both)
    rest = await volumes.cache.list("", ListOptions(limit=1, continue_token=page.continue_token), visible=both)
    assert [each.key.name for each in (*page.items, *rest.items)] == ["of-a", "of-b"]


async def test_a_volume_appears_when_it_is_claimed_and_goes_with_its_claim(volumes: Volumes) -> None:
    watch = await volumes.watch(Reader("tenant-a"))
    volumes.feed.apply("MODIFIED", volume("free", claim="tenant-a/new", rv=11), 11)
    volumes.feed.apply("MODIFIED", volume("free", claim="tenant-a/new", rv=12, labels={"x": "y"}), 12)
    volumes.feed.apply("MODIFIED", volume("free", rv=13), 13)
    found = await next_events(watch, 3)
    assert [(type_, obj["metadata"]["name"]) for type_, obj in found] == [
        ("ADDED", "free"),
        ("MODIFIED", "free"),
        ("DELETED", "free"),
    ]
    assert found[2][1]["metadata"]["resourceVersion"] == "13"
    assert "namespace" not in found[2][1]["metadata"]
    assert await volumes.names("tenant-a") == ["of-a"]


async def test_a_volume_that_another_namespace_claims_leaves_the_first(volumes: Volumes) -> None:
    first, second = await volumes.watch(Reader("tenant-a")), await volumes.watch(Reader("tenant-b"))
    volumes.feed.apply("MODIFIED", volume("of-a", claim="tenant-b/other", rv=11), 11)
    [(type_, last)] = await next_events(first)
    assert (type_, last["metadata"]["name"]) == ("DELETED", "of-a")
    assert last["spec"]["claimRef"]["namespace"] == "tenant-a"
    [(type_, added)] = await next_events(second)
    assert (type_, added["spec"]["claimRef"]) == ("ADDED", {"namespace": "tenant-b", "name": "other"})
    assert await volumes.names("tenant-a") == []
    assert await volumes.names("tenant-b") == ["of-a", "of-b"]
    volumes.feed.apply("DELETED", volume("of-a", claim="tenant-b/other", rv=12), 12)
    assert [type_ for type_, _ in await next_events(second)] == ["DELETED"]


async def test_a_revocation_deletes_what_was_shown_without_its_content(volumes: Volumes) -> None:
    reader = Reader("tenant-a")
    watch = await volumes.watch(reader)
    reader.set_visible("tenant-b", rv=11)
    events = sorted(await next_events(watch, 2), key=lambda each: each[0])
    assert [(type_, obj["metadata"]["name"]) for type_, obj in events] == [("ADDED", "of-b"), ("DELETED", "of-a")]
    deleted = events[1][1]
    assert not SECRET_FIELDS & set(deleted)
    assert set(deleted["metadata"]) == {"name", "uid", "resourceVersion"}


async def test_events_of_volumes_without_a_claim_move_the_version_only(volumes: Volumes) -> None:
    volumes.feed.apply("MODIFIED", volume("free", rv=11), 11)
    volumes.feed.apply("DELETED", volume("free", rv=12), 12)
    assert volumes.cache.rv == 12
    assert len(volumes.cache) == 2
