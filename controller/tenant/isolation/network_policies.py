"""Renders the NetworkPolicies of a Tenant, for clusters without Cilium. Pure.

NetworkPolicy knows no entities and no rules that deny: the world is every address but those of the cluster, and the
kube-apiserver is the addresses of its EndpointSlices. A policy selects Pods once, so each service has its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from ipaddress import IPv4Network, IPv6Network, collapse_addresses, ip_network

from apiserver.meta.resource import Object
from controller.tenant.isolation import model
from controller.tenant.isolation.model import ClusterNetworks, IsolatedTenant, PeerNamespaces
from registry.names import ANCESTOR_LABEL_PREFIX, NAMESPACE_LABEL_PREFIX

INGRESS_SERVICE = f"{model.SERVICES}-ingress"
MONITORING_SERVICE = f"{model.SERVICES}-monitoring"
METRICS_AGENT = f"{model.SERVICES}-vmagent"
ETCD_SERVICE = f"{model.SERVICES}-etcd"

_NAMESPACE = "kubernetes.io/metadata.name"
_WORLD = ("0.0.0.0/0", "::/0")


def render_network_policies(
    tenant: IsolatedTenant, peers: PeerNamespaces, networks: ClusterNetworks
) -> Sequence[Object]:
    """The policies that the Tenant must have. Without the networks of the cluster, none of them opens the world."""
    policies: dict[str, Object] = {
        model.ISOLATION: _isolation(tenant, peers, networks),
        model.INGRESS: _ingress(tenant, peers, networks),
        model.API_SERVER: _api_server(networks),
        **_services(tenant, networks),
    }
    if owner := tenant.services.etcd:
        receiver = _peer(pods=_labels({model.SERVICE: "etcd"}), namespaces=_named(owner))
        policies[model.TO_ETCD] = _spec(_labels({model.ALLOW_TO_ETCD: "true"}), egress=[{"to": [receiver]}])
    return [
        {"metadata": {"name": name, "namespace": tenant.namespace}, "spec": spec} for name, spec in policies.items()
    ]


def _isolation(tenant: IsolatedTenant, peers: PeerNamespaces, networks: ClusterNetworks) -> Object:
    not_etcd = _not_in(model.SERVICE, "etcd")
    below = _expression(ANCESTOR_LABEL_PREFIX + tenant.namespace, "Exists")
    receivers = [_peer(pods=not_etcd), _peer(pods=not_etcd, namespaces=below)]
    if tenant.ancestors:
        above = _named(*tenant.ancestors)
        receivers.append(_peer(pods=_labels({model.APP_NAME: "vminsert"}), namespaces=above))
        receivers.append(_peer(pods=_labels({model.SERVICE: "ingress"}), namespaces=above))
    receivers.append(_peer(pods=_labels(model.DNS), namespaces=_named(model.KUBE_SYSTEM)))
    if peers.platform:
        receivers.append(_peer(namespaces=_named(*peers.platform)))
    egress: list[Object] = [{"to": receivers}]
    if world := _world(networks):
        egress.append({"to": world})
    return {"podSelector": {}, "policyTypes": ["Ingress", "Egress"], "egress": egress}


def _ingress(tenant: IsolatedTenant, peers: PeerNamespaces, networks: ClusterNetworks) -> Object:
    senders = [
        _peer(pods={}),
        *([_peer(namespaces=_named(*tenant.ancestors))] if tenant.ancestors else ()),
        _peer(namespaces=_labels({model.SYSTEM: "true"})),
        _peer(namespaces=_named(model.KUBE_SYSTEM, *peers.allow_from)),
        *_world(networks),
        *_blocks((*networks.nodes, *_api_server_addresses(networks))),
    ]
    return _spec(_not_in(model.SERVICE, "etcd"), ingress=[{"from": senders}])


def _api_server(networks: ClusterNetworks) -> Object:
    """A labelled Pod reaches the addresses of kube-apiserver; none as long as they are not known (R-078, R-079)."""
    addresses: dict[tuple[int, ...], list[str]] = {}
    for each in sorted(networks.api_server):
        addresses.setdefault(each.ports, []).append(each.address)
    egress = [
        {"to": _blocks(found), "ports": [{"port": port, "protocol": "TCP"} for port in ports]}
        for ports, found in addresses.items()
    ]
    return _spec(_labels({model.ALLOW_TO_API_SERVER: "true"}), egress=egress)


def _services(tenant: IsolatedTenant, networks: ClusterNetworks) -> Mapping[str, Object]:
    policies: dict[str, Object] = {}
    if tenant.provides("ingress"):
        everywhere = [{"from": [_peer(namespaces={})]}]
        policies[INGRESS_SERVICE] = _spec(_labels({model.SERVICE: "ingress"}), ingress=everywhere)
    if tenant.provides("monitoring"):
        heirs = _labels({f"{NAMESPACE_LABEL_PREFIX}monitoring": tenant.namespace})
        policies[MONITORING_SERVICE] = _spec(
            _labels({model.APP_NAME: "vminsert"}), ingress=[{"from": [_peer(namespaces=heirs)]}]
        )
        policies[METRICS_AGENT] = _virt_handler()
    if tenant.provides("etcd"):
        policies[ETCD_SERVICE] = _etcd(tenant, networks)
    return policies


def _virt_handler() -> Object:
    receiver = _peer(pods=_labels(model.VIRT_HANDLER), namespaces=_named(model.VIRT_HANDLER_NAMESPACE))
    ports = [{"port": model.VIRT_HANDLER_PORT, "protocol": "TCP"}]
    return _spec(_labels({model.APP_NAME: "vmagent"}), egress=[{"to": [receiver], "ports": ports}])


def _etcd(tenant: IsolatedTenant, networks: ClusterNetworks) -> Object:
    members = _labels({model.SERVICE: "etcd"})
    heirs = _labels({f"{NAMESPACE_LABEL_PREFIX}etcd": tenant.namespace})
    senders = [
        _peer(pods=members),
        _peer(pods=_labels({model.ALLOW_TO_ETCD: "true"}), namespaces=heirs),
        _peer(namespaces=_labels({model.SYSTEM: "true"})),
        _peer(namespaces=_named(model.KUBE_SYSTEM)),
        *_blocks(networks.nodes),
    ]
    return _spec(members, ingress=[{"from": senders}], egress=[{"to": [_peer(pods=members)]}])


def _spec(pods: Object, *, ingress: Sequence[Object] | None = None, egress: Sequence[Object] | None = None) -> Object:
    """A direction with no rule is closed; kube-apiserver does not store the empty list."""
    types = [name for name, rules in (("Ingress", ingress), ("Egress", egress)) if rules is not None]
    spec: Object = {"podSelector": pods, "policyTypes": types}
    if ingress:
        spec["ingress"] = list(ingress)
    if egress:
        spec["egress"] = list(egress)
    return spec


def _world(networks: ClusterNetworks) -> Sequence[Object]:
    """Every address but those of the cluster and of kube-apiserver, because most network plugins match Pods by their
    addresses too. A family of addresses in which the cluster has no known network stays closed: if Pods had addresses
    of that family as well, they would be in the world."""
    inside = _networks((*networks.cluster, *networks.nodes, *_api_server_addresses(networks)))
    families = {ip_network(each).version for each in networks.cluster}
    blocks: list[Object] = []
    for cidr in _WORLD:
        version = ip_network(cidr).version
        if version in families:
            excepted = [str(each) for each in inside if each.version == version]
            blocks.append({"ipBlock": {"cidr": cidr, "except": excepted}})
    return blocks


def _api_server_addresses(networks: ClusterNetworks) -> Iterable[str]:
    return (each.address for each in networks.api_server)


def _blocks(cidrs: Iterable[str]) -> list[Object]:
    return [{"ipBlock": {"cidr": str(each)}} for each in _networks(cidrs)]


def _networks(cidrs: Iterable[str]) -> Sequence[IPv4Network | IPv6Network]:
    """Sorted and without overlaps, so that the order in which they were found changes no policy."""
    found = [ip_network(each) for each in cidrs]
    four = collapse_addresses(each for each in found if isinstance(each, IPv4Network))
    six = collapse_addresses(each for each in found if isinstance(each, IPv6Network))
    return [*four, *six]


def _peer(*, pods: Object | None = None, namespaces: Object | None = None) -> Object:
    """Without `namespaces`, Pods of the policy's own Namespace; without `pods`, all Pods."""
    selectors = {"namespaceSelector": namespaces, "podSelector": pods}
    return {name: selector for name, selector in selectors.items() if selector is not None}


def _labels(labels: Mapping[str, str]) -> Object:
    return {"matchLabels": dict(labels)}


def _named(*namespaces: str) -> Object:
    return _expression(_NAMESPACE, "In", *dict.fromkeys(namespaces))


def _not_in(key: str, value: str) -> Object:
    return _expression(key, "NotIn", value)


def _expression(key: str, operator: str, *values: str) -> Object:
    expression: Object = {"key": key, "operator": operator}
    return {"matchExpressions": [expression | ({"values": list(values)} if values else {})]}
