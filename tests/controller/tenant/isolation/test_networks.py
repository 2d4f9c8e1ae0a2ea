"""The networks of the cluster: what Nodes, ServiceCIDRs and EndpointSlices tell, and when that is not enough."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from apiserver.meta.resource import Object
from controller.tenant.isolation.model import ApiServerEndpoint, ClusterNetworks
from controller.tenant.isolation.network_facts import (
    NodeNetworks,
    PodAddress,
    PodEvidence,
    api_server_endpoints,
    find_networks,
    judge_pods,
    node_networks,
    pod_addresses,
    service_networks,
)
from controller.tenant.isolation.networks import ConfiguredNetworks, KnownNetworks

A = NodeNetworks(("10.244.0.0/24",), ("192.0.2.10",))
B = NodeNetworks(("10.244.1.0/24", "fd00:1::/64"), ("192.0.2.11",))
SERVICES = ("10.96.0.0/16",)
INSIDE, OUTSIDE = PodEvidence(inside=True), PodEvidence(inside=True, outside=True)


@pytest.mark.parametrize(
    ("nodes", "services", "pods", "found"),
    [
        pytest.param([A], SERVICES, INSIDE, ["10.244.0.0/24", "10.96.0.0/16", "192.0.2.10"], id="one node"),
        pytest.param(
            [NodeNetworks(("10.244.0.0/24",), ("192.0.2.10", "fd00::10"))],
            SERVICES,
            INSIDE,
            ["10.244.0.0/24", "10.96.0.0/16", "192.0.2.10"],
            id="Pods without the second family of their node",
        ),
        pytest.param(
            [B, A],
            SERVICES,
            INSIDE,
            ["10.244.0.0/24", "10.244.1.0/24", "10.96.0.0/16", "192.0.2.10", "192.0.2.11", "fd00:1::/64"],
            id="two families",
        ),
    ],
)
def test_the_networks_of_the_cluster(
    nodes: Sequence[NodeNetworks], services: Sequence[str], pods: PodEvidence, found: list[str]
) -> None:
    networks = find_networks(nodes, services, pods)
    assert (list(networks.networks), networks.unknown) == (found, "")


@pytest.mark.parametrize(
    ("nodes", "services", "pods", "reason"),
    [
        pytest.param([], SERVICES, INSIDE, "Nodes do not tell", id="no nodes"),
        pytest.param([A, NodeNetworks((), ("192.0.2.12",))], SERVICES, INSIDE, "Nodes do not tell", id="one is silent"),
        pytest.param([A], (), INSIDE, "ServiceCIDRs do not tell", id="networks of Services unknown"),
        pytest.param(
            [B, A], (*SERVICES, "fd00:2::/112"), INSIDE, "Nodes do not tell", id="a family of Services that one lacks"
        ),
        pytest.param([A], SERVICES, OUTSIDE, "Pods have addresses outside", id="a Pod elsewhere"),
        pytest.param([A], SERVICES, PodEvidence(), "no address of a Pod confirms", id="no Pod to be seen"),
    ],
)
def test_networks_that_nothing_proves_are_not_known(
    nodes: Sequence[NodeNetworks], services: Sequence[str], pods: PodEvidence, reason: str
) -> None:
    networks = find_networks(nodes, services, pods)
    assert networks.networks == ()
    assert networks.unknown.startswith(reason)


@pytest.mark.parametrize(
    ("pods", "evidence"),
    [
        pytest.param([], PodEvidence(), id="none"),
        pytest.param([("a", "10.244.0.7")], INSIDE, id="in the network of its node"),
        pytest.param([("b", "fd00:1::7"), ("b", "10.244.1.7")], INSIDE, id="in both families"),
        pytest.param([("a", "10.244.1.7")], PodEvidence(outside=True), id="in the network of another node"),
        pytest.param([("a", "fd00:1::7")], PodEvidence(outside=True), id="in a family that the node does not tell"),
        pytest.param([("a", "10.244.0.7"), ("b", "192.168.7.7")], OUTSIDE, id="one of two elsewhere"),
        pytest.param([("a", "192.0.2.10")], PodEvidence(), id="on the network of the node"),
        pytest.param([("gone", "10.9.0.7")], PodEvidence(), id="of a node that is gone"),
    ],
)
def test_what_addresses_of_pods_prove(pods: Sequence[tuple[str, str]], evidence: PodEvidence) -> None:
    assert judge_pods((PodAddress(*each) for each in pods), {"a": A, "b": B}) == evidence


def test_the_addresses_of_pods() -> None:
    """Addresses that are not of a Pod, or of no node, are nobody's proof."""
    pod = {"addresses": ["10.244.0.7"], "nodeName": "a", "targetRef": {"kind": "Pod", "name": "x"}}
    elsewhere = [{"addresses": ["203.0.113.7"]}, {"addresses": ["203.0.113.8"], "nodeName": "a"}]
    assert pod_addresses({"endpoints": [pod, *elsewhere]}) == (PodAddress("a", "10.244.0.7"),)
    assert pod_addresses({"endpoints": elsewhere}) is None
    assert pod_addresses({"endpoints": None}) is None


