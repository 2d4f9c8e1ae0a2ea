"""Protobuf messages of the built-in kinds, with the field numbers of k8s.io/api.

The status of reviews is left out: clients send it empty.
"""

from __future__ import annotations

from collections.abc import Mapping

from apiserver.meta.protobuf_message import (
    FieldDescriptor,
    MessageDescriptor,
    ScalarType,
    map_of,
    message,
    optional,
    repeated,
)
from apiserver.serializer.protobuf_meta import (
    CONDITION,
    INT_OR_STRING,
    LABEL_SELECTOR,
    MICRO_TIME,
    OBJECT_META,
    QUANTITY,
    SELECTOR_REQUIREMENT,
    TIME,
    VALUES,
)

_BOOL, _INT = ScalarType.BOOL, ScalarType.INT


def _object(kind: str, fields: Mapping[int, FieldDescriptor | str]) -> MessageDescriptor:
    return message(kind, {1: FieldDescriptor("metadata", OBJECT_META), **fields})


# core/v1

_OBJECT_REFERENCE = message(
    "ObjectReference",
    {1: "kind", 2: "namespace", 3: "name", 4: "uid", 5: "apiVersion", 6: "resourceVersion", 7: "fieldPath"},
)
_NAMESPACE_CONDITION = message(
    "NamespaceCondition",
    {1: "type", 2: "status", 4: FieldDescriptor("lastTransitionTime", TIME), 5: "reason", 6: "message"},
)
_NAMESPACE = _object(
    "Namespace",
    {
        2: FieldDescriptor("spec", message("NamespaceSpec", {1: repeated("finalizers")})),
        3: FieldDescriptor(
            "status", message("NamespaceStatus", {1: "phase", 2: repeated("conditions", _NAMESPACE_CONDITION)})
        ),
    },
)
_CONFIGMAP = _object(
    "ConfigMap", {2: map_of("data"), 3: map_of("binaryData", ScalarType.BYTES), 4: optional("immutable", _BOOL)}
)
_SECRET = _object(
    "Secret",
    {2: map_of("data", ScalarType.BYTES), 3: "type", 4: map_of("stringData"), 5: optional("immutable", _BOOL)},
)
_SERVICEACCOUNT = _object(
    "ServiceAccount",
    {
        2: repeated("secrets", _OBJECT_REFERENCE),
        3: repeated("imagePullSecrets", message("LocalObjectReference", {1: "name"})),
        4: optional("automountServiceAccountToken", _BOOL),
    },
)
_SERVICE_PORT = message(
    "ServicePort",
    {
        1: "name",
        2: "protocol",
        3: FieldDescriptor("port", _INT),
        4: FieldDescriptor("targetPort", INT_OR_STRING),
        5: FieldDescriptor("nodePort", _INT),
        6: optional("appProtocol"),
    },
)
_CLIENT_IP = message("ClientIPConfig", {1: optional("timeoutSeconds", _INT)})
_SERVICE_SPEC = message(
    "ServiceSpec",
    {
        1: repeated("ports", _SERVICE_PORT),
        2: map_of("selector"),
        3: "clusterIP",
        4: "type",
        5: repeated("externalIPs"),
        7: "sessionAffinity",
        8: "loadBalancerIP",
        9: repeated("loadBalancerSourceRanges"),
        10: "externalName",
        11: "externalTrafficPolicy",
        12: FieldDescriptor("healthCheckNodePort", _INT),
        13: FieldDescriptor("publishNotReadyAddresses", _BOOL),
        14: optional("sessionAffinityConfig", message("SessionAffinityConfig", {1: optional("clientIP", _CLIENT_IP)})),
        17: optional("ipFamilyPolicy"),
        18: repeated("clusterIPs"),
        19: repeated("ipFamilies"),
        20: optional("allocateLoadBalancerNodePorts", _BOOL),
        21: optional("loadBalancerClass"),
        22: optional("internalTrafficPolicy"),
        23: optional("trafficDistribution"),
    },
)
_PORT_STATUS = message("PortStatus", {1: FieldDescriptor("port", _INT), 2: "protocol", 3: optional("error")})
_INGRESS = message(
    "LoadBalancerIngress", {1: "ip", 2: "hostname", 3: optional("ipMode"), 4: repeated("ports", _PORT_STATUS)}
)
_SERVICE_STATUS = message(
    "ServiceStatus",
    {
        1: FieldDescriptor("loadBalancer", message("LoadBalancerStatus", {1: repeated("ingress", _INGRESS)})),
        2: repeated("conditions", CONDITION),
    },
)
_SERVICE = _object(
    "Service", {2: FieldDescriptor("spec", _SERVICE_SPEC), 3: FieldDescriptor("status", _SERVICE_STATUS)}
)
_SCOPE = message("ScopedResourceSelectorRequirement", {1: "scopeName", 2: "operator", 3: repeated("values")})
_QUOTA_SPEC = message(
    "ResourceQuotaSpec",
    {
        1: map_of("hard", QUANTITY),
        2: repeated("scopes"),
        3: optional("scopeSelector", message("ScopeSelector", {1: repeated("matchExpressions", _SCOPE)})),
    },
)
_QUOTA_STATUS = message("ResourceQuotaStatus", {1: map_of("hard", QUANTITY), 2: map_of("used", QUANTITY)})
_RESOURCEQUOTA = _object(
    "ResourceQuota", {2: FieldDescriptor("spec", _QUOTA_SPEC), 3: FieldDescriptor("status", _QUOTA_STATUS)}
)
_LIMIT = message(
    "LimitRangeItem",
    {
        1: "type",
        2: map_of("max", QUANTITY),
        3: map_of("min", QUANTITY),
        4: map_of("default", QUANTITY),
        5: map_of("defaultRequest", QUANTITY),
        6: map_of("maxLimitRequestRatio", QUANTITY),
    },
)
_LIMITRANGE = _object(
    "LimitRange", {2: FieldDescriptor("spec", message("LimitRangeSpec", {1: repeated("limits", _LIMIT)}))}
)

