"""A model of what network policies mean: which Pod or entity may open a connection to which.

It evaluates CiliumNetworkPolicies, CiliumClusterwideNetworkPolicies and NetworkPolicies as their documentation defines
them: a policy with rules for a direction closes it for the Pods that it selects; rules only add; a deny rule wins.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from ipaddress import ip_address, ip_network

from apiserver.meta.resource import Object

_POD_NAMESPACE = "io.kubernetes.pod.namespace"
_NAMESPACE_LABEL = "io.cilium.k8s.namespace.labels."


@dataclass(frozen=True, kw_only=True)
class Pod:
    """`namespace_labels` are those of its Namespace. Services play no part: a Service is an address of its Pods, and a
    headless one not even that."""

    namespace: str
    labels: Mapping[str, str] = field(default_factory=dict)
    namespace_labels: Mapping[str, str] = field(default_factory=dict)
    address: str = "10.244.0.9"
    on_host_network: bool = False

    @cached_property
    def identity(self) -> Mapping[str, str]:
        """The labels that Cilium's selectors see."""
        from_namespace = {_NAMESPACE_LABEL + key: value for key, value in self.namespace_labels.items()}
        return {**self.labels, **from_namespace, _POD_NAMESPACE: self.namespace}

    @property
    def entities(self) -> frozenset[str]:
        return frozenset({"cluster", "all"})


@dataclass(frozen=True, kw_only=True)
class Outside:
    """Something that is no Pod: an address with the entities that Cilium counts it as."""

    entities: frozenset[str]
    address: str


End = Pod | Outside
WORLD = Outside(entities=frozenset({"world", "all"}), address="198.51.100.7")
HOST = Outside(entities=frozenset({"host", "cluster", "all"}), address="192.0.2.10")
REMOTE_NODE = Outside(entities=frozenset({"remote-node", "cluster", "all"}), address="192.0.2.11")
GATEWAY = Outside(entities=frozenset({"ingress", "cluster", "all"}), address="192.0.2.10")
API_SERVER = Outside(entities=frozenset({"kube-apiserver", "remote-node", "cluster", "all"}), address="192.0.2.1")
EXTERNAL_API_SERVER = Outside(entities=frozenset({"kube-apiserver", "world", "all"}), address="203.0.113.1")


def may_connect(policies: Sequence[Object], sender: End, receiver: End, *, port: int = 443) -> bool:
    """True if neither the policies of the sender nor those of the receiver stop the connection."""
    sender, receiver = as_seen(sender), as_seen(receiver)
    leaves = not isinstance(sender, Pod) or _is_open(policies, sender, receiver, "egress", port)
    return leaves and (not isinstance(receiver, Pod) or _is_open(policies, receiver, sender, "ingress", port))


def as_seen(end: End) -> End:
    """A Pod on the network of its node has the address and the identity of the node, and no policy selects it."""
    return HOST if isinstance(end, Pod) and end.on_host_network else end


def _is_open(policies: Sequence[Object], pod: Pod, other: End, direction: str, port: int) -> bool:
    closed = allowed = False
    for policy in policies:
        if policy["kind"] == "NetworkPolicy":
            verdict = _judge_network_policy(policy, pod, other, direction, port)
        else:
            verdict = _judge_cilium(policy, pod, other, direction, port)
        if verdict.denied:
            return False
        closed, allowed = closed or verdict.closed, allowed or verdict.allowed
    return allowed or not closed


@dataclass(frozen=True)
class _Verdict:
    closed: bool = False
    allowed: bool = False
    denied: bool = False


def _judge_network_policy(policy: Object, pod: Pod, other: End, direction: str, port: int) -> _Verdict:
    spec, namespace = policy["spec"], policy["metadata"]["namespace"]
    if pod.namespace != namespace or not _selects(spec["podSelector"], pod.labels):
        return _Verdict()
    if direction.title() not in spec["policyTypes"]:
        return _Verdict()
    side = "to" if direction == "egress" else "from"
    rules = spec.get(direction) or ()
    allowed = any(_has_port(rule.get("ports"), port) and _has_peer(rule.get(side), namespace, other) for rule in rules)
    return _Verdict(closed=True, allowed=allowed)


