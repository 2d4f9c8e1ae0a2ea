"""Policies that others own, and Namespaces that are handed over: to a chart and back, to a Tenant, and away from it."""

from __future__ import annotations

from collections.abc import Mapping

from apiserver.meta.resource import Object
from controller.tenant.isolation.chart_policies import CLUSTERWIDE_POLICIES
from controller.tenant.isolation.policy_kinds import CILIUM_POLICIES
from registry.cluster.interface import NAMESPACES
from tests.controller.tenant.isolation.isolated_world import NAMES, expected, names, rules
from tests.controller.tenant.tenant_world import World
from tests.virtual_time import virtual


def foreign(name: str, labels: Mapping[str, str], annotations: Mapping[str, str] | None = None) -> Object:
    metadata = {"name": name, "namespace": "tenant-alpha", "labels": dict(labels), "annotations": annotations or {}}
    return {"metadata": metadata, "spec": {"endpointSelector": {}}}


HELM = {"app.kubernetes.io/managed-by": "Helm"}
RELEASE = {"meta.helm.sh/release-namespace": "tenant-root", "meta.helm.sh/release-name": "tenant-alpha"}


@virtual
async def test_a_foreign_policy_of_our_name_is_left_until_the_tenant_adopts_it() -> None:
    world = World()
    world.cluster.add(CILIUM_POLICIES, foreign("tenant-isolation", {}))
    async with world.running():
        await world.create("alpha")
        await world.settle()
        assert world.content(CILIUM_POLICIES, "tenant-alpha", "tenant-isolation")["spec"] == {"endpointSelector": {}}
        assert world.conditions("alpha")["IsolationReady"] == ("False", "Refused")
        adopt = {"metadata": {"annotations": {"apps.cozystack.io/adopt": "tenant-root/alpha"}}}
        await world.edit(CILIUM_POLICIES, "tenant-alpha", "tenant-isolation", adopt)
    assert rules(world, CILIUM_POLICIES) == expected()
    assert world.conditions("alpha")["IsolationReady"] == ("True", "CiliumPolicies")


@virtual
async def test_policies_of_the_charts_release_are_named_and_left_and_those_of_other_charts_are_not_named() -> None:
    world = World()
    chart = foreign("allow-external-communication", HELM, RELEASE)
    other = foreign("db", HELM, {**RELEASE, "meta.helm.sh/release-name": "db"})
    world.cluster.add(CILIUM_POLICIES, chart, other)
    async with world.running():
        await world.create("alpha")
        await world.settle()
        before = [
            world.content(CILIUM_POLICIES, "tenant-alpha", name) for name in ("allow-external-communication", "db")
        ]
        for _ in range(10):
            await world.reconcile_all()
        after = [
            world.content(CILIUM_POLICIES, "tenant-alpha", name) for name in ("allow-external-communication", "db")
        ]
        assert before == after
        assert world.conditions("alpha")["IsolationReady"] == ("False", "ChartPoliciesRemain")
        found = world.tenant("alpha")["status"]["conditions"]
        [message] = [each["message"] for each in found if each["type"] == "IsolationReady"]
        assert message.endswith(": delete CiliumNetworkPolicy allow-external-communication")
        await world.cluster.delete(CILIUM_POLICIES, "tenant-alpha", "allow-external-communication")
    assert world.conditions("alpha")["IsolationReady"] == ("True", "CiliumPolicies")


@virtual
async def test_our_policies_stay_until_those_of_the_chart_are_there() -> None:
    world = World()
    async with world.running():
        await world.create("alpha")
        await world.settle()
        world.configure(tenants={"chart": "flux"})
        await world.settle()
        assert world.conditions("alpha")["IsolationReady"] == ("False", "LeftToChart")
        assert names(world, CILIUM_POLICIES) == NAMES
        world.cluster.add(CILIUM_POLICIES, foreign("allow-internal-communication", HELM, RELEASE))
        await world.settle()
        assert names(world, CILIUM_POLICIES) >= NAMES
        metadata = {"name": "tenant-alpha-egress", "labels": HELM, "annotations": RELEASE}
        world.cluster.add(CLUSTERWIDE_POLICIES, {"metadata": metadata, "spec": {}})
        await world.settle()
        assert names(world, CILIUM_POLICIES) == {"allow-internal-communication"}
        world.configure()
        await world.settle()
        assert names(world, CILIUM_POLICIES) >= NAMES
    assert world.conditions("alpha")["IsolationReady"] == ("False", "ChartPoliciesRemain")


@virtual
async def test_the_label_of_the_platforms_namespaces_is_removed_from_those_of_tenants() -> None:
    world = World()
    async with world.running():
        await world.create("alpha")
        await world.settle()
        await world.edit_namespace("tenant-alpha", {"labels": {"cozystack.io/system": "true"}})
        await world.settle()
        assert "cozystack.io/system" not in world.labels("tenant-alpha")
    assert ("Warning", "SystemLabelRemoved") in world.events.of("alpha")
    assert "SystemLabelRemoved" not in world.conditions("alpha")


@virtual
async def test_the_deletion_of_a_tenant_takes_access_before_isolation() -> None:
    """In a Namespace that the tenant has adopted, and that therefore remains."""
    world = World()
    adopted = {"name": "tenant-alpha", "annotations": {"apps.cozystack.io/adopt": "tenant-root/alpha"}}
    world.cluster.add(NAMESPACES, {"metadata": adopted})
    async with world.running():
        await world.create("alpha")
        await world.settle()
        assert names(world, CILIUM_POLICIES) == NAMES
        world.cluster.clear_writes()
        await world.delete("alpha")
        await world.settle()
    assert names(world, CILIUM_POLICIES) == set()
    writes = [each for each in world.cluster.writes if each.key.namespace == "tenant-alpha"]
    deleted = [each.resource.plural for each in writes if each.verb == "delete"]
    assert deleted.index("ciliumnetworkpolicies") > max(
        place for place, plural in enumerate(deleted) if plural == "rolebindings"
    )
