"""The kinds NetworkPolicy and Ingress. The embedded cluster has no Pods, so that nobody enforces or serves them."""

from __future__ import annotations

from apiserver.meta.resource import Column
from registry.embedded.kinds import table_cells as cells
from registry.embedded.kinds.ingress_validation import IngressValidation
from registry.embedded.kinds.kind import Kind
from registry.embedded.kinds.network_policy_validation import NetworkPolicyValidation
from registry.embedded.kinds.schema_builders import (
    ATOMIC,
    INT_OR_STRING,
    INTEGER,
    LABEL_SELECTOR,
    STATUS,
    STRING,
    STRINGS,
    list_of,
    struct,
    with_default,
)

_ATOMIC_LIST = {"x-kubernetes-list-type": "atomic"}
_PORTS = list_of(
    struct({"protocol": with_default("TCP"), "port": INT_OR_STRING, "endPort": INTEGER}),
    **_ATOMIC_LIST,
)
_PEERS = list_of(
    struct(
        {
            "podSelector": LABEL_SELECTOR,
            "namespaceSelector": LABEL_SELECTOR,
            "ipBlock": struct({"cidr": STRING, "except": STRINGS}, required=("cidr",)),
        }
    ),
    **_ATOMIC_LIST,
)
NETWORKPOLICY = Kind(
    group="networking.k8s.io",
    kind="NetworkPolicy",
    plural="networkpolicies",
    short_names=("netpol",),
    description="NetworkPolicy tells with whom a set of Pods may communicate.",
    generation=True,
    properties={
        "spec": struct(
            {
                "podSelector": LABEL_SELECTOR,
                "policyTypes": STRINGS,
                "ingress": list_of(struct({"ports": _PORTS, "from": _PEERS}), **_ATOMIC_LIST),
                "egress": list_of(struct({"ports": _PORTS, "to": _PEERS}), **_ATOMIC_LIST),
            }
        )
    },
    columns=(Column("Pod-Selector", description="The Pods that it applies to."),),
    cells=cells.networkpolicy,
    validation=NetworkPolicyValidation(),
)
_BACKEND = struct(
    {
        "service": struct({"name": STRING, "port": struct({"name": STRING, "number": INTEGER})}, required=("name",)),
        "resource": struct({"apiGroup": STRING, "kind": STRING, "name": STRING}, required=("kind", "name"), **ATOMIC),
    }
)
_PATH = struct({"path": STRING, "pathType": STRING, "backend": _BACKEND}, required=("pathType", "backend"))
_RULE = struct({"host": STRING, "http": struct({"paths": list_of(_PATH, **_ATOMIC_LIST)}, required=("paths",))})
INGRESS = Kind(
    group="networking.k8s.io",
    kind="Ingress",
    plural="ingresses",
    short_names=("ing",),
    description="Ingress publishes Services under hostnames.",
    status=True,
    initial_status={"loadBalancer": {}},
    generation=True,
    properties={
        "spec": struct(
            {
                "ingressClassName": STRING,
                "defaultBackend": _BACKEND,
                "tls": list_of(struct({"hosts": STRINGS, "secretName": STRING}), **_ATOMIC_LIST),
                "rules": list_of(_RULE, **_ATOMIC_LIST),
            }
        ),
        "status": STATUS,
    },
    columns=(
        Column("Class", description="The class whose controller serves it."),
        Column("Hosts", description="The hostnames of its rules."),
        Column("Address", description="The addresses at which it is served."),
        Column("Ports", description="The ports at which it is served."),
    ),
    cells=cells.ingress,
    validation=IngressValidation(),
)
NETWORKING_KINDS = (NETWORKPOLICY, INGRESS)