def _has_peer(peers: Sequence[Object] | None, namespace: str, other: End) -> bool:
    return not peers or any(_is_peer(each, namespace, other) for each in peers)


def _is_peer(peer: Object, namespace: str, other: End) -> bool:
    if (block := peer.get("ipBlock")) is not None:
        # plugins that match Pods by address are the stricter case for a policy that isolates
        address = ip_address(other.address)
        return address in ip_network(block["cidr"]) and not any(
            address in ip_network(each) for each in block.get("except", ())
        )
    if not isinstance(other, Pod) or not _selects(peer.get("podSelector") or {}, other.labels):
        return False
    if "namespaceSelector" not in peer:
        return other.namespace == namespace
    return _selects(
        peer["namespaceSelector"], {**other.namespace_labels, "kubernetes.io/metadata.name": other.namespace}
    )


def _judge_cilium(policy: Object, pod: Pod, other: End, direction: str, port: int) -> _Verdict:
    namespace = policy["metadata"].get("namespace", "")
    if namespace and pod.namespace != namespace:
        return _Verdict()
    specs = [*([policy["spec"]] if policy.get("spec") else ()), *(policy.get("specs") or ())]
    side = "to" if direction == "egress" else "from"
    closed = allowed = denied = False
    for spec in specs:
        if not _selects(spec["endpointSelector"], pod.identity):
            continue
        rules, denials = spec.get(direction) or (), spec.get(f"{direction}Deny") or ()
        closed = closed or bool(rules or denials)
        allowed = allowed or any(_rule_matches(rule, side, namespace, other, port) for rule in rules)
        denied = denied or any(_rule_matches(rule, side, namespace, other, port) for rule in denials)
    return _Verdict(closed=closed, allowed=allowed, denied=denied)


def _rule_matches(rule: Object, side: str, namespace: str, other: End, port: int) -> bool:
    endpoints, entities = rule.get(f"{side}Endpoints"), rule.get(f"{side}Entities")
    if not all(_has_port(each["ports"], port) for each in rule.get(f"{side}Ports") or rule.get("toPorts") or ()):
        return False
    if endpoints is not None:
        return isinstance(other, Pod) and any(_selects_peer(each, namespace, other) for each in endpoints)
    if entities is not None:
        return bool(other.entities & set(entities))
    # a rule with ports alone means every peer; an empty rule means none
    return bool(rule.get("toPorts"))


def _selects_peer(selector: Object, namespace: str, pod: Pod) -> bool:
    keys = {*selector.get("matchLabels", {}), *(each["key"] for each in selector.get("matchExpressions", ()))}
    narrowed = bool(namespace) and _POD_NAMESPACE not in {_without_source(key) for key in keys}
    return not (narrowed and pod.namespace != namespace) and _selects(selector, pod.identity)


def _has_port(ports: Iterable[Object] | None, port: int) -> bool:
    return ports is None or any(int(each["port"]) == port for each in ports)


def _selects(selector: Object, labels: Mapping[str, str]) -> bool:
    equal = all(labels.get(_without_source(key)) == value for key, value in selector.get("matchLabels", {}).items())
    return equal and all(_meets(each, labels) for each in selector.get("matchExpressions", ()))


def _meets(expression: Object, labels: Mapping[str, str]) -> bool:
    value, values = labels.get(_without_source(expression["key"])), expression.get("values", ())
    operators = {
        "In": value in values,
        "NotIn": value not in values,
        "Exists": value is not None,
        "DoesNotExist": value is None,
    }
    return operators[expression["operator"]]


def _without_source(key: str) -> str:
    return key.removeprefix("k8s:").removeprefix("any:")
