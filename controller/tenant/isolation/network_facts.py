"""Derives the networks of the cluster from its objects, and decides whether these can be believed. Pure.

`spec.podCIDRs` of a Node are the networks of its Pods only if the network plugin takes Pods' addresses from there. A
plugin that manages addresses itself ignores them, and nothing in the API says so. The addresses of Pods do: they are in
EndpointSlices, which need no right to read Pods.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Any

from apiserver.meta.resource import Object
from controller.tenant.isolation.model import ApiServerEndpoint

API_SERVER_NAMESPACE, API_SERVER_SLICE = "default", "kubernetes"

# Calico and Kube-OVN mark each Node, and assign addresses from pools of their own.
_OWN_ADDRESSES = ("projectcalico.org/", "ovn.kubernetes.io/")


@dataclass(frozen=True, slots=True)
class NodeNetworks:
    """The networks of a node's Pods, empty if it does not tell, and its own addresses."""

    pods: tuple[str, ...]
    addresses: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PodAddress:
    """The address of a Pod, and the name of the Node that it runs on."""

    node: str
    address: str


@dataclass(frozen=True, slots=True)
class PodEvidence:
    """`inside` if an address of a Pod is in the networks of its Node, `outside` if one is not."""

    inside: bool = False
    outside: bool = False


@dataclass(frozen=True, slots=True)
class FoundNetworks:
    """The networks of Pods, Services and nodes; if they are not known, none and the reason."""

    networks: tuple[str, ...] = ()
    unknown: str = ""


def find_networks(nodes: Collection[NodeNetworks], services: Iterable[str], pods: PodEvidence) -> FoundNetworks:
    """All networks of the cluster or none: a world that contained any of them would let tenants reach each other. Where
    Services have addresses of a family, so have Pods; that of nodes alone is left out."""
    service_networks = set(services)
    families = _families(service_networks)
    if not nodes or not all(each.pods and families <= _families(each.pods) for each in nodes):
        return FoundNetworks(unknown="Nodes do not tell the networks of their Pods")
    if not service_networks:
        return FoundNetworks(unknown="ServiceCIDRs do not tell the networks of Services")
    if pods.outside:
        return FoundNetworks(unknown="Pods have addresses outside of spec.podCIDRs of their Nodes")
    if not pods.inside:
        return FoundNetworks(unknown="no address of a Pod confirms spec.podCIDRs of Nodes")
    of_pods = {each for node in nodes for each in node.pods}
    families = _families(of_pods)
    of_nodes = {each for node in nodes for each in node.addresses if _parsed(each).version in families}
    return FoundNetworks(tuple(sorted(service_networks | of_pods | of_nodes)))


def judge_pods(pods: Iterable[PodAddress], nodes: Mapping[str, NodeNetworks]) -> PodEvidence:
    """Pods on the network of their Node prove nothing, nor do those of a Node that is not known, or no longer."""
    inside = outside = False
    for pod in pods:
        node = nodes.get(pod.node)
        if node is None or pod.address in node.addresses:
            continue
        if any(_contains(network, pod.address) for network in node.pods):
            inside = True
        else:
            outside = True
    return PodEvidence(inside, outside)


def node_networks(node: Object) -> NodeNetworks:
    spec, status = node.get("spec") or {}, node.get("status") or {}
    addresses = [each.get("address") for each in status.get("addresses") or () if isinstance(each, dict)]
    annotations = node["metadata"].get("annotations") or {}
    ignored = any(each.startswith(_OWN_ADDRESSES) for each in annotations)
    pods = () if ignored else _valid(spec.get("podCIDRs") or [spec.get("podCIDR")])
    return NodeNetworks(pods=pods, addresses=_valid(addresses))


def service_networks(service_cidr: Object) -> tuple[str, ...] | None:
    return _valid((service_cidr.get("spec") or {}).get("cidrs") or ()) or None


def pod_addresses(endpoint_slice: Object) -> tuple[PodAddress, ...] | None:
    """None for an EndpointSlice without Pods, such as those that somebody wrote for addresses elsewhere."""
    found = [
        PodAddress(endpoint["nodeName"], address)
        for endpoint in endpoint_slice.get("endpoints") or ()
        if endpoint.get("nodeName") and (endpoint.get("targetRef") or {}).get("kind") == "Pod"
        for address in _valid(endpoint.get("addresses") or ())
    ]
    return tuple(found) or None


def api_server_endpoints(endpoint_slice: Object) -> tuple[ApiServerEndpoint, ...] | None:
    """None for an EndpointSlice of another Service."""
    if endpoint_slice["metadata"].get("namespace") != API_SERVER_NAMESPACE:
        return None
    ports = tuple(
        sorted(
            each["port"]
            for each in endpoint_slice.get("ports") or ()
            if each.get("protocol", "TCP") == "TCP" and isinstance(each.get("port"), int)
        )
    )
    addresses = [each for endpoint in endpoint_slice.get("endpoints") or () for each in endpoint.get("addresses") or ()]
    return tuple(ApiServerEndpoint(each, ports) for each in _valid(addresses)) if ports else None


def _families(networks: Iterable[str]) -> set[int]:
    return {_parsed(each).version for each in networks}


def _contains(network: str, address: str) -> bool:
    outer, inner = _parsed(network), _parsed(address)
    return outer.version == inner.version and inner.network_address in outer


@lru_cache(maxsize=4096)
def _parsed(value: str) -> IPv4Network | IPv6Network:
    return ip_network(value)


def _valid(values: Iterable[Any]) -> tuple[str, ...]:
    """The addresses and networks among the values; hostnames are left out."""
    return tuple(each for each in values if isinstance(each, str) and _is_network(each))


def _is_network(value: str) -> bool:
    try:
        return ip_network(value).prefixlen > 0
    except ValueError:
        return False
