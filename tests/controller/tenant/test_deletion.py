"""A Tenant is deleted in order and completely, and its conditions say what the deletion waits for."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from apiserver.meta import errors
from apiserver.meta.resource import GroupResource, Key, Object
from registry.cluster.interface import HELMRELEASES, NAMESPACES, ClusterResource
from registry.cluster.object_store import ObjectStore
from registry.names import FLUX_FINALIZER, TENANT_FINALIZER
from registry.tenantgateway.types import TENANTGATEWAYS
from tests.controller.tenant.tenant_world import World
from tests.fake_cluster import FakeCluster
from tests.tenant_objects import release
from tests.virtual_time import virtual

WAITING_FOR_CHILDREN = "waiting for the deletion of the child tenants in namespace tenant-alpha"


def terminating(world: World, name: str, namespace: str = "tenant-root") -> tuple[str, str]:
    """Reason and message of the condition Terminating."""
    [found] = [each for each in world.tenant(name, namespace)["status"]["conditions"] if each["type"] == "Terminating"]
    assert found["status"] == "True"
    assert world.conditions(name, namespace)["Ready"] == ("False", "Terminating")
    return found["reason"], found["message"]


async def set_finalizers(world: World, name: str, finalizers: Sequence[str], namespace: str = "tenant-root") -> None:
    body = {"metadata": {"finalizers": list(finalizers) or None}}
    await world.edit(HELMRELEASES, namespace, f"tenant-{name}", body)


@virtual
async def test_a_tenant_without_the_finalizer_gets_it_before_its_namespace() -> None:
    world = World()
    async with world.running():
        world.cluster.clear_writes()
        await world.cluster.create(HELMRELEASES, release("alpha"))
    found = world.cluster.peek(HELMRELEASES, "tenant-root", "tenant-alpha")
    assert found is not None
    assert found["metadata"]["finalizers"] == [TENANT_FINALIZER]
    assert world.writes(HELMRELEASES, NAMESPACES) == [
        ("create", "helmreleases", "tenant-alpha"),
        ("patch", "helmreleases", "tenant-alpha"),
        ("create", "namespaces", "tenant-alpha"),
        ("patch", "helmreleases", "tenant-alpha"),
    ]
    root = world.cluster.peek(HELMRELEASES, "tenant-root", "tenant-root")
    assert root is not None
    assert "finalizers" not in root["metadata"]


@virtual
async def test_children_are_deleted_first_then_the_namespace_and_last_the_tenant() -> None:
    world = World()
    async with world.running():
        await world.create("alpha")
        await world.create("beta", "tenant-alpha")
        await world.create("c", "tenant-alpha-beta")
        await world.settle()
        world.cluster.clear_writes()
        await world.delete("alpha", cascade=True)
    deleted = [(write.resource.kind, write.key.name) for write in world.cluster.writes if write.verb == "delete"]
    assert deleted == [
        ("HelmRelease", "tenant-alpha"),
        ("HelmRelease", "tenant-beta"),
        ("HelmRelease", "tenant-c"),
        ("Namespace", "tenant-alpha-beta-c"),
        ("RoleBinding", "cozy:tenant-self:c"),
        ("Role", "cozy:tenant-self:c"),
        ("Namespace", "tenant-alpha-beta"),
        ("RoleBinding", "cozy:tenant-self:beta"),
        ("Role", "cozy:tenant-self:beta"),
        ("Namespace", "tenant-alpha"),
        ("RoleBinding", "cozy:tenant-self:alpha"),
        ("Role", "cozy:tenant-self:alpha"),
    ]
    remaining = [tenant.key.name for tenant in world.tree]
    assert remaining == ["root"]


@virtual
async def test_the_condition_names_what_blocks_and_nothing_is_deleted_before_its_turn() -> None:
    world = World()
    async with world.running():
        await world.create("alpha", gateway=True)
        await world.create("beta", "tenant-alpha")
        await world.settle()
        await set_finalizers(world, "beta", [TENANT_FINALIZER, "example.org/theirs"], "tenant-alpha")
        await set_finalizers(world, "alpha", [TENANT_FINALIZER, FLUX_FINALIZER])
        await world.delete("alpha", cascade=True)
        await world.settle()
        assert terminating(world, "alpha") == (
            "ChildTenantsRemain",
            WAITING_FOR_CHILDREN,
        )
        assert world.cluster.peek(NAMESPACES, "", "tenant-alpha-beta") is None
        await set_finalizers(world, "beta", [], "tenant-alpha")
        await world.settle()
        reason, message = terminating(world, "alpha")
        assert reason == "FluxUninstalls"
        assert "finalizers.fluxcd.io is on HelmRelease tenant-root/tenant-alpha" in message
        assert "deletionTimestamp" not in world.content(TENANTGATEWAYS, "tenant-alpha", "cozystack")["metadata"]
        await world.edit_namespace("tenant-alpha", {"finalizers": ["example.org/theirs"]})
        await set_finalizers(world, "alpha", [TENANT_FINALIZER])
        await world.settle()
        reason, message = terminating(world, "alpha")
        assert reason == "TenantGatewayRemains"
        assert "foregroundDeletion" in message
        assert "deletionTimestamp" not in world.namespace("tenant-alpha")["metadata"]
        await world.edit(TENANTGATEWAYS, "tenant-alpha", "cozystack", {"metadata": {"finalizers": None}})
        await world.settle()
        assert terminating(world, "alpha") == ("NamespaceRemains", 'namespace "tenant-alpha" is being deleted')
        await world.edit_namespace("tenant-alpha", {"finalizers": None})
    assert world.cluster.peek(HELMRELEASES, "tenant-root", "tenant-alpha") is None
    assert world.cluster.peek(NAMESPACES, "", "tenant-alpha") is None
    reasons = [reason for _, reason in world.events.of("alpha")]
    expected = ["ChildTenantsRemain", "FluxUninstalls", "TenantGatewayRemains", "NamespaceRemains"]
    assert reasons[-4:] == expected


@virtual
async def test_messages_of_the_namespace_and_of_flux_are_passed_on() -> None:
    world = World()
    async with world.running():
        await world.create("alpha")
        await world.settle()
        await set_finalizers(world, "alpha", [TENANT_FINALIZER, FLUX_FINALIZER])
        found = world.cluster.peek(HELMRELEASES, "tenant-root", "tenant-alpha")
        assert found is not None
        uninstall_failed = {"type": "Ready", "status": "False", "reason": "UninstallFailed", "message": "hook failed"}
        await world.cluster.update(
            HELMRELEASES, {**found, "status": {"conditions": [uninstall_failed]}}, subresource="status"
        )
        await world.delete("alpha")
        await world.settle()
        assert terminating(world, "alpha")[1].endswith("; Flux reports: hook failed")
        await world.edit_namespace("tenant-alpha", {"finalizers": ["x/y"]})
        await set_finalizers(world, "alpha", [TENANT_FINALIZER])
        await world.settle()
        content_remains = {
            "type": "NamespaceFinalizersRemaining",
            "status": "True",
            "message": "x/z in 1 resource instances",
        }
        namespace = world.namespace("tenant-alpha")
        await world.cluster.update(
            NAMESPACES, {**namespace, "status": {"conditions": [content_remains]}}, subresource="status"
        )
        await world.settle()
        assert terminating(world, "alpha")[1].endswith("; x/z in 1 resource instances")
        await world.edit_namespace("tenant-alpha", {"finalizers": None})
    assert world.cluster.peek(HELMRELEASES, "tenant-root", "tenant-alpha") is None


@virtual
async def test_a_tenant_that_only_finalizers_of_others_hold_names_these() -> None:
    world = World()
    async with world.running():
        await world.create("alpha")
        await world.settle()
        await set_finalizers(world, "alpha", ["example.org/hold", TENANT_FINALIZER])
        await world.delete("alpha")
        await world.settle()
        assert world.cluster.peek(NAMESPACES, "", "tenant-alpha") is None
        expected = "everything of the tenant is deleted; finalizers of others remain: example.org/hold"
        assert terminating(world, "alpha") == ("FinalizersRemain", expected)
        await set_finalizers(world, "alpha", [])
    assert world.cluster.peek(HELMRELEASES, "tenant-root", "tenant-alpha") is None


@virtual
async def test_a_rejected_deletion_is_reported_and_does_not_stop_the_others() -> None:
    cluster = FakeCluster()
    rejected = {"tenant-beta", "tenant-bob"}

    async def before(verb: str, res: ClusterResource, key: Key) -> None:
        if verb == "delete" and key.name in rejected:
            raise errors.Forbidden(GroupResource(res.group, res.plural), key.name, "not for you")

    world = World(cluster)
    async with world.running():
        await world.create("alpha")
        await world.create("bob")
        for child in ("beta", "gamma"):
            await world.create(child, "tenant-alpha")
        await world.settle()
        await world.delete("alpha", cascade=True)
        await world.delete("bob")
        cluster.before = before
        await world.settle()
        reason, message = terminating(world, "alpha")
        assert reason == "ChildTenantsRemain"
        # the cluster's text names the child
        assert (
            message
            == f"{WAITING_FOR_CHILDREN}; the cluster rejected that of at least one, which the log names: Forbidden"
        )
        assert terminating(world, "bob")[0] == "Refused"
        assert "not for you" in terminating(world, "bob")[1]
        assert cluster.peek(HELMRELEASES, "tenant-alpha", "tenant-gamma") is None
        rejected.clear()
        await world.settle(3000)
    assert [tenant.key.name for tenant in world.tree] == ["root"]


@virtual
async def test_a_conflict_on_the_deletion_of_a_child_is_retried_and_not_reported() -> None:
    cluster = FakeCluster()
    busy = {"tenant-beta"}

    async def before(verb: str, res: ClusterResource, key: Key) -> None:
        if verb == "delete" and key.name in busy:
            raise errors.Conflict(GroupResource(res.group, res.plural), key.name, "the object has been modified")

    world = World(cluster)
    async with world.running():
        await world.create("alpha")
        await world.create("beta", "tenant-alpha")
        await world.settle()
        await world.delete("alpha", cascade=True)
        cluster.before = before
        await world.settle()
        assert terminating(world, "alpha") == (
            "ChildTenantsRemain",
            WAITING_FOR_CHILDREN,
        )
        busy.clear()
        await world.settle(3000)
    assert [tenant.key.name for tenant in world.tree] == ["root"]


@virtual
async def test_children_that_are_being_deleted_are_not_read_again_when_one_is_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world, children = World(), [f"c{number}" for number in range(20)]
    read: list[str] = []
    get = ObjectStore.get

    def counting(store: ObjectStore, key: Key) -> Object | None:
        read.append(key.name)
        return get(store, key)

    async with world.running():
        await world.create("alpha")
        for child in children:
            await world.create(child, "tenant-alpha")
        await world.settle()
        for child in children:
            await set_finalizers(world, child, [TENANT_FINALIZER, "example.org/held"], "tenant-alpha")
        await world.delete("alpha", cascade=True)
        await world.settle()
        monkeypatch.setattr(ObjectStore, "get", counting)
        await set_finalizers(world, "c7", [], "tenant-alpha")
        await world.settle()
        assert terminating(world, "alpha")[0] == "ChildTenantsRemain"
        # the parent was reconciled
        assert "tenant-alpha" in read
        assert {f"tenant-{child}" for child in children} & set(read) <= {"tenant-c7"}


@virtual
async def test_a_protected_namespace_keeps_its_tenant_until_the_label_is_removed() -> None:
    world = World()
    async with world.running():
        await world.create("alpha")
        await world.settle()
        await world.edit_namespace("tenant-alpha", {"labels": {"platform.cozystack.io/no-delete": "true"}})
        await world.delete("alpha")
        await world.settle()
        assert terminating(world, "alpha")[0] == "NamespaceProtected"
        await world.edit_namespace("tenant-alpha", {"labels": {"platform.cozystack.io/no-delete": None}})
    assert world.cluster.peek(NAMESPACES, "", "tenant-alpha") is None


@virtual
async def test_many_children_cost_few_status_writes() -> None:
    world = World()
    async with world.running():
        await world.create("alpha")
        for number in range(40):
            await world.create(f"c{number}", "tenant-alpha")
        await world.settle()
        world.cluster.clear_writes()
        await world.delete("alpha", cascade=True)
    status_writes = [write for write in world.cluster.writes if write.key == Key("tenant-root", "tenant-alpha")]
    assert len(status_writes) <= 8
    assert [tenant.key.name for tenant in world.tree] == ["root"]


@virtual
async def test_a_tenant_that_is_deleted_before_its_namespace_was_observed_leaves_none_behind() -> None:
    world = World()
    async with world.running():
        for number in range(20):
            await world.create(f"t{number}")
        for number in range(20):
            await world.delete(f"t{number}")
    remaining = [tenant.key.name for tenant in world.tree]
    assert remaining == ["root"]
    assert [each for each in range(20) if world.cluster.peek(NAMESPACES, "", f"tenant-t{each}")] == []


@virtual
async def test_a_deletion_that_was_started_is_finished_by_a_new_process() -> None:
    world = World()
    async with world.running():
        await world.create("alpha")
        await world.create("beta", "tenant-alpha")
    await world.delete("alpha", cascade=True)
    async with World(world.cluster).running():
        pass
    for name in ("tenant-alpha", "tenant-alpha-beta"):
        assert world.cluster.peek(NAMESPACES, "", name) is None
    assert world.cluster.peek(HELMRELEASES, "tenant-root", "tenant-alpha") is None


@virtual
async def test_a_younger_tenant_with_the_same_namespace_is_deleted_without_it() -> None:
    """Of two Tenants with the same workload namespace, the older one owns it."""
    world = World()
    async with world.running():
        await world.create("a")
        await world.create("b", "tenant-a")
        await world.settle()
        # a HelmRelease that admission would not let through
        younger = release("a-b")
        younger["metadata"]["finalizers"] = [TENANT_FINALIZER]
        younger["metadata"]["creationTimestamp"] = "2027-01-01T00:00:00Z"
        world.cluster.add(HELMRELEASES, younger)
        await world.create("c", "tenant-a-b")
        await world.settle()
        await world.cluster.delete(HELMRELEASES, "tenant-root", "tenant-a-b")
    assert world.cluster.peek(HELMRELEASES, "tenant-root", "tenant-a-b") is None
    assert world.labels("tenant-a-b")["namespace.cozystack.io/host"] == "b.a.example.org"
    assert world.tenant("c", "tenant-a-b")["metadata"].get("deletionTimestamp") is None


@virtual
async def test_deleting_the_root_deletes_no_other_tenant() -> None:
    world = World()
    async with world.running():
        await world.create("alpha")
        await set_finalizers(world, "root", [FLUX_FINALIZER])
        await world.delete("root")
        await world.settle()
        assert "deletionTimestamp" not in world.tenant("alpha")["metadata"]
        await set_finalizers(world, "root", [])
    assert world.conditions("alpha")["Ready"] == ("True", "Reconciled")
    assert "deletionTimestamp" not in world.tenant("root")["metadata"]
