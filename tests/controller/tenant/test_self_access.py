"""The Role and the RoleBinding by which people see their own Tenant, from its creation to its deletion."""

from __future__ import annotations

import logging

import pytest

from apiserver.meta import errors
from apiserver.meta.resource import GroupResource, Key, Object
from registry.cluster.interface import CLUSTERROLES, HELMRELEASES, NAMESPACES, ROLEBINDINGS, ROLES, ClusterResource
from registry.names import TENANT_FINALIZER
from tests.controller.tenant.tenant_world import World
from tests.tenant_objects import release
from tests.virtual_time import virtual

KINDS = (ROLES, ROLEBINDINGS)
NAME = "cozy:tenant-self:alpha"


def objects(world: World, namespace: str = "tenant-root", name: str = NAME) -> list[Object | None]:
    return [world.cluster.peek(kind, namespace, name) for kind in KINDS]


@virtual
async def test_every_tenant_but_the_root_has_a_role_in_its_parents_namespace() -> None:
    world = World()
    async with world.running():
        await world.create("alpha")
        await world.create("beta", "tenant-alpha")
    assert all(objects(world))
    assert all(objects(world, "tenant-alpha", "cozy:tenant-self:beta"))
    assert not any(objects(world, name="cozy:tenant-self:root"))
    assert world.content(ROLES, "tenant-root", NAME)["rules"][0]["resourceNames"] == ["alpha"]
    labels = world.content(ROLES, "tenant-root", NAME)["metadata"]["labels"]
    assert labels == {"app.kubernetes.io/managed-by": "tenant-controller"}


@virtual
@pytest.mark.parametrize("settings", [{}, {"tenants": {"chart": "flux"}}])
async def test_a_restart_and_another_pass_write_nothing(settings: dict[str, object]) -> None:
    """The chart has no such objects: they are ours whether Flux installs charts or not."""
    world = World(settings=settings)
    async with world.running():
        await world.create("alpha")
    world.cluster.clear_writes()
    second = World(world.cluster, settings=settings)
    async with second.running():
        await second.reconcile_all()
    assert second.writes(*KINDS) == []


@virtual
@pytest.mark.parametrize("kind", KINDS)
async def test_an_edited_or_deleted_object_is_restored_with_one_write(kind: ClusterResource) -> None:
    world = World()
    async with world.running():
        await world.create("alpha")
        await world.settle()
        before = world.content(kind, "tenant-root", NAME)
        world.cluster.clear_writes()
        change: Object = {"rules": []} if kind == ROLES else {"subjects": []}
        await world.edit(kind, "tenant-root", NAME, change)
        await world.settle()
        assert world.count_writes() == {("patch", kind.plural): 2}
        world.cluster.clear_writes()
        await world.cluster.delete(kind, "tenant-root", NAME)
        await world.settle()
        assert world.count_writes() == {("delete", kind.plural): 1, ("create", kind.plural): 1}
    after = world.content(kind, "tenant-root", NAME)
    assert [after.get(field) for field in ("rules", "subjects")] == [
        before.get(field) for field in ("rules", "subjects")
    ]


@virtual
async def test_both_are_deleted_before_the_finalizer_is_removed() -> None:
    """The binding first, and both after the Namespace: the people see their Tenant to the end."""
    world = World()
    async with world.running():
        await world.create("alpha")
        await world.settle()
        world.cluster.clear_writes()
        await world.delete("alpha")
        await world.settle()
    order = [(write.verb, write.resource.kind) for write in world.cluster.writes]
    assert order[-4:] == [
        ("delete", "Namespace"),
        ("delete", "RoleBinding"),
        ("delete", "Role"),
        ("patch", "HelmRelease"),
    ]
    assert not any(objects(world))


@virtual
async def test_nothing_remains_of_a_tenant_that_lost_its_finalizer() -> None:
    """No garbage collector is needed: the fake cluster has none."""
    world = World()
    async with world.running():
        await world.create("alpha")
        await world.settle()
        await world.delete("alpha")
        await world.edit(HELMRELEASES, "tenant-root", "tenant-alpha", {"metadata": {"finalizers": None}})
        await world.settle()
    assert not any(objects(world))


@virtual
async def test_a_rejected_deletion_keeps_the_tenant_and_a_condition_says_so() -> None:
    world = World()
    rejects = True

    async def before(verb: str, res: ClusterResource, key: Key) -> None:
        if rejects and verb == "delete" and res == ROLES:
            raise errors.Forbidden(GroupResource(res.group, res.plural), key.name, "not for you")

    async with world.running():
        await world.create("alpha")
        await world.settle()
        world.cluster.before = before
        await world.delete("alpha")
        await world.settle()
        message = world.tenant("alpha")["status"]["conditions"][-1]["message"]
        assert "rejected the deletion of the Role or RoleBinding of the tenant in tenant-root" in message
        rejects = False
        await world.settle(2000)
    assert not any(objects(world))
    assert world.cluster.peek(HELMRELEASES, "tenant-root", "tenant-alpha") is None


@virtual
async def test_a_successor_of_the_same_name_owns_the_objects_that_it_finds() -> None:
    world = World()
    async with world.running():
        await world.create("alpha")
    body = {"metadata": {"finalizers": None}}
    await world.edit(HELMRELEASES, "tenant-root", "tenant-alpha", body)
    await world.delete("alpha")
    successor = release("alpha", finalizer=True)
    await world.cluster.create(HELMRELEASES, successor)
    created = world.cluster.peek(HELMRELEASES, "tenant-root", "tenant-alpha")
    assert created is not None
    assert created["metadata"]["finalizers"] == [TENANT_FINALIZER]
    async with World(world.cluster).running():
        pass
    for found in objects(world):
        assert found is not None
        assert [each["uid"] for each in found["metadata"]["ownerReferences"]] == [created["metadata"]["uid"]]


@virtual
async def test_a_tenant_without_a_namespace_of_its_own_grants_nothing() -> None:
    """The groups are named after the namespace, which belongs to somebody else."""
    world = World()
    world.cluster.add(NAMESPACES, {"metadata": {"name": "tenant-alpha"}})
    async with world.running():
        await world.create("alpha")
    assert not any(objects(world))


@virtual
async def test_a_missing_role_is_one_line_in_the_log_and_an_event_and_condition_of_each_tenant(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)
    world = World(without_roles=["cozy:tenant:use"])
    async with world.running():
        await world.create("alpha")
        await world.create("bob")
        await world.settle()
        for name in ("alpha", "bob"):
            assert world.conditions(name)["AccessReady"] == ("False", "ClusterRoleMissing")
            assert world.conditions(name)["Ready"] == ("False", "ClusterRoleMissing")
            assert world.events.of(name) == [("Warning", "ClusterRoleMissing")]
        [line] = [each.getMessage() for each in caplog.records if "missing" in each.getMessage()]
        assert "the ClusterRole cozy:tenant:use, to which" in line
        await world.cluster.create(CLUSTERROLES, {"metadata": {"name": "cozy:tenant:use"}})
        await world.settle()
        assert world.conditions("alpha")["Ready"] == ("True", "Reconciled")
        assert world.conditions("alpha")["AccessReady"] == ("True", "Reconciled")
        await world.cluster.delete(CLUSTERROLES, "", "cozy:tenant:view")
        await world.cluster.delete(CLUSTERROLES, "", "cozy:tenant")
        await world.settle()
    [message] = [
        each["message"] for each in world.tenant("bob")["status"]["conditions"] if each["type"] == "AccessReady"
    ]
    assert message.startswith(
        "the ClusterRoles cozy:tenant, cozy:tenant:view, to which the tenants' people are bound, do"
    )
