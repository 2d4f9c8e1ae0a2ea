from __future__ import annotations

import asyncio
import copy
from collections.abc import Mapping
from typing import Any, cast

import pytest

from apiserver.meta import errors
from apiserver.meta.errors import StatusError
from apiserver.meta.resource import GroupKind, GroupResource, Key, Object
from apiserver.request.context import RequestContext
from apiserver.request.options import DeleteOptions
from apiserver.storage.watch_cache import WatchCache
from registry import names
from registry.cluster.interface import HELMRELEASES, ClusterResource, ClusterUnreachable
from registry.tenant.convert import to_release
from registry.tenant.release_cache import ReleaseCache, trim_release
from registry.tenant.release_settings import ReleaseSettings
from registry.tenant.storage import ReleaseBackend
from registry.tenant.types import tenant_resource
from registry.tenant.watch_feed import TenantFeed
from tests.run_coroutine import run_coroutine

KEY = Key("tenant-root", "alice")
_RELEASES = GroupResource(HELMRELEASES.group, HELMRELEASES.plural)


class FakeReleaseCluster:
    """A cluster with HelmReleases. `deliver` sends the pending events to a feed."""

    def __init__(self) -> None:
        self.rv = 10
        self.objects: dict[tuple[str, str], Object] = {}
        self.store: dict[Key, Object] = {}
        self.writes: list[str] = []
        self.events: list[tuple[str, Object, int]] = []
        self.unreachable = False
        self.writing = asyncio.Event()
        self.may_finish = asyncio.Event()
        self.may_finish.set()

    async def get(self, res: ClusterResource, namespace: str, name: str) -> Object:
        self._reached()
        return copy.deepcopy(self._found(namespace, name))

    async def create(
        self, res: ClusterResource, obj: Object, *, namespace: str = "", dry_run: bool = False, field_manager: str = ""
    ) -> Object:
        await self._write(f"create {field_manager}{' dry' if dry_run else ''}")
        key = obj["metadata"]["namespace"], obj["metadata"]["name"]
        if key in self.objects:
            raise errors.AlreadyExists(_RELEASES, key[1])
        stored = copy.deepcopy(obj)
        stored["metadata"] |= {"uid": f"u-{key[1]}", "generation": 1, "creationTimestamp": "2026-01-01T00:00:00Z"}
        return stored if dry_run else self._store("ADDED", stored)

    async def update(
        self,
        res: ClusterResource,
        obj: Object,
        *,
        subresource: str = "",
        dry_run: bool = False,
        field_manager: str = "",
    ) -> Object:
        await self._write("update dry" if dry_run else "update")
        stored_release = self._found(obj["metadata"]["namespace"], obj["metadata"]["name"])
        if stored_release["metadata"]["resourceVersion"] != obj["metadata"]["resourceVersion"]:
            raise errors.Conflict(_RELEASES, obj["metadata"]["name"])
        stored = copy.deepcopy(obj) | {"status": stored_release.get("status", {})}
        return stored if dry_run else self._store("MODIFIED", stored)

    async def delete(
        self, res: ClusterResource, namespace: str, name: str, *, options: Mapping[str, Any] | None = None
    ) -> Object:
        assert options is not None
        await self._write(f"delete {sorted(options)}")
        stored_release = self._found(namespace, name)
        if options["preconditions"]["resourceVersion"] != stored_release["metadata"]["resourceVersion"]:
            raise errors.Conflict(GroupKind(HELMRELEASES.group, HELMRELEASES.kind), name, "Precondition failed")
        if stored_release["metadata"].get("finalizers"):
            stored_release["metadata"]["deletionTimestamp"] = "2026-01-02T00:00:00Z"
            return self._store("MODIFIED", stored_release)
        if "dryRun" not in options:
            del self.objects[namespace, name]
            self.rv += 1
            deleted = stored_release | {"metadata": stored_release["metadata"] | {"resourceVersion": str(self.rv)}}
            self.events.append(("DELETED", deleted, self.rv))
        return {"kind": "Status", "status": "Success"}

    def put(self, obj: Object) -> None:
        self._store("ADDED", copy.deepcopy(obj))

    def deliver(self, feed: TenantFeed) -> None:
        for type_, obj, rv in self.events:
            key = Key(obj["metadata"]["namespace"], obj["metadata"]["name"])
            if type_ == "DELETED":
                self.store.pop(key, None)
            else:
                self.store[key] = trim_release(obj)
            feed.apply(type_, trim_release(obj), rv)
        self.events.clear()

    async def _write(self, what: str) -> None:
        self._reached()
        self.writes.append(what)
        self.writing.set()
        await self.may_finish.wait()

    def _reached(self) -> None:
        if self.unreachable:
            raise ClusterUnreachable

    def _found(self, namespace: str, name: str) -> Object:
        found = self.objects.get((namespace, name))
        if found is None:
            raise errors.from_status(errors.NotFound(_RELEASES, name).status(), 404)
        return found

    def _store(self, type_: str, obj: Object) -> Object:
        self.rv += 1
        obj["metadata"]["resourceVersion"] = str(self.rv)
        self.objects[obj["metadata"]["namespace"], obj["metadata"]["name"]] = obj
        self.events.append((type_, copy.deepcopy(obj), self.rv))
        return copy.deepcopy(obj)


