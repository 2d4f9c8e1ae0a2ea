"""The objects of the cluster that a kind shows, as lists and watches have them."""

from __future__ import annotations

import pytest

from apiserver.meta import errors
from apiserver.meta.resource import GroupResource, Key
from apiserver.meta.selectors import parse_field_selector
from apiserver.request.options import ListOptions, WatchOptions
from apiserver.storage.visibility import VisibleObjects
from registry.cluster.interface import ClusterUnreachable, NotServed
from registry.projection.feed import ProjectionFeed
from registry.projection.readable import readable, warns_if_stale
from registry.projection.storage import ReadOnlyProjection
from tests.fake_cluster import FakeCluster
from tests.registry.projection.projections import (
    SOURCES,
    FixedVisibility,
    ProjectionWorld,
    events_of,
    request,
    shows,
    source,
    to_widget,
)


def storage(world: ProjectionWorld, *, visible: VisibleObjects | None = None, missing: str = "") -> ReadOnlyProjection:
    visibility = FixedVisibility() if visible is None else FixedVisibility(visible)
    return ReadOnlyProjection(cache=world.cache, visibility=visibility, check=readable(world.feed, lambda: missing))


async def test_objects_are_shown_as_long_as_they_are_selected() -> None:
    world = ProjectionWorld()
    world.cluster.add(SOURCES, source("b"), source("a"), source("hidden", shown=False), source("c", namespace="two"))
    async with world.running():
        await world.settle()
        assert world.names() == [Key("one", "a"), Key("one", "b"), Key("two", "c")]
        world.cluster.add(SOURCES, source("a", shown=False), source("hidden", "now"))
        await world.settle()
        assert world.names() == [Key("one", "b"), Key("one", "hidden"), Key("two", "c")]


async def test_a_watch_gets_deleted_when_an_object_is_no_longer_selected() -> None:
    world = ProjectionWorld()
    world.cluster.add(SOURCES, source("a"))
    async with world.running():
        await world.settle()
        watch = await storage(world).watch(request("watch"), "one", WatchOptions(resource_version=world.cache.rv))
        world.cluster.add(SOURCES, source("b"), source("a", "changed"), source("a", shown=False))
        assert await events_of(watch, 3) == [("ADDED", "b"), ("MODIFIED", "a"), ("DELETED", "a")]
        assert world.cache.rv == world.cluster.rv


async def test_what_was_missed_in_a_gap_is_sent_after_it() -> None:
    world = ProjectionWorld()
    world.cluster.add(SOURCES, source("a"), source("b"))
    async with world.running():
        await world.settle()
        watch = await storage(world).watch(request("watch"), "", WatchOptions(resource_version=world.cache.rv))
        await world.feed.replace([{**source("b", "new"), "metadata": _metadata("b", 500)}], 501)
        assert await events_of(watch, 2) == [("DELETED", "a"), ("MODIFIED", "b")]


def _metadata(name: str, rv: int) -> dict[str, object]:
    metadata = source(name)["metadata"]
    return {**metadata, "resourceVersion": str(rv)}


async def test_lists_and_watches_have_what_the_user_may_see() -> None:
    world = ProjectionWorld()
    world.cluster.add(SOURCES, source("a"), source("b"), source("c", namespace="two"))
    async with world.running():
        await world.settle()
        limited = storage(world, visible=VisibleObjects(frozenset(["two"]), frozenset([Key("one", "b")])))
        page = await limited.list(request("list"), "", ListOptions())
        assert [each.key.name for each in page.items] == ["b", "c"]
        watch = await limited.watch(request("watch"), "", WatchOptions())
        assert await events_of(watch, 2) == [("ADDED", "b"), ("ADDED", "c")]


