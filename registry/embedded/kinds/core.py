"""The core group's kinds, Leases and Events."""

from __future__ import annotations

from apiserver.meta.object_meta import dns1123_label_errors
from apiserver.meta.resource import Column, Object, field_at, fields_at
from registry.embedded.kinds import core_validation, quota_validation
from registry.embedded.kinds import schema_builders as schemas
from registry.embedded.kinds import table_cells as cells
from registry.embedded.kinds.kind import CREATED_AT, Kind
from registry.embedded.kinds.schema_builders import (
    BOOLEAN,
    INTEGER,
    STRING,
    STRING_MAP,
    list_of,
    merged_list,
    open_struct,
    struct,
)

_SCOPE_SELECTOR = struct(
    {
        "matchExpressions": list_of(
            struct({"scopeName": STRING, "operator": STRING, "values": schemas.STRINGS}),
            **{"x-kubernetes-list-type": "atomic"},
        )
    },
    **schemas.ATOMIC,
)
_REFERENCE = open_struct({"name": STRING, "namespace": STRING, "uid": STRING})

NAMESPACE = Kind(
    group="",
    kind="Namespace",
    plural="namespaces",
    namespaced=False,
    short_names=("ns",),
    description="Namespace is a scope for names.",
    status=True,
    initial_status={"phase": "Active"},
    subresource_fields=("spec",),
    name_errors=dns1123_label_errors,
    properties={
        "spec": struct({"finalizers": schemas.STRINGS}),
        "status": struct({"phase": STRING, "conditions": schemas.CONDITIONS}),
    },
    selectable_fields=fields_at("status.phase"),
    metadata_fields=("metadata.name",),
    columns=(Column("Status", description="The status of the namespace"),),
    cells=cells.namespace,
    validation=core_validation.NamespaceValidation(),
    finalization=core_validation.NamespaceFinalization(),
)
SECRET = Kind(
    group="",
    kind="Secret",
    plural="secrets",
    description="Secret holds a small amount of confidential data.",
    properties={
        "type": STRING,
        "data": schemas.BYTES_MAP,
        "stringData": STRING_MAP,
        "immutable": BOOLEAN,
    },
    selectable_fields=fields_at("type"),
    columns=(Column("Type", description="The purpose of the data."), Column("Data", "integer", description="Entries.")),
    cells=cells.secret,
    validation=core_validation.SecretValidation(),
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
    validation=core_validation.ConfigMapValidation(),
)
SERVICEACCOUNT = Kind(
    group="",
    kind="ServiceAccount",
    plural="serviceaccounts",
    short_names=("sa",),
    description="ServiceAccount is the identity that processes in Pods use.",
    properties={
        "secrets": merged_list(_REFERENCE, "name"),
        "imagePullSecrets": list_of(struct({"name": STRING}), **{"x-kubernetes-list-type": "atomic"}),
        "automountServiceAccountToken": BOOLEAN,
    },
)
_PORT = struct(
    {
        "name": STRING,
        "protocol": {"type": "string", "default": "TCP"},
        "port": INTEGER,
        "targetPort": schemas.INT_OR_STRING,
        "nodePort": INTEGER,
        "appProtocol": STRING,
    },
    required=("port",),
)
_SERVICE_STRINGS = (
    *("type", "clusterIP", "externalName", "loadBalancerIP", "loadBalancerClass", "sessionAffinity"),
    *("externalTrafficPolicy", "internalTrafficPolicy", "ipFamilyPolicy", "trafficDistribution"),
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
        "spec": struct(
            {
                **dict.fromkeys(_SERVICE_STRINGS, STRING),
                **dict.fromkeys(("publishNotReadyAddresses", "allocateLoadBalancerNodePorts"), BOOLEAN),
                **dict.fromkeys(("clusterIPs", "ipFamilies", "loadBalancerSourceRanges"), schemas.STRINGS),
                "healthCheckNodePort": INTEGER,
                "sessionAffinityConfig": struct({"clientIP": struct({"timeoutSeconds": INTEGER})}),
                "ports": merged_list(_PORT, "port", "protocol"),
                "selector": {**STRING_MAP, **schemas.ATOMIC},
                "externalIPs": schemas.STRINGS,
            }
        ),
        "status": schemas.STATUS,
    },
    selectable_fields=fields_at("spec.clusterIP", "spec.type"),
    columns=(
        Column("Type", description="The kind of access: ClusterIP, NodePort, LoadBalancer or ExternalName."),
        Column("Cluster-IP", description="Address inside the cluster."),
        Column("External-IP", description="Addresses outside the cluster."),
        Column("Port(s)", description="Ports and their protocols."),
        Column("Selector", description="Labels of the pods behind it.", priority=1),
    ),
    cells=cells.service,
    validation=core_validation.ServiceValidation(),
)
RESOURCEQUOTA = Kind(
    group="",
    kind="ResourceQuota",
    plural="resourcequotas",
    short_names=("quota",),
    description="ResourceQuota limits what a namespace may use.",
    status=True,
    properties={
        "spec": struct({"hard": schemas.QUANTITIES, "scopes": schemas.STRINGS, "scopeSelector": _SCOPE_SELECTOR}),
        "status": struct({"hard": schemas.QUANTITIES, "used": schemas.QUANTITIES}),
    },
    columns=(
        Column("Request", description="Used and permitted requests."),
        Column("Limit", description="The same of limits."),
    ),
    cells=cells.resourcequota,
    validation=quota_validation.ResourceQuotaValidation(),
)
_LIMIT = struct({"type": STRING, **dict.fromkeys(quota_validation.LIMIT_MAPS, schemas.QUANTITIES)})
LIMITRANGE = Kind(
    group="",
    kind="LimitRange",
    plural="limitranges",
    short_names=("limits",),
    description="LimitRange bounds and defaults what a single object of a namespace may use.",
    properties={"spec": struct({"limits": list_of(_LIMIT, **{"x-kubernetes-list-type": "atomic"})})},
    replaces_default_columns=True,
    columns=CREATED_AT,
    cells=cells.created_at,
    validation=quota_validation.LimitRangeValidation(),
)
REFERENCE_FIELDS = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_OBJECT_REFERENCE = struct(dict.fromkeys(REFERENCE_FIELDS, STRING), **schemas.ATOMIC)