# Events, in core/v1 and in events.k8s.io/v1

_SOURCE = message("EventSource", {1: "component", 2: "host"})
_SERIES = message(
    "EventSeries", {1: FieldDescriptor("count", _INT), 2: FieldDescriptor("lastObservedTime", MICRO_TIME)}
)
_CORE_EVENT = _object(
    "Event",
    {
        2: FieldDescriptor("involvedObject", _OBJECT_REFERENCE),
        3: "reason",
        4: "message",
        5: FieldDescriptor("source", _SOURCE),
        6: FieldDescriptor("firstTimestamp", TIME),
        7: FieldDescriptor("lastTimestamp", TIME),
        8: FieldDescriptor("count", _INT),
        9: "type",
        10: FieldDescriptor("eventTime", MICRO_TIME),
        11: optional("series", _SERIES),
        12: "action",
        13: optional("related", _OBJECT_REFERENCE),
        14: "reportingComponent",
        15: "reportingInstance",
    },
)
_EVENT = _object(
    "Event",
    {
        2: FieldDescriptor("eventTime", MICRO_TIME),
        3: optional("series", _SERIES),
        4: "reportingController",
        5: "reportingInstance",
        6: "action",
        7: "reason",
        8: FieldDescriptor("regarding", _OBJECT_REFERENCE),
        9: optional("related", _OBJECT_REFERENCE),
        10: "note",
        11: "type",
        12: FieldDescriptor("deprecatedSource", _SOURCE),
        13: FieldDescriptor("deprecatedFirstTimestamp", TIME),
        14: FieldDescriptor("deprecatedLastTimestamp", TIME),
        15: FieldDescriptor("deprecatedCount", _INT),
    },
)

# coordination.k8s.io/v1

_LEASE_SPEC = message(
    "LeaseSpec",
    {
        1: optional("holderIdentity"),
        2: optional("leaseDurationSeconds", _INT),
        3: FieldDescriptor("acquireTime", MICRO_TIME),
        4: FieldDescriptor("renewTime", MICRO_TIME),
        5: optional("leaseTransitions", _INT),
        6: optional("strategy"),
        7: optional("preferredHolder"),
    },
)
_LEASE = _object("Lease", {2: FieldDescriptor("spec", _LEASE_SPEC)})

# rbac.authorization.k8s.io/v1

