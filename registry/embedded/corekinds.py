"""The core group's kinds, Leases and Events."""

from __future__ import annotations

from apiserver.meta import dns1123_label_errors
from apiserver.resource import Column
from registry.embedded import cells, corerules, schemas
from registry.embedded.kinds import Kind
from registry.embedded.schemas import ANYTHING, BOOLEAN, INTEGER, STRING, STRING_MAP, list_map, list_of, loose, struct

_REFERENCE = loose({"name": STRING, "namespace": STRING, "uid": STRING})

NAMESPACE = Kind(
    group="",
    kind="Namespace",
    plural="namespaces",
    namespaced=False,
    short_names=("ns",),
    description="Namespace is a scope for names.",
    status=True,
    initial_status={"phase": "Active"},
    fixed=("spec",),
    name_errors=dns1123_label_errors,
    properties={
        "spec": struct({"finalizers": schemas.STRINGS}),
        "status": struct({"phase": STRING, "conditions": schemas.CONDITIONS}),
    },
    columns=(Column("Status", description="The status of the namespace."),),
    cells=cells.namespace,
    rules=corerules.NamespaceRules(),
    termination=corerules.NamespaceTermination(),
)
SECRET = Kind(
    group="",
    kind="Secret",
    plural="secrets",
    description="Secret holds a small amount of data that is not for everybody.",
    properties={
        "type": STRING,
        "data": schemas.BYTES_MAP,
        "stringData": STRING_MAP,
        "immutable": BOOLEAN,
    },
    columns=(Column("Type", description="What the data is for."), Column("Data", "integer", description="Entries.")),
    cells=cells.secret,
    rules=corerules.SecretRules(),
)
CONFIGMAP = Kind(
    group="",
    kind="ConfigMap",
    plural="configmaps",
    short_names=("cm",),
    description="ConfigMap holds configuration data.",
    properties={"data": STRING_MAP, "binaryData": schemas.BYTES_MAP, "immutable": BOOLEAN},
    columns=(Column("Data", "integer", description="Entries."),),
    cells=cells.configmap,
    rules=corerules.ConfigMapRules(),
)
SERVICEACCOUNT = Kind(
    group="",
    kind="ServiceAccount",
    plural="serviceaccounts",
    short_names=("sa",),
    description="ServiceAccount is who a process is.",
    properties={
        "secrets": list_map(_REFERENCE, "name"),
        "imagePullSecrets": list_of(struct({"name": STRING}), **{"x-kubernetes-list-type": "atomic"}),
        "automountServiceAccountToken": BOOLEAN,
    },
    columns=(Column("Secrets", "string", description="Secrets that the account may use."),),
    cells=cells.serviceaccount,
)
_PORT = loose(
    {
        "name": STRING,
        "protocol": {"type": "string", "default": "TCP"},
        "port": INTEGER,
        "targetPort": schemas.INT_OR_STRING,
        "nodePort": INTEGER,
    },
    required=("port",),
)
SERVICE = Kind(
    group="",
    kind="Service",
    plural="services",
    short_names=("svc",),
    categories=("all",),
    description="Service names a set of addresses.",
    status=True,
    initial_status={"loadBalancer": {}},
    properties={
        "spec": loose(
            {
                "type": STRING,
                "ports": list_map(_PORT, "port", "protocol"),
                "selector": STRING_MAP,
                "clusterIP": STRING,
                "externalName": STRING,
                "externalIPs": schemas.STRINGS,
            }
        ),
        "status": schemas.STATUS,
    },
    columns=(
        Column("Type", description="How the service is reached."),
        Column("Cluster-IP", description="Address inside of the cluster."),
        Column("External-IP", description="Addresses outside of the cluster."),
        Column("Port(s)", description="Ports and their protocols."),
        Column("Selector", description="Labels of the pods behind it.", priority=1),
    ),
    cells=cells.service,
    rules=corerules.ServiceRules(),
)
RESOURCEQUOTA = Kind(
    group="",
    kind="ResourceQuota",
    plural="resourcequotas",
    short_names=("quota",),
    description="ResourceQuota limits what a namespace may use.",
    status=True,
    properties={
        "spec": loose({"hard": schemas.QUANTITIES, "scopes": schemas.STRINGS}),
        "status": loose({"hard": schemas.QUANTITIES, "used": schemas.QUANTITIES}),
    },
    columns=(Column("Request", description="What is used of what may be."), Column("Limit", description="Of limits.")),
    cells=cells.resourcequota,
)
LIMITRANGE = Kind(
    group="",
    kind="LimitRange",
    plural="limitranges",
    short_names=("limits",),
    description="LimitRange bounds and defaults what a single object of a namespace may use.",
    properties={"spec": loose({"limits": list_of(ANYTHING, **{"x-kubernetes-list-type": "atomic"})})},
)
EVENT = Kind(
    group="",
    kind="Event",
    plural="events",
    short_names=("ev",),
    description="Event tells of something that happened. It is kept for an hour.",
    properties={"involvedObject": ANYTHING, "message": STRING},
    open=True,
    columns=(
        Column("Type", description="Normal or Warning."),
        Column("Reason", description="Why, in one word."),
        Column("Object", description="What it is about."),
        Column("Message", description="What happened."),
    ),
    cells=cells.event,
)
LEASE = Kind(
    group="coordination.k8s.io",
    kind="Lease",
    plural="leases",
    description="Lease tells who does something at present, and until when.",
    properties={
        "spec": loose(
            {
                "holderIdentity": STRING,
                "leaseDurationSeconds": INTEGER,
                "acquireTime": STRING,
                "renewTime": STRING,
                "leaseTransitions": INTEGER,
            }
        )
    },
    columns=(Column("Holder", description="Who holds it."),),
    cells=cells.lease,
)

CORE_KINDS = (
    NAMESPACE,
    SECRET,
    CONFIGMAP,
    SERVICEACCOUNT,
    SERVICE,
    RESOURCEQUOTA,
    LIMITRANGE,
    EVENT,
    LEASE,
)
