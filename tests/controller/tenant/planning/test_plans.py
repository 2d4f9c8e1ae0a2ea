"""Plans of Tenants: they are what the controllers then do, and planning itself changes nothing."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import pytest

from apiserver.meta.errors import NotFound
from apiserver.meta.resource import GroupResource, Key, Object
from controller.runtime.apply import covers
from controller.tenant.planning.planner import MOST_DESCENDANTS
from registry.cluster.interface import HELMRELEASES, LIMITRANGES, NAMESPACES, RESOURCEQUOTAS, SECRETS, ClusterResource
from registry.explain.diff.changes import PlannedChange, PlannedChanges
from registry.names import release_name
from tests.controller.tenant.tenant_world import World
from tests.controller.tenantgateway.gateway_world import CERTIFICATES, GATEWAYS, HTTPROUTES
from tests.virtual_time import virtual

ALICE = Key("tenant-root", "alice")
_FROM_CLUSTER = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "ownerReferences")


def _proposed(name: str, namespace: str, spec: Mapping[str, Any]) -> Object:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "apps.cozystack.io/v1alpha1", "kind": "Tenant", "metadata": metadata, "spec": dict(spec)}


async def _plan(world: World, key: Key, proposed: Object | None, hidden: Collection[Key] = ()) -> PlannedChanges:
    return await world.planner.plan(key, proposed, lambda each: each not in hidden)


def _names(found: PlannedChanges) -> set[tuple[str, str, str]]:
    return {(each.action, each.resource.kind, each.key.name) for each in found.changes}


def _comparable(resource: ClusterResource, obj: Object | None) -> Object | None:
    if obj is None:
        return None
    metadata = {name: each for name, each in obj["metadata"].items() if name not in _FROM_CLUSTER}
    # the time at which a Namespace is created
    metadata.pop("annotations", None)
    return {"metadata": metadata, **{name: each for name, each in obj.items() if name in ("spec", "data", "subjects")}}


def _assert_done(world: World, change: PlannedChange) -> None:
    now = world.cluster.peek(change.resource, *change.key)
    planned, stored = _comparable(change.resource, change.after), _comparable(change.resource, now)
    assert planned == stored or covers(stored, planned), (change.key, planned, stored)


@virtual
async def test_a_tenant_that_is_as_it_should_be_has_an_empty_plan() -> None:
    world = World(with_gateways=True)
    async with world.running():
        await world.create("alice", gateway=True, resourceQuotas={"cpu": "4"})
        await world.create("dev", "tenant-alice")
        await world.settle()
        for key in (ALICE, Key("tenant-alice", "dev"), Key("tenant-root", "root")):
            assert await _plan(world, key, None) == PlannedChanges([], [])
        spec = world.tenant("alice")["spec"]
        assert await _plan(world, ALICE, _proposed("alice", "tenant-root", spec)) == PlannedChanges([], [])


_BEFORE: Mapping[str, Any] = {"resourceQuotas": {"cpu": "4"}}


@pytest.mark.parametrize(
    "spec",
    [
        {**_BEFORE, "host": "alice.example.com"},
        {"resourceQuotas": {"cpu": "8", "requests.storage": "1Ti"}},
        {},
        {**_BEFORE, "gateway": True, "monitoring": True},
        {**_BEFORE, "gateway": True, "host": "alice.example.com", "schedulingClass": "fast"},
    ],
)
@virtual
async def test_what_is_planned_is_what_is_then_done(spec: Mapping[str, Any]) -> None:
    world = World(with_gateways=True)
    async with world.running():
        await world.create("alice", **_BEFORE)
        await world.create("dev", "tenant-alice")
        await world.create("bob")
        await world.settle()
        world.cluster.clear_writes()
        planned = await _plan(world, ALICE, _proposed("alice", "tenant-root", spec))
        assert world.cluster.writes == []
        await world.edit(HELMRELEASES, *ALICE._replace(name=release_name("alice")), {"spec": {"values": None}})
        await world.settle()
        await world.change("alice", **spec)
        await world.settle()
        for change in planned.changes:
            _assert_done(world, change)
        written = {
            (write.resource.kind, write.key)
            for write in world.cluster.writes
            if not write.subresource and write.resource not in (HELMRELEASES,)
        }
        again = await _plan(world, ALICE, _proposed("alice", "tenant-root", spec))
        assert again == PlannedChanges([], [])
        assert {(each.resource.kind, each.key) for each in planned.changes if each.resource != HELMRELEASES} <= written


@virtual
async def test_a_plan_of_a_new_tenant_has_everything_that_is_created_for_it() -> None:
    world = World(with_gateways=True)
    async with world.running():
        spec: dict[str, Any] = {"gateway": True, "resourceQuotas": {"cpu": "4"}}
        planned = await _plan(world, ALICE, _proposed("alice", "tenant-root", spec))
        assert {each.action for each in planned.changes} == {"create"}
        world.cluster.clear_writes()
        await world.create("alice", **spec)
        await world.settle()
        created = {(write.resource.kind, write.key) for write in world.cluster.writes if write.verb == "create"}
        assert {(each.resource.kind, each.key) for each in planned.changes} == created
        for change in planned.changes:
            if change.resource != HELMRELEASES:
                _assert_done(world, change)


@virtual
async def test_a_change_of_the_host_is_planned_for_descendants_and_at_the_gateway_of_an_ancestor() -> None:
    world = World(with_gateways=True, settings={"gateway": {"attachedNamespaces": []}})
    async with world.running():
        await world.create("alice", gateway=True)
        await world.create("dev", "tenant-alice")
        await world.settle()
        planned = await _plan(world, ALICE, _proposed("alice", "tenant-root", {"gateway": True, "host": "a.b.example"}))
    hosts = {
        each.key.name: (each.after or {})["metadata"]["labels"]["namespace.cozystack.io/host"]
        for each in planned.changes
        if each.resource == NAMESPACES
    }
    assert hosts == {"tenant-alice": "a.b.example", "tenant-alice-dev": "dev.a.b.example"}
    [gateway] = [each for each in planned.changes if each.resource == GATEWAYS]
    assert gateway.action == "update"
    assert "a.b.example" in str(gateway.after)


@virtual
async def test_without_its_gateway_the_objects_of_the_gateway_are_deleted() -> None:
    world = World(with_gateways=True)
    async with world.running():
        await world.create("alice", gateway=True)
        await world.settle()
        planned = await _plan(world, ALICE, _proposed("alice", "tenant-root", {}))
    deleted = {(kind, name) for action, kind, name in _names(planned) if action == "delete"}
    assert deleted >= {("TenantGateway", "cozystack"), ("Gateway", "cozystack"), ("Issuer", "cozystack-gateway")}


@virtual
async def test_a_replica_that_does_not_lead_plans_what_other_settings_would_change() -> None:
    world = World()
    async with world.running():
        await world.create("alice")
        await world.settle()
    idle = World(world.cluster, settings={"tenants": {"isolation": "off"}}, leads=False)
    async with idle.running():
        await idle.settle()
        planned = await _plan(idle, ALICE, None)
    kinds = {(action, kind) for action, kind, _ in _names(planned)}
    assert kinds == {("delete", "CiliumNetworkPolicy")}


@virtual
async def test_a_plan_of_quotas_leaves_the_totals_of_the_pools_as_they_are() -> None:
    world = World()
    async with world.running():
        await world.create("alice", resourceQuotas={"cpu": "10"})
        await world.create("dev", "tenant-alice")
        await world.settle()
        for name, used in (("tenant-alice", "1"), ("tenant-alice-dev", "2")):
            await world.edit(RESOURCEQUOTAS, name, "tenant-pool", {"status": {"used": {"limits.cpu": used}}})
        await world.settle()
        before = world.content(RESOURCEQUOTAS, "tenant-alice", "tenant-pool")["spec"]
        key = Key("tenant-alice", "dev")
        planned = await _plan(world, key, _proposed("dev", "tenant-alice", {"resourceQuotas": {"cpu": "5"}}))
        assert ("update", "ResourceQuota", "tenant-pool") in _names(planned)
        await world.reconcile_all()
        assert world.content(RESOURCEQUOTAS, "tenant-alice", "tenant-pool")["spec"] == before


@virtual
async def test_a_plan_looks_at_a_limited_number_of_descendants() -> None:
    world = World()
    async with world.running():
        await world.create("alice")
        for number in range(MOST_DESCENDANTS + 1):
            await world.create(f"t{number}", "tenant-alice")
        await world.settle()
        planned = await _plan(world, ALICE, _proposed("alice", "tenant-root", {"host": "a.example"}))
    assert planned.truncated
    changed = [each for each in planned.changes if each.resource == NAMESPACES]
    assert len(changed) == MOST_DESCENDANTS + 1


@virtual
async def test_a_tenant_that_is_being_deleted_has_no_plan_but_the_reason() -> None:
    world = World()
    async with world.running():
        await world.create("alice")
        await world.create("dev", "tenant-alice")
        await world.settle()
        await world.delete("alice")
        await world.settle()
        found = await _plan(world, ALICE, None)
    assert (found.changes, len(found.problems)) == ([], 1)


@virtual
async def test_the_secret_of_values_is_planned_with_its_values_which_only_the_answer_masks() -> None:
    world = World()
    async with world.running():
        await world.create("alice")
        await world.settle()
        planned = await _plan(world, ALICE, _proposed("alice", "tenant-root", {"host": "a.example"}))
    assert [each.key.namespace for each in planned.changes if each.resource == SECRETS] == ["tenant-alice"]
    assert CERTIFICATES.kind not in {kind for _, kind, _ in _names(planned)}
    assert HTTPROUTES.kind not in {kind for _, kind, _ in _names(planned)}


@virtual
async def test_a_plan_that_finds_an_object_missing_does_not_make_the_controllers_forget_it() -> None:
    """The object may be created between the read and its answer."""
    world = World()
    async with world.running():
        await world.create("alice", resourceQuotas={"cpu": "4"})
        await world.settle()

        async def miss(verb: str, resource: ClusterResource, key: Key) -> None:
            if verb == "get" and resource == LIMITRANGES:
                raise NotFound(GroupResource("", "limitranges"), key.name)

        world.cluster.before = miss
        await _plan(world, ALICE, _proposed("alice", "tenant-root", {}))
        world.cluster.before = None
        world.cluster.clear_writes()
        await world.change("alice", resourceQuotas=None)
        await world.settle()
        assert ("delete", "limitranges") in world.count_writes()


@virtual
async def test_a_plan_tells_nothing_of_hidden_tenants() -> None:
    """Not even by the number of objects."""

    async def planned(*children: str) -> PlannedChanges:
        world = World(with_gateways=True)
        async with world.running():
            await world.create("alice", gateway=True)
            for name in children:
                await world.create(name, "tenant-alice", gateway=True)
            await world.settle()
            proposed = _proposed("alice", "tenant-root", {"gateway": True, "etcd": True})
            return await _plan(
                world, ALICE, proposed, [Key("tenant-alice", each) for each in children if each != "dev"]
            )

    alone = await planned("dev")
    assert any(each.key.name == "tenant-alice-dev" for each in alone.changes)
    assert _names(await planned("dev", "one", "two")) == _names(alone)
    many = await planned("dev", *(f"t{number:03}" for number in range(MOST_DESCENDANTS)))
    assert (_names(many), many.truncated) == (_names(alone), False)
