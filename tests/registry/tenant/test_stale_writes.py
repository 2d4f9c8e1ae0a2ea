"""A write that is decided on an object of the cache is decided again if another replica has changed the stored one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from apiserver.json.values import deep_copy
from apiserver.meta import errors
from apiserver.meta.resource import Object
from apiserver.request.options import DeleteOptions
from registry.generic.store import Store
from registry.tenant.strategy import TenantStrategy
from tests.apiserver.endpoints.request_contexts import ALICE, make_context
from tests.registry.tenant.release_cluster import KEY, World, tenant

DENIED = errors.Forbidden(TenantStrategy().resource.group_resource, KEY.name, "only b.example may be changed")


@asynccontextmanager
async def admitted(new: Object | None, old: Object | None) -> AsyncIterator[None]:
    yield


@asynccontextmanager
async def admitted_if_changed_before(new: Object | None, old: Object | None) -> AsyncIterator[None]:
    if old is None or old["spec"]["host"] != "b.example":
        raise DENIED
    yield


async def world_with_host(host: str = "a.example") -> World:
    world = World()
    await world.create(tenant(host=host))
    world.cluster.deliver(world.feed)
    return world


async def changed_elsewhere() -> tuple[World, Store]:
    """The host is a.example in the cache, and b.example in the storage: the watch has not told of the change yet."""
    world = await world_with_host()
    changed = deep_copy(world.cluster.objects["tenant-root", "tenant-alice"])
    changed["spec"]["values"]["host"] = "b.example"
    world.cluster.put(changed)
    return world, Store(backend=world.backend, strategy=TenantStrategy())


def stored_host(world: World) -> str:
    return str(world.cluster.objects["tenant-root", "tenant-alice"]["spec"]["values"]["host"])


def with_host(obj: Object, host: str) -> Object:
    return {**obj, "spec": {**obj["spec"], "host": host}}


async def test_a_write_that_equals_only_the_cached_object_is_sent() -> None:
    world, store = await changed_elsewhere()

    async def change(current: Object | None) -> Object:
        assert current is not None
        return with_host(current, "a.example")

    answer, _ = await store.update(make_context(user=ALICE), KEY, change, admitted, dry_run=False)
    assert answer["spec"]["host"] == stored_host(world) == "a.example"


async def test_an_object_that_was_deleted_elsewhere_is_not_updated() -> None:
    world = await world_with_host()
    world.cluster.remove(KEY)
    store = Store(backend=world.backend, strategy=TenantStrategy())

    async def change(current: Object | None) -> Object:
        assert current is not None
        return current

    with pytest.raises(errors.NotFound):
        await store.update(make_context(user=ALICE), KEY, change, admitted, dry_run=False)


async def test_a_change_that_fails_on_the_cached_object_is_tried_on_the_stored_one() -> None:
    world, store = await changed_elsewhere()

    async def change(current: Object | None) -> Object:
        assert current is not None
        if current["spec"]["host"] != "b.example":
            raise errors.BadRequest("the test of the JSON patch failed")
        return with_host(current, "c.example")

    await store.update(make_context(user=ALICE), KEY, change, admitted, dry_run=False)
    assert stored_host(world) == "c.example"


async def test_a_change_that_fails_on_the_stored_object_fails_once_it_is_known_to_be_that() -> None:
    world = await world_with_host()
    store, calls = Store(backend=world.backend, strategy=TenantStrategy()), list[Object]()

    async def change(current: Object | None) -> Object:
        assert current is not None
        calls.append(current)
        raise errors.BadRequest("the test of the JSON patch failed")

    with pytest.raises(errors.BadRequest):
        await store.update(make_context(user=ALICE), KEY, change, admitted, dry_run=False)
    assert len(calls) == 1


async def test_admission_judges_the_stored_object() -> None:
    world, store = await changed_elsewhere()

    async def change(current: Object | None) -> Object:
        assert current is not None
        return with_host(current, "c.example")

    await store.update(make_context(user=ALICE), KEY, change, admitted_if_changed_before, dry_run=False)
    assert stored_host(world) == "c.example"


async def test_admission_judges_the_stored_object_of_a_deletion() -> None:
    world, store = await changed_elsewhere()
    await store.delete(make_context(user=ALICE), KEY, DeleteOptions(), admitted_if_changed_before)
    assert KEY not in world.cluster.objects


async def test_a_denial_that_is_about_the_stored_object_counts() -> None:
    world = await world_with_host()
    store = Store(backend=world.backend, strategy=TenantStrategy())
    with pytest.raises(errors.Forbidden):
        await store.delete(make_context(user=ALICE), KEY, DeleteOptions(), admitted_if_changed_before)