_RULE = message(
    "PolicyRule",
    {
        1: repeated("verbs"),
        2: repeated("apiGroups"),
        3: repeated("resources"),
        4: repeated("resourceNames"),
        5: repeated("nonResourceURLs"),
    },
)
_AGGREGATION = message("AggregationRule", {1: repeated("clusterRoleSelectors", LABEL_SELECTOR)})
_BINDING: Mapping[int, FieldDescriptor] = {
    2: repeated("subjects", message("Subject", {1: "kind", 2: "apiGroup", 3: "name", 4: "namespace"})),
    3: FieldDescriptor("roleRef", message("RoleRef", {1: "apiGroup", 2: "kind", 3: "name"})),
}
_ROLE = _object("Role", {2: repeated("rules", _RULE)})
_CLUSTERROLE = _object("ClusterRole", {2: repeated("rules", _RULE), 3: optional("aggregationRule", _AGGREGATION)})

# authorization.k8s.io/v1

_FIELD_SELECTOR = message(
    "FieldSelectorAttributes", {1: "rawSelector", 2: repeated("requirements", SELECTOR_REQUIREMENT)}
)
_RESOURCE_ATTRIBUTES = message(
    "ResourceAttributes",
    {
        1: "namespace",
        2: "verb",
        3: "group",
        4: "version",
        5: "resource",
        6: "subresource",
        7: "name",
        # FieldSelectorAttributes and LabelSelectorAttributes have the same fields
        8: optional("fieldSelector", _FIELD_SELECTOR),
        9: optional("labelSelector", _FIELD_SELECTOR),
    },
)
_ACCESS_ATTRIBUTES: Mapping[int, FieldDescriptor] = {
    1: optional("resourceAttributes", _RESOURCE_ATTRIBUTES),
    2: optional("nonResourceAttributes", message("NonResourceAttributes", {1: "path", 2: "verb"})),
}
_SUBJECT_ACCESS_REVIEW_SPEC = message(
    "SubjectAccessReviewSpec",
    {**_ACCESS_ATTRIBUTES, 3: "user", 4: repeated("groups"), 5: map_of("extra", VALUES), 6: "uid"},
)


# authentication.k8s.io/v1

_BOUND_OBJECT = message("BoundObjectReference", {1: "kind", 2: "apiVersion", 3: "name", 4: "uid"})
_TOKEN_REQUEST = message(
    "TokenRequestSpec",
    {1: repeated("audiences"), 3: optional("boundObjectRef", _BOUND_OBJECT), 4: optional("expirationSeconds", _INT)},
)


def _review(kind: str, spec: MessageDescriptor) -> MessageDescriptor:
    return _object(kind, {2: FieldDescriptor("spec", spec)})


_BY_GROUP: Mapping[str, tuple[MessageDescriptor, ...]] = {
    "": (
        _NAMESPACE,
        _CONFIGMAP,
        _SECRET,
        _SERVICEACCOUNT,
        _SERVICE,
        _RESOURCEQUOTA,
        _LIMITRANGE,
        _CORE_EVENT,
    ),
    "events.k8s.io": (_EVENT,),
    "coordination.k8s.io": (_LEASE,),
    "rbac.authorization.k8s.io": (
        _ROLE,
        _CLUSTERROLE,
        _object("RoleBinding", _BINDING),
        _object("ClusterRoleBinding", _BINDING),
    ),
    "authorization.k8s.io": (
        _review("SubjectAccessReview", _SUBJECT_ACCESS_REVIEW_SPEC),
        _review("LocalSubjectAccessReview", _SUBJECT_ACCESS_REVIEW_SPEC),
        _review("SelfSubjectAccessReview", message("SelfSubjectAccessReviewSpec", _ACCESS_ATTRIBUTES)),
        _review("SelfSubjectRulesReview", message("SelfSubjectRulesReviewSpec", {1: "namespace"})),
    ),
    "authentication.k8s.io": (
        _object("SelfSubjectReview", {}),
        _review("TokenRequest", _TOKEN_REQUEST),
        _review("TokenReview", message("TokenReviewSpec", {1: "token", 2: repeated("audiences")})),
    ),
}
_TABLES = {(group, "v1", table.name): table for group, tables in _BY_GROUP.items() for table in tables}


def message_descriptor_of(group: str, version: str, kind: str) -> MessageDescriptor | None:
    """Returns None for kinds that are not built into Kubernetes: they have no protobuf encoding."""
    return _TABLES.get((group, version, kind))
