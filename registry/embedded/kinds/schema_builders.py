"""Building blocks for the schemas of the embedded cluster's kinds.

A schema describes only fields that have a merge key for server-side apply, a default, or a type that is checked. All
other fields are stored as they are sent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from apiserver.meta.resource import Schema

STRING: Schema = {"type": "string"}
BOOLEAN: Schema = {"type": "boolean"}
INTEGER: Schema = {"type": "integer"}
STRINGS: Schema = {"type": "array", "items": STRING, "x-kubernetes-list-type": "atomic"}
STRING_SET: Schema = {"type": "array", "items": STRING, "x-kubernetes-list-type": "set"}
STRING_MAP: Schema = {"type": "object", "additionalProperties": STRING}
BYTES_MAP: Schema = {"type": "object", "additionalProperties": {"type": "string", "format": "byte"}}
ANYTHING: Schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
ATOMIC: Schema = {"x-kubernetes-map-type": "atomic"}
"""Makes server-side apply treat an object as a single value."""
INT_OR_STRING: Schema = {"x-kubernetes-int-or-string": True}
QUANTITIES: Schema = {"type": "object", "additionalProperties": INT_OR_STRING}


def struct(properties: Mapping[str, Schema], *, required: Sequence[str] = (), **more: Any) -> Schema:
    """Returns the schema of an object with these fields and no others."""
    schema: dict[str, Any] = {"type": "object", "properties": dict(properties), **more}
    if required:
        schema["required"] = list(required)
    return schema


def open_struct(properties: Mapping[str, Schema], *, required: Sequence[str] = (), **more: Any) -> Schema:
    """Returns the schema of an object with these fields and any others."""
    return {**struct(properties, required=required, **more), "x-kubernetes-preserve-unknown-fields": True}


def with_default(default: Any, schema: Schema = STRING) -> Schema:
    return {**schema, "default": default}


def list_of(items: Schema, **more: Any) -> Schema:
    return {"type": "array", "items": items, **more}


def list_map(items: Schema, *keys: str) -> Schema:
    """Returns the schema of a list that server-side apply merges by `keys`."""
    return {"type": "array", "items": items, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)}


def merged_list(items: Schema, *keys: str) -> Schema:
    """Returns the schema of a list that server-side apply merges by `keys`, and a strategic merge patch by the first of
    them."""
    hints = {"x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": keys[0]}
    return {**list_map(items, *keys), **hints}


CONDITIONS: Schema = merged_list(
    open_struct(
        {
            "type": STRING,
            "status": STRING,
            "observedGeneration": INTEGER,
            "lastTransitionTime": STRING,
            "reason": STRING,
            "message": STRING,
        },
        required=("type", "status"),
    ),
    "type",
)
STATUS: Schema = open_struct({"conditions": CONDITIONS})


_OPERATOR: Schema = {"type": "string", "enum": ["In", "NotIn", "Exists", "DoesNotExist"]}
LABEL_SELECTOR: Schema = struct(
    {
        "matchLabels": STRING_MAP,
        "matchExpressions": list_of(
            struct({"key": STRING, "operator": _OPERATOR, "values": STRINGS}, required=("key", "operator")),
            **{"x-kubernetes-list-type": "atomic"},
        ),
    },
    **ATOMIC,
)