class World:
    def __init__(self) -> None:
        self.cluster = FakeReleaseCluster()
        resource = tenant_resource()
        self.cache = WatchCache(resource)
        self.retries = 0
        self.feed = TenantFeed(resource=resource, cache=self.cache, retry=self._retry)
        run_coroutine(self.feed.replace([], self.cluster.rv))
        self.backend = ReleaseBackend(
            cluster=cast(Any, self.cluster),
            cache=self.cache,
            feed=self.feed,
            releases=ReleaseCache(self.cluster.store),
            settings=ReleaseSettings,
        )

    def _retry(self) -> None:
        self.retries += 1

    async def create(self, obj: Object, *, dry_run: bool = False) -> Object:
        return await self.backend.create(obj, dry_run=dry_run, context=CONTEXT)

    async def update(self, new: Object, current: Object, *, dry_run: bool = False) -> Object:
        return await self.backend.update(KEY, new, current, dry_run=dry_run, context=CONTEXT)

    async def delete(self, current: Object, options: DeleteOptions = DeleteOptions()) -> Any:  # noqa: B008
        return await self.backend.delete(KEY, current, options, context=CONTEXT)


CONTEXT = cast(RequestContext, None)


@pytest.fixture
def world() -> World:
    return World()


def tenant(**spec: Any) -> Object:
    return {"metadata": {"name": "alice", "namespace": "tenant-root"}, "spec": spec}


def changed(current: Object, **spec: Any) -> Object:
    return copy.deepcopy(current) | {"spec": current["spec"] | spec}


async def test_create_returns_the_tenant_as_stored(world: World) -> None:
    created = await world.create(tenant(host=""))
    assert created["metadata"]["resourceVersion"] == "11"
    assert created["metadata"]["uid"] == "u-tenant-alice"
    assert created["status"] == {"namespace": "tenant-alice"}
    assert world.cluster.writes == ["create tenant-apiserver"]


async def test_a_read_after_a_write_waits_for_the_cache(world: World) -> None:
    await world.create(tenant())
    reading = asyncio.create_task(world.backend.read(KEY, live=False))
    await asyncio.sleep(0)
    assert not reading.done()
    world.cluster.deliver(world.feed)
    found = await reading
    assert found is not None
    assert found["metadata"]["resourceVersion"] == "11"


async def test_a_second_create_is_already_exists_for_the_tenant(world: World) -> None:
    await world.create(tenant())
    with pytest.raises(errors.AlreadyExists) as raised:
        await world.create(tenant())
    assert raised.value.message == 'tenants.apps.cozystack.io "alice" already exists'


async def test_a_foreign_helmrelease_is_never_adopted(world: World) -> None:
    foreign = {"metadata": {"name": "tenant-alice", "namespace": "tenant-root", "uid": "f"}, "spec": {}}
    world.cluster.put(foreign)
    with pytest.raises(errors.Conflict, match="does not store a Tenant"):
        await world.create(tenant())
    assert await world.backend.read(KEY, live=True) is None


