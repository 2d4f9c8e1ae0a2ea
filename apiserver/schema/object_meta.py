"""ObjectMeta as a structural schema with the hints for merging (WIRE-G35). Its descriptions are in the OpenAPI
documents."""

from __future__ import annotations

from apiserver.meta.resource import Schema

_STRING: Schema = {"type": "string"}
_INTEGER: Schema = {"type": "integer", "format": "int64"}
_TIME: Schema = {"type": "string", "format": "date-time"}
_STRINGS: Schema = {"type": "object", "additionalProperties": _STRING}

OWNER_REFERENCE: Schema = {
    "type": "object",
    "properties": {
        "apiVersion": _STRING,
        "blockOwnerDeletion": {"type": "boolean"},
        "controller": {"type": "boolean"},
        "kind": _STRING,
        "name": _STRING,
        "uid": _STRING,
    },
    "required": ["apiVersion", "kind", "name", "uid"],
    "x-kubernetes-map-type": "atomic",
}

MANAGED_FIELDS_ENTRY: Schema = {
    "type": "object",
    "properties": {
        "apiVersion": _STRING,
        "fieldsType": _STRING,
        "fieldsV1": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "manager": _STRING,
        "operation": _STRING,
        "subresource": _STRING,
        "time": _TIME,
    },
}

OBJECT_META: Schema = {
    "type": "object",
    "properties": {
        "annotations": _STRINGS,
        "creationTimestamp": _TIME,
        "deletionGracePeriodSeconds": _INTEGER,
        "deletionTimestamp": _TIME,
        "finalizers": {
            "type": "array",
            "items": _STRING,
            "x-kubernetes-list-type": "set",
            "x-kubernetes-patch-strategy": "merge",
        },
        "generateName": _STRING,
        "generation": _INTEGER,
        "labels": _STRINGS,
        "managedFields": {"type": "array", "items": MANAGED_FIELDS_ENTRY, "x-kubernetes-list-type": "atomic"},
        "name": _STRING,
        "namespace": _STRING,
        "ownerReferences": {
            "type": "array",
            "items": OWNER_REFERENCE,
            "x-kubernetes-list-map-keys": ["uid"],
            "x-kubernetes-list-type": "map",
            "x-kubernetes-patch-merge-key": "uid",
            "x-kubernetes-patch-strategy": "merge",
        },
        "resourceVersion": _STRING,
        "selfLink": _STRING,
        "uid": _STRING,
    },
}
