"""Child Tenants are deleted only with a deletion that includes them; any other one waits until they are gone."""

from __future__ import annotations

from apiserver.meta.resource import Object
from registry.cluster.interface import HELMRELEASES, NAMESPACES
from tests.controller.tenant.tenant_world import World
from tests.tenant_objects import release
from tests.virtual_time import virtual

ANNOTATION = "apps.cozystack.io-tenant.cozystack.io/allow-cascading-deletion"
HELD = (
    "HasChildTenants",
    (
        "the tenant has child tenants in namespace tenant-alpha: delete them, or have them deleted with it: kubectl "
        'delete --cascade=foreground, or the annotation tenant.cozystack.io/allow-cascading-deletion: "true" on the '
        "tenant"
    ),
)


def terminating(world: World, name: str, namespace: str = "tenant-root") -> tuple[str, str]:
    """Reason and message of the condition Terminating."""
    [found] = [each for each in world.tenant(name, namespace)["status"]["conditions"] if each["type"] == "Terminating"]
    return found["reason"], found["message"]


def remaining(world: World) -> list[str]:
    return sorted(tenant.key.name for tenant in world.tree)


async def create_family(world: World) -> None:
    """alpha, its child beta, and beta's child c."""
    await world.create("alpha")
    await world.create("beta", "tenant-alpha")
    await world.create("c", "tenant-alpha-beta")
    await world.settle()


async def delete_in_foreground(world: World, name: str, namespace: str = "tenant-root") -> None:
    await world.cluster.delete(HELMRELEASES, namespace, f"tenant-{name}", options={"propagationPolicy": "Foreground"})


async def collect_garbage(world: World, name: str, namespace: str = "tenant-root") -> None:
    """Removes the finalizer, as the garbage collector does at once if no dependent object blocks it."""
    metadata = metadata_of(world, name, namespace)
    kept = [each for each in metadata["finalizers"] if each != "foregroundDeletion"]
    await world.edit(HELMRELEASES, namespace, f"tenant-{name}", {"metadata": {"finalizers": kept}})


def metadata_of(world: World, name: str, namespace: str = "tenant-root") -> Object:
    metadata: Object = world.content(HELMRELEASES, namespace, f"tenant-{name}")["metadata"]
    return metadata


@virtual
async def test_a_deletion_waits_for_children_that_it_does_not_include() -> None:
    world = World()
    async with world.running():
        await create_family(world)
        await world.delete("alpha")
        await world.settle()
        assert terminating(world, "alpha") == HELD
        assert world.conditions("alpha")["Ready"] == ("False", "Terminating")
        assert "deletionTimestamp" not in metadata_of(world, "beta", "tenant-alpha")
        assert "deletionTimestamp" not in world.namespace("tenant-alpha")["metadata"]
        await world.delete("c", "tenant-alpha-beta")
        await world.settle()
        await world.delete("beta", "tenant-alpha")
    assert remaining(world) == ["root"]
    assert world.cluster.peek(NAMESPACES, "", "tenant-alpha") is None


@virtual
async def test_the_annotation_continues_a_deletion_that_waits() -> None:
    world = World()
    async with world.running():
        await create_family(world)
        await world.delete("beta", "tenant-alpha")
        await world.delete("alpha")
        await world.settle()
        assert remaining(world) == ["alpha", "beta", "c", "root"]
        await world.edit(
            HELMRELEASES, "tenant-root", "tenant-alpha", {"metadata": {"annotations": {ANNOTATION: "true"}}}
        )
    assert remaining(world) == ["root"]


@virtual
async def test_a_deletion_in_the_foreground_includes_the_children_of_children() -> None:
    """Also when the garbage collector removes the finalizer before our controller has seen it."""
    world = World()
    async with world.running():
        await create_family(world)
        await delete_in_foreground(world, "alpha")
        await collect_garbage(world, "alpha")
    assert remaining(world) == ["root"]


@virtual
async def test_a_new_process_knows_that_a_deletion_began_in_the_foreground() -> None:
    world = World()
    async with world.running():
        await create_family(world)
        await world.edit(
            HELMRELEASES, "tenant-alpha", "tenant-beta", {"metadata": {"finalizers": ["example.org/held"]}}
        )
        await delete_in_foreground(world, "alpha")
        await collect_garbage(world, "alpha")
        await world.settle()
        assert terminating(world, "alpha")[0] == "ChildTenantsRemain"
    other = World(world.cluster)
    async with other.running():
        await other.create("late", "tenant-alpha")
        await other.settle()
        assert "late" not in remaining(other)
        await other.edit(HELMRELEASES, "tenant-alpha", "tenant-beta", {"metadata": {"finalizers": None}})
        await other.settle()
    assert other.cluster.peek(HELMRELEASES, "tenant-root", "tenant-alpha") is None


@virtual
async def test_children_go_with_the_namespace_above() -> None:
    world = World()
    async with world.running():
        await create_family(world)
        await world.delete("beta", "tenant-alpha")
        await world.settle()
        assert terminating(world, "beta", "tenant-alpha")[0] == "HasChildTenants"
        await world.edit_namespace("tenant-alpha", {"finalizers": ["kubernetes"]})
        await world.cluster.delete(NAMESPACES, "", "tenant-alpha")
        await world.settle()
        assert "beta" not in remaining(world)
        assert "c" not in remaining(world)
        await world.edit_namespace("tenant-alpha", {"finalizers": None})


@virtual
async def test_a_namespace_whose_tenant_is_gone_stays_until_it_has_no_tenants() -> None:
    """Such as after somebody has removed the finalizer of a deletion that waited."""
    world = World()
    async with world.running():
        await create_family(world)
        await world.edit(HELMRELEASES, "tenant-root", "tenant-alpha", {"metadata": {"finalizers": None}})
        await world.delete("alpha")
        await world.settle()
        assert remaining(world) == ["beta", "c", "root"]
        assert "deletionTimestamp" not in world.namespace("tenant-alpha")["metadata"]
        await world.delete("c", "tenant-alpha-beta")
        await world.settle()
        await world.delete("beta", "tenant-alpha")
    assert world.cluster.peek(NAMESPACES, "", "tenant-alpha") is None


@virtual
async def test_a_restored_tenant_does_not_delete_the_namespace_with_its_children() -> None:
    world = World()
    async with world.running():
        await create_family(world)
        await world.edit(HELMRELEASES, "tenant-root", "tenant-alpha", {"metadata": {"finalizers": None}})
        await world.delete("alpha")
        await world.cluster.create(HELMRELEASES, release("alpha", finalizer=True))
        await world.settle()
        assert remaining(world) == ["alpha", "beta", "c", "root"]
        [found] = [each for each in world.tenant("alpha")["status"]["conditions"] if each["type"] == "NamespaceReady"]
        assert (found["status"], found["reason"]) == ("False", "NamespaceConflict")
        assert "apps.cozystack.io/adopt: tenant-root/alpha" in found["message"]
        await world.edit_namespace("tenant-alpha", {"annotations": {"apps.cozystack.io/adopt": "tenant-root/alpha"}})
    assert world.conditions("alpha")["NamespaceReady"] == ("True", "Reconciled")
    assert remaining(world) == ["alpha", "beta", "c", "root"]
