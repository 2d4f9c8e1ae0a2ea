"""Options are computed when they are asked for, and followed as long as somebody watches them."""

from __future__ import annotations

import pytest

from apiserver.meta import errors
from apiserver.meta.resource import Key
from apiserver.request.options import ListOptions, WatchOptions
from apiserver.storage.watch_cache import WatchCache
from registry.option import items
from registry.option.storage import Options, OptionSource
from registry.option.types import option_resource
from tests.registry.projection.projections import FixedVisibility, events_of, request


class World:
    """A source of the cluster, one of each namespace, and one that is not known."""

    def __init__(self) -> None:
        self.classes: list[str] = ["slow"]
        self.networks: dict[str, list[str]] = {"one": ["net"]}
        self.is_known = False
        self.now = 1000.0
        self.options = Options(
            resource=option_resource(),
            sources={
                "storageclass": OptionSource(
                    namespaced=False, items=lambda namespace: items.named(self.classes), is_known=lambda: True
                ),
                "network": OptionSource(
                    namespaced=True,
                    items=lambda namespace: items.named(self.networks.get(namespace, ())),
                    is_known=lambda: True,
                ),
                "image": OptionSource(namespaced=False, items=lambda namespace: (), is_known=lambda: self.is_known),
            },
            visibility=FixedVisibility(),
            new_cache=WatchCache,
            now=lambda: self.now,
        )

    async def listed(self, namespace: str = "one") -> dict[str, list[str]]:
        page = await self.options.list(request("list"), namespace, ListOptions())
        found = [each.object() for each in page.items]
        return {each["metadata"]["name"]: [item["value"] for item in each["spec"]["items"]] for each in found}


async def test_each_namespace_has_its_own() -> None:
    world = World()
    assert await world.listed() == {"network": ["net"], "storageclass": ["slow"]}
    assert await world.listed("two") == {"network": [], "storageclass": ["slow"]}
    one = (await world.options.get(request(), Key("one", "network"))).object()
    assert one["metadata"]["namespace"] == "one"


async def test_options_that_are_read_again_are_of_the_present() -> None:
    """The rights of users are known since the latest 10,000 changes only, and a watch resumes from a list's version."""
    world = World()
    await world.listed()
    before = int((await world.options.list(request("list"), "one", ListOptions())).resource_version)
    world.now += 60.0
    page = await world.options.list(request("list"), "one", ListOptions())
    assert int(page.resource_version) == before + 60_000
    watch = await world.options.watch(request("watch"), "one", WatchOptions(resource_version=before))
    world.classes.append("fast")
    world.options.changed("storageclass")
    assert await events_of(watch, 1) == [("MODIFIED", "storageclass")]


async def test_an_unknown_source_is_left_out_and_another_name_is_not_found() -> None:
    world = World()
    with pytest.raises(errors.ServiceUnavailable, match="options for image"):
        await world.options.get(request(), Key("one", "image"))
    with pytest.raises(errors.NotFound):
        await world.options.get(request(), Key("one", "nothere"))
    world.is_known = True
    assert "image" in await world.listed()


async def test_a_watch_follows_changes_of_its_namespace() -> None:
    world = World()
    await world.listed()
    version = (await world.options.list(request("list"), "one", ListOptions())).resource_version
    watch = await world.options.watch(request("watch"), "one", WatchOptions(resource_version=version))
    world.networks["two"] = ["other"]
    world.options.changed("network", "two")
    world.options.changed("network", "one")
    world.classes.append("fast")
    world.options.changed("storageclass")
    world.is_known = True
    world.options.known("image")
    assert await events_of(watch, 2) == [("MODIFIED", "storageclass"), ("ADDED", "image")]


async def test_a_version_of_another_process_is_too_old() -> None:
    world = World()
    await world.listed()
    with pytest.raises(errors.Expired):
        await world.options.watch(request("watch"), "one", WatchOptions(resource_version=5))


async def test_versions_rise_even_if_the_clock_stands_still() -> None:
    world = World()
    await world.listed()
    versions = []
    for name in "abc":
        world.classes.append(name)
        world.options.changed("storageclass")
        versions.append((await world.options.get(request(), Key("one", "storageclass"))).rv)
    assert versions == sorted(set(versions))


async def test_namespaces_that_nobody_asks_for_are_forgotten_but_not_those_that_are_watched() -> None:
    world = World()
    watch = await world.options.watch(request("watch"), "one", WatchOptions())
    await events_of(watch, 2)
    for number in range(600):
        await world.listed(f"n{number}")
    world.classes.append("fast")
    world.options.changed("storageclass")
    assert await events_of(watch, 1) == [("MODIFIED", "storageclass")]
    assert len(world.options.namespaces) <= 512
