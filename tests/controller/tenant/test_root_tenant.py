"""The root Tenant is created if it is missing, and a root that the platform created is left as it is."""

from __future__ import annotations

from registry.cluster.interface import HELMRELEASES, NAMESPACES
from tests.controller.tenant.tenant_world import World
from tests.virtual_time import virtual

ROOT_SERVICES = [f"namespace.cozystack.io/{service}" for service in ("etcd", "ingress", "monitoring", "seaweedfs")]
HELM_LABELS = {"app.kubernetes.io/managed-by": "Helm"}


@virtual
async def test_the_root_is_created_if_it_is_missing() -> None:
    """R-057."""
    world = World()
    async with world.running():
        pass
    assert world.labels("tenant-root") == {
        **dict.fromkeys(ROOT_SERVICES, "tenant-root"),
        "namespace.cozystack.io/host": "example.org",
        "platform.cozystack.io/no-delete": "true",
        "tenant.cozystack.io/tenant-root": "",
    }
    root = world.tenant("root")
    assert root["spec"]["host"] == ""
    assert root["status"]["host"] == {"value": "example.org", "namespace": "tenant-root"}
    assert world.conditions("root")["Ready"] == ("True", "Reconciled")


@virtual
async def test_a_deleted_root_is_created_again() -> None:
    world = World()
    async with world.running():
        await world.delete("root")
        await world.settle()
        assert world.tenant("root")["spec"]["host"] == ""
        await world.cluster.delete(NAMESPACES, "", "tenant-root")
    assert world.labels("tenant-root")["platform.cozystack.io/no-delete"] == "true"


@virtual
async def test_the_root_is_not_created_while_its_namespace_is_terminating() -> None:
    world = World()
    async with world.running():
        await world.edit_namespace("tenant-root", {"finalizers": ["x/y"]})
        await world.cluster.delete(NAMESPACES, "", "tenant-root")
        await world.delete("root")
        await world.settle()
        assert world.cluster.peek(HELMRELEASES, "tenant-root", "tenant-root") is None
        await world.edit_namespace("tenant-root", {"finalizers": None})
    assert world.conditions("root")["Ready"] == ("True", "Reconciled")


@virtual
async def test_a_root_that_the_platform_created_is_shown_and_not_changed() -> None:
    """On Cozystack clusters its name label is tenant-root, and its Namespace belongs to another Helm release."""
    world = World()
    helm = {"labels": HELM_LABELS, "annotations": {"meta.helm.sh/release-name": "cozystack-basics"}}
    world.cluster.add(NAMESPACES, {"metadata": {"name": "tenant-root", **helm}})
    labels = {
        "apps.cozystack.io/application.kind": "Tenant",
        "apps.cozystack.io/application.group": "apps.cozystack.io",
        "apps.cozystack.io/application.name": "tenant-root",
    }
    metadata = {"name": "tenant-root", "namespace": "tenant-root", "labels": labels}
    world.cluster.add(HELMRELEASES, {"metadata": metadata, "spec": {"values": {"host": "platform.example"}}})
    async with world.running():
        pass
    found = world.cluster.peek(HELMRELEASES, "tenant-root", "tenant-root")
    assert found is not None
    assert found["spec"] == {"values": {"host": "platform.example"}}
    assert world.labels("tenant-root")["namespace.cozystack.io/host"] == "platform.example"
