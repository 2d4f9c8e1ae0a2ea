from __future__ import annotations

import asyncio
import copy
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from apiserver.meta import errors
from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Key, Object
from apiserver.request.context import RequestContext
from apiserver.request.options import DeleteOptions, ListOptions
from apiserver.storage import progress
from registry import names
from registry.cluster.interface import ClusterUnreachable, NotServed
from registry.generic.store import Store
from registry.tenant.convert import to_release
from registry.tenant.release_settings import ReleaseSettings
from registry.tenant.strategy import TenantStrategy
from tests.apiserver.endpoints.request_contexts import ALICE, make_context
from tests.registry.tenant.release_cluster import KEY, World, tenant

MISSING_FLUX = (
    "kube-apiserver does not serve HelmReleases, so Flux has to be installed, or at least its CustomResourceDefinition "
    "helmreleases.helm.toolkit.fluxcd.io"
)


def changed(current: Object, **spec: Any) -> Object:
    return copy.deepcopy(current) | {"spec": current["spec"] | spec}


async def test_create_returns_the_tenant_as_stored(world: World) -> None:
    created = await world.create(tenant(host=""))
    assert created["metadata"]["resourceVersion"] == "11"
    assert created["metadata"]["uid"] == "u-tenant-alice"
    assert (created["status"]["namespace"], created["status"]["observedGeneration"]) == ("tenant-alice", -1)
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


async def test_while_flux_is_missing_clients_are_told_what_to_install(world: World) -> None:
    current = await world.create(tenant())
    world.cluster.deliver(world.feed)
    world.feed.set_cluster_error(NotServed())
    context = make_context(user=ALICE)
    world.backend.before_read(context)
    assert context.warnings == [f"{MISSING_FLUX}: the response may be out of date"]
    world.cluster.serves_releases = False
    for call in (world.create(tenant()), world.backend.read(KEY, live=True), world.delete(current)):
        with pytest.raises(errors.ServiceUnavailable, match=MISSING_FLUX):
            await call


async def test_before_anything_is_read_lists_and_writes_name_what_to_install(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message of the 429 is kube-apiserver's own; the warning says what it waits for."""
    monkeypatch.setattr(progress, "_READY_SECONDS", 0.01)
    world.cache.progress.ready = False
    world.feed.set_cluster_error(NotServed())
    store = Store(backend=world.backend, strategy=TenantStrategy())

    async def list_all(context: RequestContext) -> object:
        return await store.list(context, "", ListOptions())

    async def delete(context: RequestContext) -> object:
        return await store.delete(context, KEY, DeleteOptions(), admitted)

    async def update(context: RequestContext) -> object:
        return await store.update(context, KEY, unchanged, admitted, dry_run=False)

    async def answer(call: Callable[[RequestContext], Awaitable[object]]) -> None:
        context = make_context(user=ALICE)
        with pytest.raises(errors.TooManyRequests, match=re.escape("storage is (re)initializing")):
            await call(context)
        assert context.warnings == [MISSING_FLUX]

    await asyncio.gather(*(answer(call) for call in (list_all, delete, update)))


async def unchanged(current: Object | None) -> Object:
    return current or {}


@asynccontextmanager
async def admitted(new: Object | None, old: Object | None) -> AsyncIterator[None]:
    yield


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


@pytest.mark.parametrize(
    ("error", "why"),
    [
        pytest.param(ClusterUnreachable(), "kube-apiserver cannot be reached at present", id="unreachable"),
        pytest.param(
            StatusError(
                403,
                "Forbidden",
                'helmreleases.helm.toolkit.fluxcd.io is forbidden: User "system:anonymous" cannot list resource '
                '"helmreleases" in API group "helm.toolkit.fluxcd.io" at the cluster scope',
            ),
            "the server lacks the right to list helmreleases.helm.toolkit.fluxcd.io",
            id="a right is missing",
        ),
        pytest.param(
            StatusError(403, "Forbidden", "a webhook says no"),
            "the server lacks the right to read the objects",
            id="a webhook refuses",
        ),
        pytest.param(
            StatusError(500, "InternalError", "conversion webhook failed"),
            "kube-apiserver answers with an error at present",
            id="an error of kube-apiserver",
        ),
    ],
)
async def test_the_warning_says_why_the_cluster_is_not_read(world: World, error: StatusError, why: str) -> None:
    world.feed.set_cluster_error(error)
    for ready, suffix in ((True, ": the response may be out of date"), (False, "")):
        world.cache.progress.ready = ready
        context = make_context(user=ALICE)
        world.backend.before_read(context)
        assert context.warnings == [why + suffix]


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


async def test_errors_of_the_cluster_keep_their_code(world: World) -> None:
    async def update(*_: object, **__: object) -> Object:
        raise StatusError(507, "Other", 'helmreleases.helm.toolkit.fluxcd.io "tenant-alice" is too much', details=None)

    current = await world.create(tenant())
    world.cluster.update = update  # type: ignore[method-assign]
    with pytest.raises(StatusError) as raised:
        await world.update(changed(current, host="a.example"), current)
    assert raised.value.code == 507
