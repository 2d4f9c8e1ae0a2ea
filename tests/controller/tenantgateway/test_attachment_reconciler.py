"""The controller of attached namespaces: it writes and removes labels, also after it was stopped for a while."""

from __future__ import annotations

import pytest

from apiserver.meta.resource import Key
from controller.tenantgateway.reconciler import TenantGatewayReconciler
from registry.cluster.interface import HELMRELEASES, NAMESPACES
from registry.tenantgateway.types import TENANTGATEWAYS
from tests.controller.tenantgateway.gateway_world import World, api_error, run_in_world, run_until_settled
from tests.tenant_objects import release

FOO, NONE = ("tenant-foo", "tenant-foo"), (None, None)
LABEL = "namespace.cozystack.io/gateway"


def test_listed_namespaces_are_labelled_and_lose_the_label_when_unlisted() -> None:
    """R-188, R-189, R-191, R-192, R-196."""

    async def main(world: World) -> None:
        world.add_tenantgateway(attachedNamespaces=["cozy-harbor", "cozy-monitoring", "default", "tenant-zoe"])
        for name in ("cozy-harbor", "cozy-monitoring", "default", "tenant-zoe", "cozy-other"):
            world.namespace(name)
        async with world.running():
            assert {world.label_and_annotation(name) for name in ("cozy-harbor", "default", "tenant-zoe")} == {FOO}
            assert world.label_and_annotation("cozy-other") == NONE
            await world.edit_spec(attachedNamespaces=["cozy-monitoring"])
        assert world.label_and_annotation("cozy-monitoring") == FOO
        assert {world.label_and_annotation(name) for name in ("cozy-harbor", "default", "tenant-zoe")} == {NONE}

    run_in_world(main)


def test_a_listed_namespace_may_be_created_later() -> None:
    """R-194, GW-1."""

    async def main(world: World) -> None:
        world.add_tenantgateway(attachedNamespaces=["cozy-harbor"])
        async with world.running():
            assert world.ready()[1] == "GatewayNotAccepted"
            world.namespace("cozy-harbor")
        assert world.label_and_annotation("cozy-harbor") == FOO

    run_in_world(main)


def test_a_label_without_our_annotation_is_never_changed() -> None:
    """R-190, R-193, R-195, R-216, PEER-05, GW-13."""

    async def main(world: World) -> None:
        world.add_tenantgateway(attachedNamespaces=["tenant-alice"])
        world.namespace("tenant-alice", gateway="tenant-root")
        world.namespace("tenant-bob", gateway="tenant-root")
        before = [world.get(NAMESPACES, "", name) for name in ("tenant-alice", "tenant-bob")]
        async with world.running():
            assert "AttachedElsewhere" in world.conditions()
            await world.edit_spec(attachedNamespaces=[])
        assert [world.get(NAMESPACES, "", name) for name in ("tenant-alice", "tenant-bob")] == before
        assert "AttachedElsewhere" not in world.conditions()

    run_in_world(main)


def test_labels_are_removed_even_if_no_process_saw_the_deletion() -> None:
    """GW-14: the annotation marks our labels, so that no finalizer is needed."""

    async def main(world: World) -> None:
        world.add_tenantgateway(attachedNamespaces=["cozy-harbor"])
        world.namespace("cozy-harbor")
        world.namespace("cozy-lost", gateway="tenant-gone", by="tenant-gone")
        await run_until_settled(world)
        assert world.label_and_annotation("cozy-harbor") == FOO
        assert world.label_and_annotation("cozy-lost") == NONE
        assert "finalizers" not in world.get(TENANTGATEWAYS, "tenant-foo", "cozystack")["metadata"]
        await world.cluster.delete(TENANTGATEWAYS, "tenant-foo", "cozystack")
        await run_until_settled(world)
        assert world.label_and_annotation("cozy-harbor") == NONE

    run_in_world(main)


