from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Iterable
from contextlib import aclosing, asynccontextmanager
from typing import Any

import pytest

from apiserver.meta import errors
from apiserver.meta.resource import Key, Object
from apiserver.request.options import ListOptions, WatchOptions
from apiserver.storage.event_history import CacheEvent
from apiserver.storage.watcher import Failure
from registry.application.kinds import ServedApplication
from tests.registry.application.applications import (
    KEY,
    NAMESPACE,
    SCHEMA,
    ApplicationWorld,
    application,
    definition_object,
    release_of,
    request,
)

REDIS = definition_object()
ETCD = definition_object("etcd", kind="Etcd", plural="etcds", prefix="")
INFO = definition_object("info", kind="Info", plural="infos", prefix="")


@asynccontextmanager
async def admitted(new: Object | None, old: Object | None) -> Any:
    yield


async def create(world: ApplicationWorld, name: str, spec: Object, kind: str = "redis") -> Object:
    store = world.served(kind).store
    created = await store.create(request("create"), application(name, spec), admitted, dry_run=False)
    world.deliver()
    return created


async def update(world: ApplicationWorld, verb: str, change: Any) -> Object:
    async def changed(current: Object | None) -> Object:
        found: Object = change(copy.deepcopy(current))
        return found

    backend = world.served().store
    stored, _ = await backend.update(request(verb), KEY, changed, admitted, dry_run=False)
    world.deliver()
    return stored


def values(world: ApplicationWorld) -> Any:
    return world.cluster.objects[NAMESPACE, "redis-cache"]["spec"].get("values")


async def test_kinds_come_and_go_with_their_definitions() -> None:
    world = ApplicationWorld()
    await world.start(REDIS)
    assert list(world.kinds.served) == ["redis"]
    await world.follow(REDIS, ETCD)
    assert sorted(world.kinds.served) == ["etcd", "redis"]
    await world.follow(ETCD)
    assert list(world.kinds.served) == ["etcd"]
    assert world.changes == 3
    await world.follow(ETCD)
    assert world.changes == 3


async def test_a_kind_that_is_added_later_has_the_releases_that_exist() -> None:
    world = ApplicationWorld()
    await world.start()
    for name in ("b", "a"):
        world.cluster.put(release_of(name, {}))
    world.deliver()
    await world.follow(REDIS)
    assert world.shown() == ["a", "b"]
    assert world.cache().rv == world.cluster.rv
    assert await world.served().store.get(request("get"), Key(NAMESPACE, "a"))


async def test_a_release_that_changes_while_a_kind_is_added_is_not_missed() -> None:
    world = ApplicationWorld()
    await world.start()
    world.cluster.put(release_of("a", {}))
    world.deliver()
    adding = asyncio.create_task(world.follow(REDIS))
    world.cluster.put(release_of("b", {}))
    world.cluster.objects.pop((NAMESPACE, "redis-a"))
    world.cluster.rv += 1
    deleted = release_of("a", {})
    deleted["metadata"]["resourceVersion"] = str(world.cluster.rv)
    world.cluster.events.append(("DELETED", deleted, world.cluster.rv))
    world.deliver()
    await adding
    assert world.shown() == ["b"]


async def test_a_release_belongs_to_the_kind_that_its_labels_name() -> None:
    world = ApplicationWorld()
    await world.start(ETCD, INFO)
    release = release_of("i1", {}, of=ETCD)
    world.cluster.put(release)
    world.deliver()
    assert (world.shown("etcd"), world.shown("info")) == (["i1"], [])
    release["metadata"]["labels"]["apps.cozystack.io/application.kind"] = "Info"
    world.cluster.put(release)
    world.deliver()
    assert (world.shown("etcd"), world.shown("info")) == ([], ["i1"])
    release["metadata"]["labels"]["apps.cozystack.io/application.name"] = "other"
    world.cluster.put(release)
    world.deliver()
    assert (world.shown("etcd"), world.shown("info")) == ([], [])
    assert world.cache("etcd").rv == world.cache("info").rv == world.cluster.rv


async def test_a_new_list_replaces_the_contents_of_all_kinds() -> None:
    world = ApplicationWorld()
    await world.start(REDIS, ETCD)
    world.cluster.put(release_of("a", {}))
    world.deliver()
    items = [release_of("b", {}), {"metadata": {"name": "other", "namespace": NAMESPACE, "resourceVersion": "1"}}]
    items[0]["metadata"]["resourceVersion"] = "20"
    for each in items:
        world.store.put(each)
    await world.router.replace(items, 30)
    assert world.shown() == ["b"]
    assert world.cache().rv == world.cache("etcd").rv == 30


