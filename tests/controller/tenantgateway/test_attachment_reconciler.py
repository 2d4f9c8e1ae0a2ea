"""The labels of attached namespaces, written and taken away: by a controller that may have been away meanwhile."""

from __future__ import annotations

import pytest

from apiserver.meta.resource import Key
from controller.tenantgateway.reconciler import TenantGatewayReconciler
from registry.cluster.interface import HELMRELEASES, NAMESPACES
from registry.tenantgateway.types import TENANTGATEWAYS
from tests.controller.tenantgateway.gateway_world import World, in_world, pass_through, refusal
from tests.tenant_objects import release

FOO, NOBODY = ("tenant-foo", "tenant-foo"), (None, None)
LABEL = "namespace.cozystack.io/gateway"


def test_listed_namespaces_are_labelled_and_one_that_is_dropped_is_stripped() -> None:
    """R-188, R-189, R-191, R-192, R-196."""

    async def main(world: World) -> None:
        world.ask(attachedNamespaces=["cozy-harbor", "cozy-monitoring", "default", "tenant-zoe"])
        for name in ("cozy-harbor", "cozy-monitoring", "default", "tenant-zoe", "cozy-other"):
            world.namespace(name)
        async with world.running():
            assert {world.mark(name) for name in ("cozy-harbor", "default", "tenant-zoe")} == {FOO}
            assert world.mark("cozy-other") == NOBODY
            await world.respec(attachedNamespaces=["cozy-monitoring"])
        assert world.mark("cozy-monitoring") == FOO
        assert {world.mark(name) for name in ("cozy-harbor", "default", "tenant-zoe")} == {NOBODY}

    in_world(main)


def test_a_namespace_that_comes_later_is_labelled_then_and_is_no_fault_before() -> None:
    """R-194, GW-1."""

    async def main(world: World) -> None:
        world.ask(attachedNamespaces=["cozy-harbor"])
        async with world.running():
            assert world.ready()[1] == "GatewayNotAccepted"
            world.namespace("cozy-harbor")
        assert world.mark("cozy-harbor") == FOO

    in_world(main)


def test_a_label_that_is_not_ours_is_never_touched() -> None:
    """R-190, R-193, R-195, R-216, PEER-05, GW-13."""

    async def main(world: World) -> None:
        world.ask(attachedNamespaces=["tenant-alice"])
        world.namespace("tenant-alice", gateway="tenant-root")
        world.namespace("tenant-bob", gateway="tenant-root")
        before = [world.get(NAMESPACES, "", name) for name in ("tenant-alice", "tenant-bob")]
        async with world.running():
            assert "AttachedElsewhere" in world.conditions()
            await world.respec(attachedNamespaces=[])
        assert [world.get(NAMESPACES, "", name) for name in ("tenant-alice", "tenant-bob")] == before
        assert "AttachedElsewhere" not in world.conditions()

    in_world(main)


def test_labels_go_with_the_tenantgateway_even_if_nobody_was_there_to_see_it_go() -> None:
    """GW-14: no finalizer is needed, since the annotation tells whose label it is."""

    async def main(world: World) -> None:
        world.ask(attachedNamespaces=["cozy-harbor"])
        world.namespace("cozy-harbor")
        world.namespace("cozy-lost", gateway="tenant-gone", by="tenant-gone")
        await pass_through(world)
        assert world.mark("cozy-harbor") == FOO
        assert world.mark("cozy-lost") == NOBODY
        assert "finalizers" not in world.get(TENANTGATEWAYS, "tenant-foo", "cozystack")["metadata"]
        await world.cluster.delete(TENANTGATEWAYS, "tenant-foo", "cozystack")
        await pass_through(world)
        assert world.mark("cozy-harbor") == NOBODY

    in_world(main)