@pytest.mark.parametrize(
    ("node", "found"),
    [
        pytest.param({}, NodeNetworks((), ()), id="empty"),
        pytest.param({"spec": {"podCIDR": "10.1.0.0/24"}}, NodeNetworks(("10.1.0.0/24",), ()), id="one network"),
        pytest.param(
            {"spec": {"podCIDR": "10.1.0.0/24", "podCIDRs": ["10.1.0.0/24", "fd00::/64"]}},
            NodeNetworks(("10.1.0.0/24", "fd00::/64"), ()),
            id="two networks",
        ),
        pytest.param({"spec": {"podCIDRs": ["nonsense", "0.0.0.0/0"]}}, NodeNetworks((), ()), id="no networks"),
        pytest.param(
            {"status": {"addresses": [{"address": "node-a"}, {"address": "192.0.2.10"}, "odd"]}},
            NodeNetworks((), ("192.0.2.10",)),
            id="a hostname is no address",
        ),
        pytest.param(
            {
                "metadata": {"annotations": {"projectcalico.org/IPv4Address": "192.0.2.10/24"}},
                "spec": {"podCIDR": "10.1.0.0/24"},
            },
            NodeNetworks((), ()),
            id="Calico takes addresses from its own pools",
        ),
    ],
)
def test_what_a_node_tells(node: Object, found: NodeNetworks) -> None:
    assert node_networks({"metadata": {}, **node}) == found


def endpoint_slice(namespace: str = "default", **fields: Any) -> Object:
    return {"metadata": {"name": "kubernetes", "namespace": namespace}, **fields}


PORTS = [{"name": "https", "port": 6443, "protocol": "TCP"}]
ENDPOINTS = [{"addresses": ["192.0.2.2", "192.0.2.1"]}, {"addresses": ["fd00::1", "api.example.org"]}]


@pytest.mark.parametrize(
    ("found", "endpoints"),
    [
        pytest.param(
            endpoint_slice(ports=PORTS, endpoints=ENDPOINTS),
            tuple(ApiServerEndpoint(each, (6443,)) for each in ("192.0.2.2", "192.0.2.1", "fd00::1")),
            id="addresses with their port",
        ),
        pytest.param(endpoint_slice("tenant-a", ports=PORTS, endpoints=ENDPOINTS), None, id="of another namespace"),
        pytest.param(endpoint_slice(endpoints=ENDPOINTS), None, id="without ports"),
        pytest.param(endpoint_slice(ports=PORTS), (), id="without endpoints"),
    ],
)
def test_the_addresses_of_the_api_server(found: Object, endpoints: object) -> None:
    assert api_server_endpoints(found) == endpoints


def test_the_networks_of_services() -> None:
    assert service_networks({"spec": {"cidrs": ["10.96.0.0/16", "fd00::/112"]}}) == ("10.96.0.0/16", "fd00::/112")
    assert service_networks({}) is None


def test_settings_take_precedence_over_what_a_cluster_knows_itself() -> None:
    known = ClusterNetworks(cluster=("127.0.0.0/8",), api_server=(ApiServerEndpoint("127.0.0.1", (8443,)),))
    source = KnownNetworks(known)

    assert source.current(ConfiguredNetworks()) == known
    found = source.current(ConfiguredNetworks(cluster=("10.0.0.0/8",), nodes=("192.0.2.0/24",)))
    assert (found.cluster, found.nodes, found.api_server) == (("10.0.0.0/8",), ("192.0.2.0/24",), known.api_server)