async def test_pages_and_field_selectors() -> None:
    world = ProjectionWorld()
    world.cluster.add(SOURCES, *(source(name) for name in "abc"))
    async with world.running():
        await world.settle()
        served = storage(world)
        first = await served.list(request("list"), "one", ListOptions(limit=2))
        rest = await served.list(request("list"), "one", ListOptions(continue_token=first.continue_token))
        assert [each.key.name for each in (*first.items, *rest.items)] == ["a", "b", "c"]
        named = ListOptions(field_selector=parse_field_selector("metadata.name!=b"))
        assert [each.key.name for each in (await served.list(request("list"), "", named)).items] == ["a", "c"]


async def test_a_missing_object_is_not_found() -> None:
    world = ProjectionWorld()
    async with world.running():
        await world.settle()
        with pytest.raises(errors.NotFound, match="nothere"):
            await storage(world).get(request(), Key("one", "nothere"))


async def test_an_unreachable_cluster_is_answered_at_once() -> None:
    world = ProjectionWorld()
    world.feed.set_cluster_error(ClusterUnreachable())
    with pytest.raises(errors.ServiceUnavailable, match="cannot be read at present"):
        await storage(world).list(request("list"), "", ListOptions())


async def test_what_has_to_be_installed_is_named_before_anything_is_read() -> None:
    world = ProjectionWorld()
    world.feed.set_cluster_error(NotServed())
    check = readable(world.feed, not_served="Flux has to be installed")
    served = ReadOnlyProjection(cache=world.cache, visibility=FixedVisibility(), check=check)
    with pytest.raises(errors.ServiceUnavailable, match="Flux has to be installed"):
        await served.list(request("list"), "", ListOptions())


def test_nothing_is_out_of_date_before_anything_is_read() -> None:
    world, noted = ProjectionWorld(), list[str]()
    world.feed.set_cluster_error(ClusterUnreachable())
    check = warns_if_stale(world.feed, world.cache)
    check(request("list", warnings=noted))
    assert noted == ["kube-apiserver cannot be reached at present"]
    world.cache.replace([], 1)
    check(request("list", warnings=noted))
    assert noted[1:] == ["kube-apiserver cannot be reached at present: the response may be out of date"]


async def test_what_the_server_may_not_read_is_empty_until_it_may() -> None:
    """Kubernetes deletes no namespace while a list fails."""
    world = ProjectionWorld()
    world.cluster.add(SOURCES, source("a"))
    world.feed.set_cluster_error(errors.Forbidden(GroupResource("", "configmaps"), "", "no"))
    served, noted = storage(world), list[str]()
    page = await served.list(request("list", warnings=noted), "", ListOptions())
    assert (list(page.items), noted) == ([], ["the server may not read what widgets are made from"])
    watch = await served.watch(request("watch"), "", WatchOptions(resource_version=page.resource_version))
    async with world.running():
        assert await events_of(watch, 1) == [("ADDED", "a")]


async def test_what_is_not_installed_is_empty() -> None:
    world = ProjectionWorld()
    world.feed.show_nothing()
    noted: list[str] = []
    page = await storage(world, missing="Cilium is not there").list(request("list", warnings=noted), "", ListOptions())
    assert (list(page.items), noted) == ([], ["Cilium is not there"])


async def test_an_empty_cache_keeps_up_with_the_cluster_until_something_is_read() -> None:
    """The rights of a user are known for recent versions only: a watch from an older one gets 410, again and again."""
    world, versions = ProjectionWorld(), iter((0, 70, 90, 200))
    feed = ProjectionFeed(world.cache, shows=shows, convert=to_widget, version=lambda: next(versions))
    for expected in (1, 70, 90):
        feed.show_nothing()
        assert world.cache.rv == expected
    await feed.replace([], 100)
    feed.show_nothing()
    assert world.cache.rv == 100


async def test_an_outage_gives_a_warning() -> None:
    world = ProjectionWorld(FakeCluster())
    async with world.running():
        await world.settle()
        world.feed.set_cluster_error(ClusterUnreachable())
        noted: list[str] = []
        await storage(world).list(request("list", warnings=noted), "", ListOptions())
        assert "may be out of date" in noted[0]