def test_of_two_that_list_a_namespace_the_one_nearest_the_root_has_it_and_the_other_inherits_it() -> None:
    async def main(world: World) -> None:
        world.namespace("cozy-harbor")
        for namespace, name in (("tenant-root", "root"), ("tenant-root", "zed"), ("tenant-zed", "abe")):
            await world.cluster.create(HELMRELEASES, release(name, namespace))
        for namespace in ("tenant-zed", "tenant-zed-abe"):
            world.ask(namespace, apex=f"{namespace}.example", attachedNamespaces=["cozy-harbor"])
        async with world.running():
            assert world.mark("cozy-harbor") == ("tenant-zed", "tenant-zed")
            told = world.conditions("tenant-zed-abe")["AttachedElsewhere"]
            assert told[0] == "True"
            assert "cozy-harbor is attached to tenant-zed" in told[2]
            assert "AttachedElsewhere" not in world.conditions("tenant-zed")
            await world.cluster.delete(TENANTGATEWAYS, "tenant-zed", "cozystack")
        assert world.mark("cozy-harbor") == ("tenant-zed-abe", "tenant-zed-abe")
        assert "AttachedElsewhere" not in world.conditions("tenant-zed-abe")

    in_world(main)


def test_a_label_that_is_edited_or_taken_away_comes_back_as_long_as_it_is_ours() -> None:
    async def main(world: World) -> None:
        world.ask(attachedNamespaces=["cozy-harbor"])
        world.namespace("cozy-harbor")
        async with world.running():
            for label in (None, "tenant-bar"):
                await world.edit(NAMESPACES, "", "cozy-harbor", {"metadata": {"labels": {LABEL: label}}})
                await world.settle()
                assert world.mark("cozy-harbor") == FOO

    in_world(main)


def test_what_the_host_refuses_of_a_label_is_said_by_its_tenantgateway_and_tried_again() -> None:
    async def main(world: World) -> None:
        world.ask(attachedNamespaces=["cozy-harbor", "cozy-other"])
        world.namespace("cozy-harbor")
        world.namespace("cozy-other")
        world.broken["patch", "namespaces", "cozy-harbor"] = refusal()
        async with world.running():
            assert world.mark("cozy-other") == FOO
            assert world.ready() == ("False", "ReconcileError", "namespace cozy-harbor: denied by a policy")
            world.broken.clear()
        assert world.mark("cozy-harbor") == FOO
        assert world.ready()[1] == "GatewayNotAccepted"

    in_world(main)


def test_attached_namespaces_are_told_by_nobody_else_s_events() -> None:
    """Two TenantGatewayIndex that list the same namespaces write each label once."""

    async def main(world: World) -> None:
        for namespace in ("tenant-a", "tenant-b"):
            world.ask(namespace, apex=f"{namespace}.example", attachedNamespaces=["cozy-harbor", "cozy-other"])
        world.namespace("cozy-harbor")
        world.namespace("cozy-other")
        await pass_through(world)
        written = [each.key for each in world.cluster.writes if each.resource == NAMESPACES]
        assert sorted(written) == [Key("", "cozy-harbor"), Key("", "cozy-other")]

    in_world(main)


def test_a_tenantgateway_that_comes_or_goes_is_no_news_for_others_that_list_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """GW-19."""
    looked: list[str] = []
    reconcile = TenantGatewayReconciler.reconcile

    async def recorded(self: TenantGatewayReconciler, key: Key) -> None:
        looked.append(key.namespace)
        await reconcile(self, key)

    async def main(world: World) -> None:
        world.namespace("cozy-harbor")
        world.ask("tenant-a", attachedNamespaces=["cozy-harbor"])
        world.ask("tenant-b", attachedNamespaces=["cozy-harbor"])
        async with world.running():
            assert world.mark("cozy-harbor") == ("tenant-a", "tenant-a")
            monkeypatch.setattr(TenantGatewayReconciler, "reconcile", recorded)
            world.ask("tenant-c", attachedNamespaces=["cozy-harbor"])
            await world.settle()
            assert "AttachedElsewhere" in world.conditions("tenant-c")
            assert set(looked) == {"tenant-c"}
            looked.clear()
            await world.cluster.delete(TENANTGATEWAYS, "tenant-a", "cozystack")
            await world.settle()
            assert "AttachedElsewhere" not in world.conditions("tenant-b")
            assert "attached to tenant-b" in world.conditions("tenant-c")["AttachedElsewhere"][2]

    in_world(main)
