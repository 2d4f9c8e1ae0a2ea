"""Renders the CiliumNetworkPolicies of a Tenant. Pure.

All of them are in the Tenant's Namespace and are deleted with it. A rule allows; only `egressDeny` forbids. Endpoints
and entities exclude each other in one rule, so each rule has one of them. A peer without a selector on the namespace
would mean the policy's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from apiserver.meta.resource import Object
from controller.tenant.isolation import model
from controller.tenant.isolation.model import IsolatedTenant, PeerNamespaces
from registry.names import ANCESTOR_LABEL_PREFIX, NAMESPACE_LABEL_PREFIX

_NAMESPACE = "k8s:io.kubernetes.pod.namespace"
_NAMESPACE_LABEL = "k8s:io.cilium.k8s.namespace.labels."

# `cluster` is missing on purpose: it means the Pods of every tenant. Probes of another node and the API server's calls
# of webhooks may arrive as either of the entities of nodes.
_SENDERS = ("world", "host", "remote-node", "health", "ingress", "kube-apiserver")


def render_cilium_policies(tenant: IsolatedTenant, peers: PeerNamespaces) -> Sequence[Object]:
    """The policies that the Tenant must have, with `spec` and `specs`, one of which is None."""
    policies: Mapping[str, Sequence[Object]] = {
        model.ISOLATION: [_isolation(tenant, peers)],
        model.INGRESS: [_ingress(tenant, peers)],
        model.API_SERVER: _api_server(),
        model.SERVICES: _services(tenant),
        model.TO_ETCD: _to_etcd(tenant),
    }
    return [_policy(tenant, name, specs) for name, specs in policies.items() if specs]


def _policy(tenant: IsolatedTenant, name: str, specs: Sequence[Object]) -> Object:
    metadata = {"name": name, "namespace": tenant.namespace}
    if len(specs) == 1:
        return {"metadata": metadata, "spec": specs[0], "specs": None}
    return {"metadata": metadata, "spec": None, "specs": list(specs)}


def _isolation(tenant: IsolatedTenant, peers: PeerNamespaces) -> Object:
    """Denies everything in both directions, and opens what every Pod may connect to.

    Connections to a hostname that a Gateway publishes are not opened by the entity `ingress`.
    """
    below = _namespaces_with(ANCESTOR_LABEL_PREFIX + tenant.namespace)
    not_etcd = _not_in(model.SERVICE, "etcd")
    receivers = [_selector(_in_namespaces(tenant.namespace), not_etcd), _selector(*below, not_etcd)]
    if tenant.ancestors:
        above = _in_namespaces(*tenant.ancestors)
        receivers.append(_selector(above, _is(model.APP_NAME, "vminsert")))
        receivers.append(_selector(above, _is(model.SERVICE, "ingress")))
    receivers.append(_selector(_in_namespaces(model.KUBE_SYSTEM), labels=model.DNS))
    if peers.platform:
        receivers.append(_selector(_in_namespaces(*peers.platform)))
    return {
        "endpointSelector": {},
        "ingress": [{}],
        "egress": [{"toEndpoints": receivers}, {"toEntities": ["world"]}],
    }


def _ingress(tenant: IsolatedTenant, peers: PeerNamespaces) -> Object:
    """Opens Pods to the tenant itself, to its ancestors, to the platform, and from outside of the cluster."""
    senders = [
        _selector(_in_namespaces(tenant.namespace, *tenant.ancestors)),
        _selector(*_namespaces_with(model.SYSTEM, "true")),
        _selector(_in_namespaces(model.KUBE_SYSTEM, *peers.allow_from)),
    ]
    return {
        "endpointSelector": _selector(_not_in(model.SERVICE, "etcd")),
        "ingress": [{"fromEndpoints": senders}, {"fromEntities": list(_SENDERS)}],
    }


def _api_server() -> Sequence[Object]:
    """An API server outside of the cluster may count as `world` as well, so the others are forbidden to connect
    (R-078, R-079)."""
    to_api_server = {"toEntities": ["kube-apiserver"]}
    return [
        {
            "endpointSelector": _selector(labels={model.ALLOW_TO_API_SERVER: "true"}),
            "egress": [to_api_server],
        },
        {
            "endpointSelector": _selector(_not_in(model.ALLOW_TO_API_SERVER, "true")),
            "egressDeny": [to_api_server],
        },
    ]


def _services(tenant: IsolatedTenant) -> Sequence[Object]:
    specs: list[Object] = []
    if tenant.provides("ingress"):
        everywhere = _selector(_exists(_NAMESPACE))
        specs.append(_opened({model.SERVICE: "ingress"}, [{"fromEndpoints": [everywhere]}]))
    if tenant.provides("monitoring"):
        senders = _selector(*_namespaces_with(f"{NAMESPACE_LABEL_PREFIX}monitoring", tenant.namespace))
        specs.append(_opened({model.APP_NAME: "vminsert"}, [{"fromEndpoints": [senders]}]))
        specs.append(_virt_handler())
    if tenant.provides("etcd"):
        specs.append(_etcd(tenant))
    return specs


def _opened(labels: Mapping[str, str], ingress: Sequence[Object]) -> Object:
    return {"endpointSelector": _selector(labels=labels), "ingress": list(ingress)}


def _virt_handler() -> Object:
    receiver = _selector(_in_namespaces(model.VIRT_HANDLER_NAMESPACE), labels=model.VIRT_HANDLER)
    ports = [{"ports": [{"port": str(model.VIRT_HANDLER_PORT), "protocol": "TCP"}]}]
    return {
        "endpointSelector": _selector(labels={model.APP_NAME: "vmagent"}),
        "egress": [{"toEndpoints": [receiver], "toPorts": ports}],
    }


def _etcd(tenant: IsolatedTenant) -> Object:
    """etcd is open to its own members, to labelled Pods of the tenants that use it, and to the platform (R-080)."""
    members = _selector(_in_namespaces(tenant.namespace), labels={model.SERVICE: "etcd"})
    heirs = _namespaces_with(f"{NAMESPACE_LABEL_PREFIX}etcd", tenant.namespace)
    senders = [
        members,
        _selector(*heirs, labels={model.ALLOW_TO_ETCD: "true"}),
        _selector(*_namespaces_with(model.SYSTEM, "true")),
        _selector(_in_namespaces(model.KUBE_SYSTEM)),
    ]
    ingress: list[Object] = [{"fromEndpoints": senders}, {"fromEntities": ["host", "health"]}]
    return {**_opened({model.SERVICE: "etcd"}, ingress), "egress": [{"toEndpoints": [members]}]}


def _to_etcd(tenant: IsolatedTenant) -> Sequence[Object]:
    owner = tenant.services.etcd
    if not owner:
        return ()
    receiver = _selector(_in_namespaces(owner), labels={model.SERVICE: "etcd"})
    selected = _selector(labels={model.ALLOW_TO_ETCD: "true"})
    return [{"endpointSelector": selected, "egress": [{"toEndpoints": [receiver]}]}]


def _selector(*expressions: Object, labels: Mapping[str, str] | None = None) -> Object:
    selector: Object = {}
    if labels:
        selector["matchLabels"] = dict(labels)
    if expressions:
        selector["matchExpressions"] = list(expressions)
    return selector


def _in_namespaces(*names: str) -> Object:
    return {"key": _NAMESPACE, "operator": "In", "values": list(dict.fromkeys(names))}


def _namespaces_with(label: str, value: str | None = None) -> Sequence[Object]:
    """Pods of the Namespaces with this label; without `value`, whatever its value. Older versions of Cilium do not take
    a label of the Namespace for a selector on the namespace, so there is one of these as well."""
    key = _NAMESPACE_LABEL + label
    return [_exists(_NAMESPACE), _exists(key) if value is None else _is(key, value)]


def _exists(key: str) -> Object:
    return {"key": key, "operator": "Exists"}


def _is(key: str, value: str) -> Object:
    return {"key": key, "operator": "In", "values": [value]}


def _not_in(key: str, value: str) -> Object:
    return {"key": key, "operator": "NotIn", "values": [value]}
