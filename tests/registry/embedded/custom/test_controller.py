"""The controller establishes definitions, serves their kinds, and deletes their objects before them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from apiserver.meta import errors
from apiserver.meta.resource import Key, Object
from registry.embedded.controllers.garbage_collector import GarbageCollector
from registry.embedded.custom.conditions import is_true
from registry.embedded.custom.controller import DefinitionController
from registry.embedded.custom.definition_kind import DEFINITIONS, GROUP
from tests.registry.embedded.custom.definitions import definition, version, widgets
from tests.registry.embedded.embedded_storages import EmbeddedApi, request_context

CRDS = "customresourcedefinitions"
WIDGETS, GADGETS = "widgets.example.com", "gadgets.example.com"


class Cluster:
    """The definitions and the objects of an embedded cluster whose definition controller runs."""

    def __init__(self, api: EmbeddedApi) -> None:
        self.api = api
        self.changes: list[Mapping[str, bool]] = []
        """After each change of the served kinds, the names of all definitions, and whether each is Established."""

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        definitions = self.api.backends[DEFINITIONS]
        controller = DefinitionController(database=self.api.database, definitions=definitions, kinds=self.api.custom)
        controller.on_change = lambda: self.changes.append(
            {cached.key.name: is_true(cached.object(), "Established") for cached in definitions.cache}
        )
        controller.load()
        task = asyncio.create_task(controller.run())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def create(self, crd: dict[str, Any]) -> None:
        await self.api.create(CRDS, {name: crd[name] for name in ("metadata", "spec")}, group=GROUP)

    async def create_widget(self, name: str, **metadata: Any) -> None:
        obj = {"metadata": {"name": name, "namespace": "ns", **metadata}, "spec": {"size": 1}}
        await self.api.create("widgets", obj, group="example.com")

    async def delete(self, name: str) -> None:
        await self.api.delete(CRDS, Key("", name), group=GROUP)

    def definition(self, name: str) -> dict[str, Any] | None:
        cached = self.api.backends[DEFINITIONS].cache.peek(Key("", name))
        return None if cached is None else cached.object()

    def reason(self, name: str, condition: str) -> str:
        crd = self.definition(name) or {}
        found = crd.get("status", {}).get("conditions", ())
        return next((each["reason"] for each in found if each["type"] == condition), "")

    async def until_established(self, name: str) -> None:
        await self.until(lambda: is_true(self.definition(name) or {}, "Established"))

    async def until(self, condition: Callable[[], Any]) -> None:
        await self.api.until(condition)


@pytest.fixture
async def cluster(api: EmbeddedApi) -> AsyncIterator[Cluster]:
    cluster = Cluster(api)
    async with cluster.running():
        yield cluster


async def test_a_new_definition_is_served_before_it_is_established(cluster: Cluster) -> None:
    await cluster.create(widgets())
    await cluster.until_established(WIDGETS)
    assert cluster.changes[-1][WIDGETS] is False
    assert cluster.api.custom.get(WIDGETS) is not None
    await cluster.create_widget("a")
    assert cluster.api.stored(WIDGETS) == [Key("ns", "a")]


async def test_a_definition_with_a_name_of_another_is_established_when_that_is_deleted(cluster: Cluster) -> None:
    await cluster.create(widgets())
    await cluster.until_established(WIDGETS)
    await cluster.create(definition("gadgets", "Widget"))
    await cluster.until(lambda: cluster.reason(GADGETS, "Established") == "NotAccepted")
    assert cluster.api.custom.get(GADGETS) is None
    await cluster.delete(WIDGETS)
    await cluster.until_established(GADGETS)
    assert cluster.api.custom.get(WIDGETS) is None


async def test_a_deleted_definition_disappears_after_its_objects(cluster: Cluster) -> None:
    await cluster.create(widgets())
    await cluster.until_established(WIDGETS)
    await cluster.create_widget("a")
    await cluster.create_widget("b", finalizers=["example.org/wait"])
    await cluster.delete(WIDGETS)
    await cluster.until(lambda: cluster.reason(WIDGETS, "Terminating") == "InstanceDeletionInProgress")
    assert cluster.api.stored(WIDGETS) == [Key("ns", "b")]

    def release(obj: dict[str, Any]) -> None:
        del obj["metadata"]["finalizers"]

    await cluster.api.update("widgets", Key("ns", "b"), release, group="example.com")
    await cluster.until(lambda: cluster.definition(WIDGETS) is None)


async def test_no_object_is_created_while_its_definition_is_being_deleted(cluster: Cluster) -> None:
    await cluster.create(widgets())
    await cluster.until_established(WIDGETS)
    await cluster.create_widget("a", finalizers=["example.org/wait"])
    await cluster.delete(WIDGETS)
    with pytest.raises(errors.StatusError, match="create not allowed while custom resource definition is terminating"):
        await cluster.create_widget("late")


async def test_a_definition_that_was_never_established_is_deleted_at_once(cluster: Cluster) -> None:
    await cluster.create(widgets())
    await cluster.until_established(WIDGETS)
    await cluster.create(definition("gadgets", "Widget"))
    await cluster.until(lambda: cluster.reason(GADGETS, "Established") == "NotAccepted")
    await cluster.delete(GADGETS)
    await cluster.until(lambda: cluster.definition(GADGETS) is None)


async def test_a_changed_definition_is_served_anew(cluster: Cluster) -> None:
    await cluster.create(widgets())
    await cluster.until_established(WIDGETS)

    def add_version(crd: dict[str, Any]) -> None:
        crd["spec"]["versions"].append(version("v2"))

    await cluster.api.update(CRDS, Key("", WIDGETS), add_version, group=GROUP)
    await cluster.create(definition("gadgets", "Gadget"))
    await cluster.until_established(GADGETS)
    assert [("example.com", name) in cluster.api.storages for name in ("v1", "v2")] == [True, True]


async def test_the_next_start_completes_an_interrupted_deletion(api: EmbeddedApi) -> None:
    cluster = Cluster(api)
    async with cluster.running():
        await cluster.create(widgets())
        await cluster.until_established(WIDGETS)
        await cluster.create_widget("a")
    await cluster.delete(WIDGETS)
    assert cluster.definition(WIDGETS) is not None
    async with cluster.running():
        await cluster.until(lambda: cluster.definition(WIDGETS) is None)


async def test_nothing_is_created_after_its_definition_by_a_request_that_was_admitted_before(cluster: Cluster) -> None:
    await cluster.create(widgets())
    await cluster.until_established(WIDGETS)
    admitting, go_on = asyncio.Event(), asyncio.Event()

    @asynccontextmanager
    async def slow_admission(new: Object | None, old: Object | None) -> AsyncIterator[None]:
        admitting.set()
        await go_on.wait()
        yield

    obj = {"metadata": {"name": "late", "namespace": "ns"}, "spec": {"size": 1}}
    store = cluster.api.storage("widgets", "example.com")
    creating = asyncio.create_task(store.create(request_context(), obj, slow_admission, dry_run=False))
    await admitting.wait()
    await cluster.delete(WIDGETS)
    await cluster.until(lambda: cluster.definition(WIDGETS) is None)
    go_on.set()
    with pytest.raises(errors.Forbidden):
        await creating
    await cluster.create(widgets())
    await cluster.until_established(WIDGETS)
    assert cluster.api.stored(WIDGETS) == []


async def test_an_owner_of_a_kind_that_was_not_served_at_the_start_is_not_looked_up_all_the_time(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    api, looked_up = cluster.api, list[str]()
    await cluster.create(widgets())
    await cluster.until_established(WIDGETS)
    await cluster.create_widget("a")
    owner = api.backends[WIDGETS].cache.peek(Key("ns", "a"))
    crd = cluster.definition(WIDGETS)
    assert owner is not None
    assert crd is not None
    api.custom.remove(WIDGETS)
    collector = GarbageCollector(database=api.database, backends=api.backends, kinds=api.owner_kinds)
    collector.load()
    await api.custom.serve(crd)
    contains_uid = api.database.contains_uid

    async def look_up(uid: str) -> bool:
        looked_up.append(uid)
        return await contains_uid(uid)

    monkeypatch.setattr(api.database, "contains_uid", look_up)
    reference = {"apiVersion": "example.com/v1", "kind": "Widget", "name": "a", "uid": owner.uid}
    await api.create("configmaps", {"metadata": {"name": "c", "namespace": "ns", "ownerReferences": [reference]}})
    task = asyncio.create_task(collector.run())
    await asyncio.sleep(1)
    task.cancel()
    await asyncio.wait([task])
    assert 0 < len(looked_up) < 20
    assert Key("ns", "c") in api.stored("configmaps")