async def test_an_update_preserves_hidden_fields_without_a_read(world: World) -> None:
    release = to_release(tenant(), None, ReleaseSettings())
    release["metadata"] |= {"uid": "u", "finalizers": [names.FLUX_FINALIZER]}
    release["spec"]["suspend"] = True
    release["status"] = {"lastAttemptedRevision": "1"}
    world.cluster.put(release)
    world.cluster.deliver(world.feed)
    current = await world.backend.read(KEY, live=False)
    assert current is not None
    world.cluster.get = None  # type: ignore[method-assign, assignment]
    updated = await world.update(changed(current, host="a.example"), current)
    stored = world.cluster.objects["tenant-root", "tenant-alice"]
    assert updated["spec"]["host"] == stored["spec"]["values"]["host"] == "a.example"
    assert stored["spec"]["suspend"] is True
    assert stored["metadata"]["finalizers"] == [names.FLUX_FINALIZER]
    assert updated["status"]["version"] == "1"


async def test_an_update_that_changes_nothing_writes_nothing(world: World) -> None:
    current = await world.create(tenant())
    assert await world.update(copy.deepcopy(current), current) == current
    assert world.cluster.writes == ["create tenant-apiserver"]


async def test_consecutive_updates_do_not_wait_for_the_watch(world: World) -> None:
    first = await world.create(tenant())
    second = await world.update(changed(first, host="a.example"), first)
    third = await world.update(changed(second, host="b.example"), second)
    assert third["spec"]["host"] == "b.example"


async def test_an_update_of_a_changed_release_is_a_conflict_for_the_tenant(world: World) -> None:
    first = await world.create(tenant())
    world.cluster.deliver(world.feed)
    await world.update(changed(first, host="a.example"), first)
    with pytest.raises(errors.Conflict) as raised:
        await world.update(changed(first, host="b.example"), first)
    assert raised.value.message.startswith('Operation cannot be fulfilled on tenants.apps.cozystack.io "alice": ')
    assert world.cluster.objects["tenant-root", "tenant-alice"]["spec"]["values"]["host"] == "a.example"


async def test_an_update_of_a_deleted_tenant_is_not_found(world: World) -> None:
    current = await world.create(tenant())
    await world.delete(current)
    with pytest.raises(errors.NotFound) as raised:
        await world.update(changed(current, host="a.example"), current)
    assert raised.value.message == 'tenants.apps.cozystack.io "alice" not found'


async def test_a_dry_run_is_sent_to_the_cluster_and_stores_nothing(world: World) -> None:
    dry = await world.create(tenant(), dry_run=True)
    assert "resourceVersion" not in dry["metadata"]
    assert world.cluster.objects == {}
    current = await world.create(tenant())
    await world.update(changed(current, host="a.example"), current, dry_run=True)
    deleted = await world.delete(current, DeleteOptions(dry_run=True))
    assert deleted.removed
    assert world.cluster.objects["tenant-root", "tenant-alice"]["metadata"]["resourceVersion"] == "11"
    world.cluster.deliver(world.feed)
    assert await world.backend.read(KEY, live=False) == current


async def test_the_next_read_does_not_find_a_deleted_tenant(world: World) -> None:
    current = await world.create(tenant())
    world.cluster.deliver(world.feed)
    deleted = await world.delete(current)
    assert deleted.removed
    assert deleted.object == current
    reading = asyncio.create_task(world.backend.read(KEY, live=False))
    await asyncio.sleep(0)
    assert not reading.done()
    world.cluster.deliver(world.feed)
    assert await reading is None
    assert await world.backend.confirm_absent(KEY)


async def test_a_tenant_with_a_finalizer_is_shown_as_terminating(world: World) -> None:
    current = await world.create(tenant() | {"metadata": tenant()["metadata"] | {"finalizers": ["example.org/x"]}})
    deleted = await world.delete(current, DeleteOptions(propagation_policy="Foreground"))
    assert not deleted.removed
    assert deleted.object["metadata"]["deletionTimestamp"]
    assert world.cluster.writes[-1] == "delete ['preconditions', 'propagationPolicy']"
    released = copy.deepcopy(deleted.object)
    del released["metadata"]["finalizers"]
    await world.update(released, deleted.object)
    reading = asyncio.create_task(world.backend.read(KEY, live=False))
    await asyncio.sleep(0)
    assert not reading.done()
    world.cluster.deliver(world.feed)
    release = world.cluster.objects["tenant-root", "tenant-alice"]
    world.feed.apply("DELETED", release | {"metadata": release["metadata"] | {"resourceVersion": "99"}}, 99)
    assert await reading is None