def test_the_gateway_nearest_to_the_root_wins_and_the_other_takes_over_later() -> None:
    async def main(world: World) -> None:
        world.namespace("cozy-harbor")
        for namespace, name in (("tenant-root", "root"), ("tenant-root", "zed"), ("tenant-zed", "abe")):
            await world.cluster.create(HELMRELEASES, release(name, namespace))
        for namespace in ("tenant-zed", "tenant-zed-abe"):
            world.add_tenantgateway(namespace, apex=f"{namespace}.example", attachedNamespaces=["cozy-harbor"])
        async with world.running():
            assert world.label_and_annotation("cozy-harbor") == ("tenant-zed", "tenant-zed")
            status, _, message = world.conditions("tenant-zed-abe")["AttachedElsewhere"]
            assert status == "True"
            assert message == "namespaces that another gateway has: cozy-harbor"
            assert "AttachedElsewhere" not in world.conditions("tenant-zed")
            await world.cluster.delete(TENANTGATEWAYS, "tenant-zed", "cozystack")
        assert world.label_and_annotation("cozy-harbor") == ("tenant-zed-abe", "tenant-zed-abe")
        assert "AttachedElsewhere" not in world.conditions("tenant-zed-abe")

    run_in_world(main)


def test_our_label_is_restored_when_it_is_edited_or_removed() -> None:
    async def main(world: World) -> None:
        world.add_tenantgateway(attachedNamespaces=["cozy-harbor"])
        world.namespace("cozy-harbor")
        async with world.running():
            for label in (None, "tenant-bar"):
                await world.edit(NAMESPACES, "", "cozy-harbor", {"metadata": {"labels": {LABEL: label}}})
                await world.settle()
                assert world.label_and_annotation("cozy-harbor") == FOO

    run_in_world(main)


def test_a_rejected_label_is_reported_by_its_tenantgateway_and_retried() -> None:
    async def main(world: World) -> None:
        world.add_tenantgateway(attachedNamespaces=["cozy-harbor", "cozy-other"])
        world.namespace("cozy-harbor")
        world.namespace("cozy-other")
        world.failing_calls["patch", "namespaces", "cozy-harbor"] = api_error()
        async with world.running():
            assert world.label_and_annotation("cozy-other") == FOO
            assert world.ready() == ("False", "ReconcileError", "namespace cozy-harbor: denied by a policy")
            world.failing_calls.clear()
        assert world.label_and_annotation("cozy-harbor") == FOO
        assert world.ready()[1] == "GatewayNotAccepted"

    run_in_world(main)


def test_two_tenantgateways_with_the_same_list_write_each_label_once() -> None:
    async def main(world: World) -> None:
        for namespace in ("tenant-a", "tenant-b"):
            world.add_tenantgateway(
                namespace, apex=f"{namespace}.example", attachedNamespaces=["cozy-harbor", "cozy-other"]
            )
        world.namespace("cozy-harbor")
        world.namespace("cozy-other")
        await run_until_settled(world)
        written = [each.key for each in world.cluster.writes if each.resource == NAMESPACES]
        assert sorted(written) == [Key("", "cozy-harbor"), Key("", "cozy-other")]

    run_in_world(main)


def test_a_new_or_deleted_tenantgateway_does_not_reconcile_others_with_the_same_list(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """GW-19."""
    reconciled: list[str] = []
    reconcile = TenantGatewayReconciler.reconcile

    async def recorded(self: TenantGatewayReconciler, key: Key) -> None:
        reconciled.append(key.namespace)
        await reconcile(self, key)

    async def main(world: World) -> None:
        world.namespace("cozy-harbor")
        world.add_tenantgateway("tenant-a", attachedNamespaces=["cozy-harbor"])
        world.add_tenantgateway("tenant-b", attachedNamespaces=["cozy-harbor"])
        async with world.running():
            assert world.label_and_annotation("cozy-harbor") == ("tenant-a", "tenant-a")
            monkeypatch.setattr(TenantGatewayReconciler, "reconcile", recorded)
            world.add_tenantgateway("tenant-c", attachedNamespaces=["cozy-harbor"])
            await world.settle()
            assert "AttachedElsewhere" in world.conditions("tenant-c")
            assert set(reconciled) == {"tenant-c"}
            reconciled.clear()
            await world.cluster.delete(TENANTGATEWAYS, "tenant-a", "cozystack")
            await world.settle()
            assert "AttachedElsewhere" not in world.conditions("tenant-b")
            assert world.conditions("tenant-c")["AttachedElsewhere"][2].endswith(": cozy-harbor")

    run_in_world(main)
