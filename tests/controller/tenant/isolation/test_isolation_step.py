"""Tenants are isolated before anybody gets access, and stay so: against edits, and when kinds are not served."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.meta.resource import Object
from controller.tenant.isolation.chart_policies import CLUSTERWIDE_POLICIES
from controller.tenant.isolation.model import IsolatedTenant
from controller.tenant.isolation.policy_kinds import CILIUM_POLICIES
from controller.tenant.rbac_step import ROLES
from registry.cluster.interface import (
    ENDPOINTSLICES,
    HELMRELEASES,
    NAMESPACES,
    NETWORKPOLICIES,
    ROLEBINDINGS,
    ClusterResource,
)
from registry.tenant.inheritance import Services
from tests.controller.tenant.isolation.isolated_world import NAMES, NETWORKS, Cluster, expected, names, rules
from tests.controller.tenant.tenant_world import World
from tests.virtual_time import virtual

API_SERVER = {
    "metadata": {"name": "kubernetes", "namespace": "default"},
    "ports": [{"name": "https", "port": 6443, "protocol": "TCP"}],
    "endpoints": [{"addresses": ["192.0.2.1"]}],
}


@virtual
async def test_a_tenant_is_isolated_before_anybody_gets_access() -> None:
    """R-076."""
    world = World()
    cluster = Cluster(world)
    async with world.running():
        await world.create("alpha")
    assert rules(world, CILIUM_POLICIES) == expected()
    assert names(world, NETWORKPOLICIES) == set()
    order = [res for verb, res, namespace in cluster.calls if (verb, namespace) == ("create", "tenant-alpha")]
    assert order.index(ROLEBINDINGS) > max(place for place, res in enumerate(order) if res == CILIUM_POLICIES)
    assert world.conditions("alpha")["IsolationReady"] == ("True", "CiliumPolicies")
    assert names(world, CILIUM_POLICIES, "tenant-root") == {*NAMES, "tenant-services"}


@virtual
async def test_policies_follow_the_tree_and_the_services() -> None:
    """R-081: three ancestors including the root; the rule for etcd exists with etcd only."""
    world = World()
    async with world.running():
        await world.create("alpha", etcd=True)
        await world.create("beta", "tenant-alpha")
        await world.create("c", "tenant-alpha-beta")
        await world.settle()
        services = Services(
            etcd="tenant-alpha", ingress="tenant-root", monitoring="tenant-root", seaweedfs="tenant-root"
        )
        deep = IsolatedTenant(
            namespace="tenant-alpha-beta-c",
            ancestors=("tenant-alpha-beta", "tenant-alpha", "tenant-root"),
            services=services,
        )
        assert rules(world, CILIUM_POLICIES, "tenant-alpha-beta-c") == expected(deep)
        assert "tenant-services" in names(world, CILIUM_POLICIES)
        await world.change("alpha", etcd=False)
    assert names(world, CILIUM_POLICIES) == NAMES
    assert rules(world, CILIUM_POLICIES) == expected()


EDITS: list[Any] = [
    pytest.param({"spec": {"enableDefaultDeny": {"egress": False}}}, id="default deny turned off"),
    pytest.param({"specs": [{"endpointSelector": {}, "egress": [{"toEntities": ["all"]}]}]}, id="one more rule set"),
    pytest.param({"spec": {"egress": [{"toEntities": ["all"]}]}}, id="another rule"),
    pytest.param({"spec": {"endpointSelector": {"matchLabels": {"a": "b"}}}}, id="another selection"),
    pytest.param({"spec": None}, id="no rules"),
]


@pytest.mark.parametrize("edit", EDITS)
@virtual
async def test_an_edited_policy_is_restored_in_one_write(edit: Object) -> None:
    world = World()
    async with world.running():
        await world.create("alpha")
        await world.settle()
        await world.edit(CILIUM_POLICIES, "tenant-alpha", "tenant-isolation", edit)
        world.cluster.clear_writes()
    assert rules(world, CILIUM_POLICIES) == expected()
    assert world.writes() == [("patch", "ciliumnetworkpolicies", "tenant-isolation")]


@virtual
async def test_a_field_added_within_a_list_is_removed() -> None:
    world = World()
    async with world.running():
        await world.create("alpha")
        await world.settle()
        spec = world.content(CILIUM_POLICIES, "tenant-alpha", "tenant-ingress")["spec"]
        opened = [{**spec["ingress"][0], "fromCIDR": ["10.0.0.0/8"]}, spec["ingress"][1]]
        await world.edit(CILIUM_POLICIES, "tenant-alpha", "tenant-ingress", {"spec": {"ingress": opened}})
    assert rules(world, CILIUM_POLICIES) == expected()


@virtual
async def test_a_deleted_policy_is_written_again_and_labels_of_others_stay() -> None:
    world = World()
    async with world.running():
        await world.create("alpha")
        await world.settle()
        await world.cluster.delete(CILIUM_POLICIES, "tenant-alpha", "tenant-ingress")
        await world.edit(CILIUM_POLICIES, "tenant-alpha", "tenant-isolation", {"metadata": {"labels": {"x": "y"}}})
    assert rules(world, CILIUM_POLICIES) == expected()
    labels = world.content(CILIUM_POLICIES, "tenant-alpha", "tenant-isolation")["metadata"]["labels"]
    assert labels == {"app.kubernetes.io/managed-by": "tenant-controller", "x": "y"}


@virtual
async def test_nobody_gets_access_while_the_policies_are_refused() -> None:
    world = World()
    cluster = Cluster(world)
    cluster.refused.add(CILIUM_POLICIES)
    async with world.running():
        await world.create("alpha")
        await world.settle()
        assert world.cluster.peek(ROLEBINDINGS, "tenant-alpha", ROLES[0]) is None
        conditions = world.conditions("alpha")
        assert conditions["IsolationReady"] == conditions["Ready"] == ("False", "Refused")
        assert conditions["AccessReady"] == ("False", "WaitsForIsolation")
        cluster.refused.clear()
        await world.reconcile_all()
    assert rules(world, CILIUM_POLICIES) == expected()
    assert world.cluster.peek(ROLEBINDINGS, "tenant-alpha", ROLES[0])
    assert world.conditions("alpha")["Ready"] == ("True", "Reconciled")
    assert world.conditions("alpha")["AccessReady"] == ("True", "Reconciled")


@virtual
async def test_access_that_exists_is_kept_while_the_policies_are_refused() -> None:
    world = World(settings={"tenants": {"isolation": "off"}})
    cluster = Cluster(world)
    async with world.running():
        await world.create("alpha")
        await world.settle()
        assert world.conditions("alpha")["IsolationReady"] == ("False", "TurnedOff")
        assert world.conditions("alpha")["Ready"] == ("True", "Reconciled")
        cluster.refused.add(CILIUM_POLICIES)
        world.configure()
        await world.settle()
        await world.edit(ROLEBINDINGS, "tenant-alpha", ROLES[0], {"subjects": []})
    assert world.content(ROLEBINDINGS, "tenant-alpha", ROLES[0])["subjects"]
    assert world.conditions("alpha")["Ready"] == ("False", "Refused")


@virtual
async def test_turning_isolation_off_removes_the_policies() -> None:
    world = World()
    async with world.running():
        await world.create("alpha")
        await world.settle()
        world.configure(tenants={"isolation": "off"})
        await world.settle()
        assert names(world, CILIUM_POLICIES) == set()
        world.configure()
    assert rules(world, CILIUM_POLICIES) == expected()


@virtual
async def test_nothing_of_a_tenant_turns_isolation_off() -> None:
    """R-077."""
    world = World()
    async with world.running():
        await world.create("alpha", isolated=False, isolation="off")
        await world.settle()
        annotations = {"tenants.isolation": "off", "policy.cozystack.io/isolated": "false"}
        await world.edit(HELMRELEASES, "tenant-root", "tenant-alpha", {"metadata": {"annotations": annotations}})
        await world.edit_namespace("tenant-alpha", {"annotations": annotations, "labels": {"isolated": "false"}})
    assert rules(world, CILIUM_POLICIES) == expected()


@virtual
async def test_without_cilium_there_are_network_policies() -> None:
    world = World(settings=NETWORKS)
    Cluster(world, CILIUM_POLICIES, CLUSTERWIDE_POLICIES)
    world.cluster.add(ENDPOINTSLICES, API_SERVER)
    async with world.running():
        await world.create("alpha")
    assert names(world, NETWORKPOLICIES) == NAMES
    assert names(world, CILIUM_POLICIES) == set()
    assert world.conditions("alpha")["IsolationReady"] == ("True", "NetworkPolicies")
    isolation = world.content(NETWORKPOLICIES, "tenant-alpha", "tenant-isolation")["spec"]
    assert isolation["egress"][1]["to"][0]["ipBlock"]["except"] == ["10.0.0.0/8", "192.0.2.1/32"]
    api_server = world.content(NETWORKPOLICIES, "tenant-alpha", "tenant-apiserver")["spec"]
    assert api_server["egress"][0]["to"] == [{"ipBlock": {"cidr": "192.0.2.1/32"}}]
    assert world.cluster.peek(ROLEBINDINGS, "tenant-alpha", ROLES[0])


@pytest.mark.parametrize(
    ("mode", "missing"),
    [
        pytest.param("cilium", [CILIUM_POLICIES], id="Cilium was asked for"),
        pytest.param("auto", [CILIUM_POLICIES, NETWORKPOLICIES], id="neither kind"),
        pytest.param("networkPolicy", [NETWORKPOLICIES], id="NetworkPolicies were asked for"),
    ],
)
@virtual
async def test_a_kind_that_is_not_served_keeps_everybody_out(mode: str, missing: list[ClusterResource]) -> None:
    world = World(settings={"tenants": {"isolation": mode}, **NETWORKS})
    cluster = Cluster(world, *missing)
    async with world.running():
        await world.create("alpha")
        await world.settle()
        conditions = world.conditions("alpha")
        assert conditions["IsolationReady"] == conditions["Ready"] == ("False", "NotServed")
        assert world.cluster.peek(ROLEBINDINGS, "tenant-alpha", ROLES[0]) is None
        cluster.missing.clear()
    assert world.conditions("alpha")["Ready"] == ("True", "Reconciled")
    assert world.cluster.peek(ROLEBINDINGS, "tenant-alpha", ROLES[0])


@virtual
async def test_a_missing_permission_to_list_policies_is_told() -> None:
    world = World(settings=NETWORKS)
    Cluster(world).forbidden.add(CILIUM_POLICIES)
    async with world.running():
        await world.create("alpha")
    assert world.conditions("alpha")["IsolationReady"] == ("False", "Refused")
    assert names(world, NETWORKPOLICIES) == set()
    assert world.cluster.peek(ROLEBINDINGS, "tenant-alpha", ROLES[0]) is None


@virtual
async def test_when_cilium_goes_and_comes_back_there_is_always_one_set_of_policies() -> None:
    world = World(settings=NETWORKS)
    cluster = Cluster(world)
    async with world.running():
        await world.create("alpha")
        await world.settle()
        cluster.missing |= {CILIUM_POLICIES, CLUSTERWIDE_POLICIES}
        await end_watches(world)
        await world.settle(5.0)
        assert names(world, NETWORKPOLICIES) == set(), "a starting kube-apiserver omits kinds for a moment"
        await world.settle()
        assert names(world, NETWORKPOLICIES) == NAMES
        assert world.conditions("alpha")["IsolationReady"] == ("True", "NetworkPolicies")
        cluster.missing.clear()
        await world.settle(120.0)
        assert names(world, NETWORKPOLICIES) == set()
    assert rules(world, CILIUM_POLICIES) == expected()
    assert world.conditions("alpha")["IsolationReady"] == ("True", "CiliumPolicies")


async def end_watches(world: World) -> None:
    world.cluster.unreachable = True
    await world.settle(1.0)
    world.cluster.unreachable = False


@virtual
async def test_a_namespace_that_terminates_gets_no_policies_and_costs_no_calls() -> None:
    """Kubernetes deletes its policies in any order, and refuses new ones."""
    world = World()
    cluster = Cluster(world)
    async with world.running():
        await world.create("alpha")
        await world.settle()
        await world.edit_namespace("tenant-alpha", {"finalizers": ["example.org/waits"]})
        await world.cluster.delete(NAMESPACES, "", "tenant-alpha")
        await world.cluster.delete(CILIUM_POLICIES, "tenant-alpha", "tenant-ingress")
        await world.settle()
        cluster.calls.clear()
        await world.settle(300.0)
        assert [verb for verb, res, _ in cluster.calls if res == CILIUM_POLICIES and verb != "list"] == []
    assert names(world, CILIUM_POLICIES) == NAMES - {"tenant-ingress"}
    assert world.conditions("alpha")["NamespaceReady"] == ("False", "NamespaceTerminating")