async def test_a_delete_is_conditional_on_the_admitted_state(world: World) -> None:
    current = await world.create(tenant())
    await world.update(changed(current, host="a.example"), current)
    with pytest.raises(errors.Conflict, match=r'Tenant\.apps\.cozystack\.io "alice": Precondition failed'):
        await world.delete(current)


async def test_a_tenant_missing_from_the_cache_is_awaited(world: World) -> None:
    world.cluster.put(to_release(tenant(), None, ReleaseSettings()))
    assert not await world.backend.confirm_absent(KEY)
    reading = asyncio.create_task(world.backend.read(KEY, live=False))
    world.cluster.deliver(world.feed)
    assert await reading is not None


async def test_during_an_outage_reads_have_a_warning_and_writes_fail(world: World) -> None:
    current = await world.create(tenant())
    world.cluster.deliver(world.feed)
    world.cluster.unreachable = True
    world.feed.set_cluster_error(ClusterUnreachable())
    warnings: list[str] = []
    context = cast(RequestContext, type("Context", (), {"warn": staticmethod(warnings.append)}))
    world.backend.before_read(context)
    assert len(warnings) == 1
    assert "cannot be reached" in warnings[0]
    assert await world.backend.read(KEY, live=False) == current
    for write in (
        world.create(tenant()),
        world.update(changed(current, host="a.b"), current),
        world.delete(current),
    ):
        with pytest.raises(errors.ServiceUnavailable):
            await write
    with pytest.raises(errors.ServiceUnavailable):
        await world.backend.confirm_absent(KEY)
    world.feed.set_cluster_error(None)
    world.backend.before_read(context)
    assert len(warnings) == 1


async def test_a_successful_call_after_an_outage_ends_the_informers_delay(world: World) -> None:
    await world.create(tenant())
    assert world.retries == 0
    world.feed.set_cluster_error(ClusterUnreachable())
    await world.backend.confirm_absent(Key("tenant-root", "alice"))
    assert world.retries == 1


async def test_a_missing_crd_is_not_an_absent_tenant(world: World) -> None:
    async def get(*_: object) -> Object:
        raise errors.from_status(errors.UnknownPath().status(), 404)

    world.cluster.get = get  # type: ignore[method-assign, assignment]
    with pytest.raises(errors.ServiceUnavailable):
        await world.backend.confirm_absent(KEY)


async def test_a_write_completes_although_its_request_is_cancelled(world: World) -> None:
    world.cluster.may_finish.clear()
    writing = asyncio.create_task(world.create(tenant()))
    await world.cluster.writing.wait()
    writing.cancel()
    await asyncio.sleep(0)
    assert not writing.done()
    world.cluster.may_finish.set()
    with pytest.raises(asyncio.CancelledError):
        await writing
    assert ("tenant-root", "tenant-alice") in world.cluster.objects


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
    assert found["status"] == {"namespace": "tenant-alice"}


async def test_another_helmrelease_only_advances_the_version(world: World) -> None:
    world.cluster.put({"metadata": {"name": "other", "namespace": "x", "uid": "o"}})
    world.cluster.deliver(world.feed)
    assert len(world.cache) == 0
    assert world.cache.rv == 11


async def test_errors_of_the_cluster_keep_their_code(world: World) -> None:
    async def update(*_: object, **__: object) -> Object:
        raise StatusError(507, "Other", 'helmreleases.helm.toolkit.fluxcd.io "tenant-alice" is too much', details=None)

    current = await world.create(tenant())
    world.cluster.update = update  # type: ignore[method-assign]
    with pytest.raises(StatusError) as raised:
        await world.update(changed(current, host="a.example"), current)
    assert raised.value.code == 507