async def test_watches_of_a_kind_that_goes_end_with_410() -> None:
    world = ApplicationWorld()
    await world.start(REDIS, ETCD)
    watches = [
        await world.cache(name).watch(NAMESPACE, WatchOptions(resource_version=10)) for name in ("redis", "etcd")
    ]
    await world.follow(ETCD)
    (failure,) = await anext(watches[0])
    assert isinstance(failure, Failure)
    assert failure.error.code == 410
    assert world.cache("etcd").watchers == 1


async def test_a_schema_that_changes_applies_to_what_is_stored() -> None:
    world = ApplicationWorld()
    await world.start(REDIS)
    await create(world, "cache", {"replicas": 3})
    schema = '{"type":"object","properties":{"other":{"type":"string","default":"new"}}}'
    await world.follow(definition_object(openAPISchema=schema))
    found = await world.served().store.get(request("get"), KEY)
    assert found.object()["spec"] == {"replicas": 3, "other": "new"}
    assert values(world) == {"replicas": 3}


async def test_a_definition_that_changes_only_new_releases_keeps_its_watches() -> None:
    world = ApplicationWorld()
    await world.start(REDIS)
    served: ServedApplication = world.served()
    changed = copy.deepcopy(REDIS)
    changed["spec"]["release"]["chartRef"]["name"] = "other"
    await world.follow(changed)
    assert world.served() is served
    await create(world, "cache", {})
    assert world.cluster.objects[NAMESPACE, "redis-cache"]["spec"]["chartRef"]["name"] == "other"


async def test_a_bad_definition_is_told_and_the_others_are_served() -> None:
    world = ApplicationWorld()
    await world.start(REDIS, definition_object("bad", kind="Bad", plural="bads", prefix="b-", openAPISchema="{"))
    assert list(world.kinds.served) == ["redis"]
    assert [(each.name, each.state) for each in world.kinds.states] == [("bad", "refused"), ("redis", "served")]


async def test_a_bad_update_keeps_the_last_good_form() -> None:
    world = ApplicationWorld()
    await world.start(REDIS)
    served = world.served()
    await world.follow(definition_object(openAPISchema="{"))
    assert world.served() is served
    assert [each.state for each in world.kinds.states] == ["kept"]
    await world.follow(REDIS)
    assert [each.state for each in world.kinds.states] == ["served"]


async def test_a_clash_by_an_update_takes_down_no_kind() -> None:
    world = ApplicationWorld()
    await world.start(REDIS, ETCD)
    served = dict(world.kinds.served)
    await world.follow(REDIS, definition_object("etcd", kind="Redis", plural="etcds", prefix="e-"))
    assert world.kinds.served == served
    taken = definition_object("etcd", kind="Etcd", plural="etcds", prefix="x-")
    await world.follow(definition_object(prefix="x-"), taken)
    assert sorted(world.kinds.served) == ["etcd", "redis"]


async def test_a_form_in_force_survives_a_restart() -> None:
    """Also where two definitions claim a name, and the younger one had it first."""
    before = ApplicationWorld()
    await before.start(REDIS, ETCD)
    broken = definition_object(openAPISchema="{")
    taken = definition_object("etcd", kind="Etcd", plural="etcds", prefix="e-")
    rival = definition_object("a", kind="Rival", plural="rivals", prefix="e-")
    await before.follow(broken, taken)
    sources = {name: each.source for name, each in before.kinds.in_force.items()}
    world = ApplicationWorld()
    await world.kinds.adopt(sources.items())
    await world.start(broken, taken, rival)
    assert sorted(world.kinds.served) == ["etcd", "redis"]
    assert world.served().definition.schema == before.served().definition.schema
    assert [each.state for each in world.kinds.states] == ["refused", "served", "kept"]


async def test_a_definition_that_was_created_anew_has_no_earlier_form() -> None:
    world = ApplicationWorld()
    await world.start(REDIS)
    again = definition_object(openAPISchema="{")
    again["metadata"]["uid"] = "another"
    await world.follow(again)
    assert not world.kinds.served


async def test_a_patch_stores_only_the_difference_and_an_update_what_was_sent() -> None:
    world = ApplicationWorld()
    await world.start(REDIS)
    created = await create(world, "cache", {"size": "2Gi"})
    assert (created["spec"]["size"], created["spec"]["replicas"]) == ("2Gi", 2)
    patched = await update(world, "patch", lambda obj: {**obj, "spec": {**obj["spec"], "replicas": 3}})
    assert patched["spec"]["replicas"] == 3
    assert values(world) == {"size": "2Gi", "replicas": 3}
    await update(world, "update", lambda obj: {**obj, "spec": {"replicas": 2}})
    assert values(world) == {"replicas": 2}