def _event_source(event: Object) -> str:
    """Returns the component that reported the Event, from its deprecated or its current field."""
    return field_at("source.component")(event) or field_at("reportingComponent")(event)


EVENT = Kind(
    group="",
    kind="Event",
    plural="events",
    short_names=("ev",),
    description="Event reports an occurrence in the cluster. It is stored for an hour.",
    properties={
        "involvedObject": _OBJECT_REFERENCE,
        "related": _OBJECT_REFERENCE,
        **dict.fromkeys(("reason", "message", "type", "action", "reportingComponent", "reportingInstance"), STRING),
        **dict.fromkeys(("firstTimestamp", "lastTimestamp", "eventTime"), STRING),
        "count": INTEGER,
        "source": struct({"component": STRING, "host": STRING}),
        "series": struct({"count": INTEGER, "lastObservedTime": STRING}),
    },
    selectable_fields={
        **{f"involvedObject.{field}": field_at(f"involvedObject.{field}") for field in REFERENCE_FIELDS},
        **fields_at("reason", "reportingComponent", "type"),
        "source": _event_source,
    },
    replaces_default_columns=True,
    columns=(
        Column("Last Seen", description="Time since the last occurrence."),
        Column("Type", description="Normal or Warning."),
        Column("Reason", description="The cause, as one word."),
        Column("Object", description="The object that the Event is about."),
        Column("Subobject", description="The part of the object that the Event is about.", priority=1),
        Column("Source", description="The component that reported the Event.", priority=1),
        Column("Message", description="A description of the occurrence."),
        Column("First Seen", description="Time since the first occurrence.", priority=1),
        Column("Count", description="Number of occurrences.", priority=1),
        Column("Name", format="name", description="Name of the Event.", priority=1),
    ),
    cells=cells.event,
)
LEASE = Kind(
    group="coordination.k8s.io",
    kind="Lease",
    plural="leases",
    description="Lease records which client does some work, and until when.",
    properties={
        "spec": struct(
            {
                "holderIdentity": STRING,
                "preferredHolder": STRING,
                "strategy": STRING,
                "leaseDurationSeconds": INTEGER,
                "acquireTime": STRING,
                "renewTime": STRING,
                "leaseTransitions": INTEGER,
            }
        )
    },
    columns=(Column("Holder", description="The client that holds the Lease."),),
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
