"""Descriptors of the protobuf messages in k8s.io/apimachinery, and the conversion of its types to JSON."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from apiserver.meta.protobuf_message import FieldDescriptor, ScalarType, map_of, message, optional, repeated
from apiserver.serializer.decoder import decode

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NANOS_PER_SECOND = 1_000_000_000


def _moment(timestamp: dict[str, Any], timespec: str) -> str:
    """Formats a timestamp as RFC 3339 in UTC; the zero time, an empty message, is the empty string."""
    if not timestamp:
        return ""
    nanos = timestamp.get("nanos", 0)
    if not 0 <= nanos < _NANOS_PER_SECOND:
        raise ValueError(f"a time has {nanos} nanoseconds")
    moment = _EPOCH + timedelta(seconds=timestamp.get("seconds", 0), microseconds=nanos // 1000)
    return moment.isoformat(timespec=timespec).replace("+00:00", "Z")


def _time(timestamp: dict[str, Any]) -> str:
    return _moment(timestamp, "seconds")


def _micro_time(timestamp: dict[str, Any]) -> str:
    return _moment(timestamp, "microseconds")


def _quantity(fields: dict[str, Any]) -> str:
    return str(fields.get("string", "0"))


def _int_or_string(fields: dict[str, Any]) -> int | str:
    return str(fields.get("strVal", "")) if fields.get("type") else int(fields.get("intVal", 0))


def _items(fields: dict[str, Any]) -> list[str]:
    return list(fields.get("items", ()))


def _document(fields: dict[str, Any]) -> Any:
    raw = fields.get("raw")
    return decode(raw, "application/json").value if raw else {}


# the presence of `seconds` distinguishes 1970 from the zero time
_TIMESTAMP: dict[int, FieldDescriptor | str] = {
    1: optional("seconds", ScalarType.INT),
    2: FieldDescriptor("nanos", ScalarType.INT),
}
TIME = message("Time", _TIMESTAMP, _time)
MICRO_TIME = message("MicroTime", _TIMESTAMP, _micro_time)
QUANTITY = message("Quantity", {1: "string"}, _quantity)
INT_OR_STRING = message(
    "IntOrString",
    {1: FieldDescriptor("type", ScalarType.INT), 2: FieldDescriptor("intVal", ScalarType.INT), 3: "strVal"},
    _int_or_string,
)
VALUES = message("ExtraValue", {1: repeated("items")}, _items)
_FIELDS_V1 = message("FieldsV1", {1: FieldDescriptor("raw", ScalarType.RAW)}, _document)

_OWNER_REFERENCE = message(
    "OwnerReference",
    {
        1: "kind",
        3: "name",
        4: "uid",
        5: "apiVersion",
        6: optional("controller", ScalarType.BOOL),
        7: optional("blockOwnerDeletion", ScalarType.BOOL),
    },
)
_MANAGED_FIELDS_ENTRY = message(
    "ManagedFieldsEntry",
    {
        1: "manager",
        2: "operation",
        3: "apiVersion",
        4: FieldDescriptor("time", TIME),
        6: "fieldsType",
        7: FieldDescriptor("fieldsV1", _FIELDS_V1),
        8: "subresource",
    },
)
OBJECT_META = message(
    "ObjectMeta",
    {
        1: "name",
        2: "generateName",
        3: "namespace",
        4: "selfLink",
        5: "uid",
        6: "resourceVersion",
        7: FieldDescriptor("generation", ScalarType.INT),
        8: FieldDescriptor("creationTimestamp", TIME),
        9: FieldDescriptor("deletionTimestamp", TIME),
        10: optional("deletionGracePeriodSeconds", ScalarType.INT),
        11: map_of("labels"),
        12: map_of("annotations"),
        13: repeated("ownerReferences", _OWNER_REFERENCE),
        14: repeated("finalizers"),
        17: repeated("managedFields", _MANAGED_FIELDS_ENTRY),
    },
)
SELECTOR_REQUIREMENT = message("LabelSelectorRequirement", {1: "key", 2: "operator", 3: repeated("values")})
LABEL_SELECTOR = message(
    "LabelSelector", {1: map_of("matchLabels"), 2: repeated("matchExpressions", SELECTOR_REQUIREMENT)}
)
CONDITION = message(
    "Condition",
    {
        1: "type",
        2: "status",
        3: FieldDescriptor("observedGeneration", ScalarType.INT),
        4: FieldDescriptor("lastTransitionTime", TIME),
        5: "reason",
        6: "message",
    },
)
DELETE_OPTIONS = message(
    "DeleteOptions",
    {
        1: optional("gracePeriodSeconds", ScalarType.INT),
        2: optional("preconditions", message("Preconditions", {1: optional("uid"), 2: optional("resourceVersion")})),
        3: optional("orphanDependents", ScalarType.BOOL),
        4: optional("propagationPolicy"),
        5: repeated("dryRun"),
        6: optional("ignoreStoreReadErrorWithClusterBreakingPotential", ScalarType.BOOL),
    },
)
