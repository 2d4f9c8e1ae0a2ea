"""The networks of the cluster are discovered and followed, and the world stays closed until they are known."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.meta.resource import Object
from controller.tenant.isolation.chart_policies import CLUSTERWIDE_POLICIES
from controller.tenant.isolation.policy_kinds import CILIUM_POLICIES
from controller.tenant.rbac_step import ROLES
from registry.cluster.interface import ENDPOINTSLICES, NETWORKPOLICIES, NODES, ROLEBINDINGS, SERVICECIDRS
from tests.controller.tenant.isolation.isolated_world import NETWORKS, Cluster
from tests.controller.tenant.tenant_world import World
from tests.virtual_time import virtual


@virtual
async def test_networks_that_are_not_known_are_told_and_keep_the_world_closed() -> None:
    world = World()
    Cluster(world, CILIUM_POLICIES, CLUSTERWIDE_POLICIES, SERVICECIDRS)
    async with world.running():
        await world.create("alpha")
        await world.settle()
        conditions = world.conditions("alpha")
        assert conditions["IsolationReady"] == conditions["Ready"] == ("False", "ClusterNetworksUnknown")
        assert "0.0.0.0/0" not in str(world.cluster.peek_all(NETWORKPOLICIES))
        assert world.cluster.peek(ROLEBINDINGS, "tenant-alpha", ROLES[0])
        world.configure(**NETWORKS)
    assert world.conditions("alpha")["Ready"] == ("True", "Reconciled")
    assert "0.0.0.0/0" in str(world.cluster.peek_all(NETWORKPOLICIES))


@virtual
async def test_networks_are_read_from_nodes_and_service_cidrs_and_followed() -> None:
    world = telling_world("10.244.0.7")
    async with world.running():
        await world.create("alpha")
        await world.settle()
        assert excepted(world) == ["10.96.0.0/16", "10.244.0.0/24", "192.0.2.10/32"]
        world.cluster.add(NODES, node("b", "10.244.1.0/24", "192.0.2.11"))
        await world.settle()
        assert excepted(world) == ["10.96.0.0/16", "10.244.0.0/23", "192.0.2.10/31"]
        world.cluster.add(NODES, {"metadata": {"name": "c"}})
        await world.settle(60.0)
        assert world.conditions("alpha")["IsolationReady"] == ("False", "ClusterNetworksUnknown")
    assert "0.0.0.0/0" not in str(world.cluster.peek_all(NETWORKPOLICIES))


@virtual
async def test_a_new_node_that_does_not_tell_yet_closes_nothing() -> None:
    """kube-controller-manager sets spec.podCIDRs a moment after a Node was created."""
    world = telling_world("10.244.0.7")
    async with world.running():
        await world.create("alpha")
        await world.settle()
        world.cluster.clear_writes()
        world.cluster.add(NODES, {"metadata": {"name": "b"}})
        await world.settle(5.0)
        assert world.writes() == []
        told = node("b", "10.244.1.0/24", "192.0.2.11")
        await world.edit(NODES, "", "b", {"spec": told["spec"], "status": told["status"]})
        await world.settle(60.0)
        assert excepted(world) == ["10.96.0.0/16", "10.244.0.0/23", "192.0.2.10/31"]
    assert world.conditions("alpha")["IsolationReady"] == ("True", "NetworkPolicies")


@pytest.mark.parametrize(
    ("addresses", "reason"),
    [
        pytest.param(["10.244.0.7", "10.77.0.7"], "Pods have addresses outside", id="a Pod elsewhere"),
        pytest.param([], "no address of a Pod confirms", id="no Pod"),
    ],
)
@virtual
async def test_networks_that_pods_do_not_confirm_keep_the_world_closed(addresses: list[str], reason: str) -> None:
    """A network plugin that manages addresses itself ignores spec.podCIDRs; tenants would reach each other as the
    world."""
    world = telling_world(*addresses)
    async with world.running():
        await world.create("alpha")
        await world.settle()
        found = next(each for each in status(world, "alpha") if each["type"] == "IsolationReady")
        assert (found["status"], found["reason"]) == ("False", "ClusterNetworksUnknown")
        assert found["message"].startswith(reason)
        assert "isolation.clusterCIDRs" in found["message"]
        assert "0.0.0.0/0" not in str(world.cluster.peek_all(NETWORKPOLICIES))
        world.configure(**NETWORKS)
        await world.settle()
    assert world.conditions("alpha")["IsolationReady"] == ("True", "NetworkPolicies")


@virtual
async def test_a_pod_elsewhere_closes_the_world_later_and_other_pods_write_nothing() -> None:
    world = telling_world("10.244.0.7")
    async with world.running():
        await world.create("alpha")
        await world.settle()
        world.cluster.clear_writes()
        world.cluster.add(ENDPOINTSLICES, pods_of_a("more", "10.244.0.8"))
        await world.settle(60.0)
        assert world.writes() == []
        world.cluster.add(ENDPOINTSLICES, pods_of_a("strange", "10.77.0.8"))
        await world.settle(60.0)
        assert world.conditions("alpha")["IsolationReady"] == ("False", "ClusterNetworksUnknown")
        assert "0.0.0.0/0" not in str(world.cluster.peek_all(NETWORKPOLICIES))
        await world.cluster.delete(ENDPOINTSLICES, "default", "strange")
        await world.settle(60.0)
    assert world.conditions("alpha")["IsolationReady"] == ("True", "NetworkPolicies")


def telling_world(*pods: str) -> World:
    """Without Cilium, on a node of the network 10.244.0.0/24."""
    world = World()
    Cluster(world, CILIUM_POLICIES, CLUSTERWIDE_POLICIES)
    world.cluster.add(SERVICECIDRS, {"metadata": {"name": "kubernetes"}, "spec": {"cidrs": ["10.96.0.0/16"]}})
    world.cluster.add(NODES, node("a", "10.244.0.0/24", "192.0.2.10"))
    world.cluster.add(ENDPOINTSLICES, pods_of_a("dns", *pods))
    return world


def pods_of_a(name: str, *addresses: str) -> Object:
    target = {"kind": "Pod", "namespace": "default", "name": "pod"}
    endpoints = [{"addresses": [each], "nodeName": "a", "targetRef": target} for each in addresses]
    return {"metadata": {"name": name, "namespace": "default"}, "endpoints": endpoints}


def status(world: World, tenant: str) -> Any:
    return world.tenant(tenant)["status"]["conditions"]


def node(name: str, pods: str, address: str) -> Object:
    addresses = [{"type": "Hostname", "address": name}, {"type": "InternalIP", "address": address}]
    return {"metadata": {"name": name}, "spec": {"podCIDRs": [pods]}, "status": {"addresses": addresses}}


def excepted(world: World) -> Any:
    isolation = world.content(NETWORKPOLICIES, "tenant-alpha", "tenant-isolation")["spec"]
    return isolation["egress"][1]["to"][0]["ipBlock"]["except"]