async def test_a_release_of_another_kind_is_a_conflict_that_names_it() -> None:
    world = ApplicationWorld()
    await world.start(ETCD, INFO)
    await create(world, "i1", {}, "etcd")
    with pytest.raises(errors.Conflict, match='its HelmRelease "i1" stores Etcd "i1" already'):
        await create(world, "i1", {}, "info")
    with pytest.raises(errors.AlreadyExists):
        await create(world, "i1", {}, "etcd")
    with pytest.raises(errors.NotFound):
        await world.served("info").store.get(request("get"), Key(NAMESPACE, "i1"))


async def test_a_definition_with_a_rule_that_does_not_compile_is_not_served() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string", "x-kubernetes-validations": [{"rule": "self ="}]}},
    }
    world = ApplicationWorld()
    await world.start(definition_object(openAPISchema=json.dumps(schema)), ETCD)
    assert list(world.kinds.served) == ["etcd"]
    assert "a: x-kubernetes-validations[0].rule" in str(world.kinds.states[1])


async def test_a_release_that_cannot_be_converted_stays_visible(caplog: pytest.LogCaptureFixture) -> None:
    world = ApplicationWorld()
    await world.start(REDIS)
    release = release_of("cache", {})
    release["metadata"]["finalizers"] = 5
    world.cluster.put(release)
    world.deliver()
    assert world.shown() == ["cache"]
    assert "only its name is shown" in caplog.text
    release["metadata"]["resourceVersion"] = str(world.cluster.rv)
    await world.router.replace([release], world.cluster.rv)
    assert world.shown() == ["cache"]


async def test_releases_that_no_kind_serves_are_counted_with_the_reason() -> None:
    world = ApplicationWorld()
    await world.start(REDIS, ETCD)
    for name in ("a", "b"):
        world.cluster.put(release_of(name, {}))
    world.cluster.put(release_of("c", {}, of=ETCD))
    world.deliver()
    assert list(world.router.unserved()) == []
    await world.follow(definition_object(prefix="new-"), ETCD)
    label = "apps.cozystack.io/application.kind=Redis"
    (moved,) = world.router.unserved()
    assert str(moved) == (
        f"2 HelmReleases are not served, labelled {label}: an object of the kind is called "
        "new-<apps.cozystack.io/application.name>"
    )
    await world.follow(ETCD)
    (orphaned,) = world.router.unserved()
    assert str(orphaned) == (
        f"2 HelmReleases are not served, labelled {label}: no definition that is served describes this kind"
    )
    world.cluster.events.append(("DELETED", world.cluster.objects.pop((NAMESPACE, "redis-a")), world.cluster.rv + 1))
    world.deliver()
    assert [each.releases for each in world.router.unserved()] == [1]
    await world.follow(REDIS, ETCD)
    assert list(world.router.unserved()) == []


async def test_a_watch_that_starts_again_amid_an_upgrade_gets_the_events_after_it() -> None:
    """The kinds of an upgrade are served anew one after the other, and installed together. Until then, the first ones
    are not ready: a list or a watch of the former cache would never hear of anything."""
    world = ApplicationWorld()
    await world.start(REDIS, ETCD)
    for number in range(400):
        world.cluster.put(release_of(f"e{number}", {}))
    world.deliver()
    installed = dict(world.kinds.served)
    world.kinds.on_change = lambda: installed.update(world.kinds.served)
    received, arrived, refused = set[str](), asyncio.Event(), list[int]()

    def receive(names: Iterable[str]) -> None:
        received.update(names)
        if "b" in received:
            arrived.set()

    async def informer() -> None:
        while True:
            store = installed["etcd"].store
            try:
                page = await store.list(request("list"), NAMESPACE, ListOptions())
                receive(each.key.name for each in page.items)
                version = WatchOptions(resource_version=page.resource_version)
                async with aclosing(await store.watch(request("watch"), NAMESPACE, version)) as watch:
                    async for batch in watch:
                        receive(each.object.key.name for each in batch if isinstance(each, CacheEvent))
            except errors.TooManyRequests as error:
                refused.append(error.code)
                await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        task = group.create_task(informer())
        await asyncio.sleep(0)
        schema: Any = copy.deepcopy(SCHEMA)
        schema["properties"]["extra"] = {"type": "string"}
        changed = {"openAPISchema": json.dumps(schema)}
        etcd = definition_object("etcd", kind="Etcd", plural="etcds", prefix="", **changed)
        await world.follow(definition_object(**changed), etcd)
        world.cluster.put(release_of("b", {}, of=etcd))
        world.deliver()
        await asyncio.wait_for(arrived.wait(), 5)
        task.cancel()
    assert refused
