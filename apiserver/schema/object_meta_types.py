"""Type checks of metadata, with the errors of Go's decoder. A wrong type is a 400 instead of a 422, because metadata is
a typed struct in Go (WIRE-D32)."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

from apiserver.meta.resource import Object, Resource, Schema
from apiserver.schema.object_meta import OBJECT_META

_GO_ELEMENTS = {
    "labels": "map[string]string",
    "annotations": "map[string]string",
    "finalizers": "[]string",
    "ownerReferences": "[]v1.OwnerReference",
    "managedFields": "[]v1.ManagedFieldsEntry",
}
_GO_ITEMS = {"ownerReferences": "v1.OwnerReference", "managedFields": "v1.ManagedFieldsEntry", "finalizers": "string"}
_LAYOUT = "2006-01-02T15:04:05Z07:00"
_TIME = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}([.,]\d+)?(Z|[+-]\d{2}:\d{2})")
_INT64 = range(-(2**63), 2**63)


def metadata_type_error(resource: Resource, obj: Object) -> str | None:
    """Returns the error of Go's decoder for the metadata of `obj`, None if its types are valid. Null counts as
    absent."""
    metadata = obj.get("metadata")
    if metadata is None:
        return None
    if not isinstance(metadata, dict):
        return _mismatch(metadata, f"{resource.kind}.metadata", "v1.ObjectMeta")
    for name, schema in OBJECT_META["properties"].items():
        value = metadata.get(name)
        if value is not None and (problem := _field_error(name, schema, value)):
            return problem
    return None


def _field_error(name: str, schema: Schema, value: Any) -> str | None:
    where = f"ObjectMeta.metadata.{name}"
    if name in ("labels", "annotations"):
        if not isinstance(value, dict):
            return _mismatch(value, where, _GO_ELEMENTS[name])
        wrong = next((each for each in value.values() if each is not None and not isinstance(each, str)), None)
        return None if wrong is None else _mismatch(wrong, where, "string")
    if schema["type"] != "array":
        return _scalar_error(schema, value, where, name)
    if not isinstance(value, list):
        return _mismatch(value, where, _GO_ELEMENTS[name])
    for item in value:
        if problem := _item_error(name, schema["items"], item):
            return problem
    return None


def _item_error(name: str, schema: Schema, item: Any) -> str | None:
    where = f"ObjectMeta.metadata.{name}"
    if schema["type"] == "string":
        return None if isinstance(item, str) else _mismatch(item, where, "string")
    if not isinstance(item, dict):
        return _mismatch(item, where, _GO_ITEMS[name])
    struct = _GO_ITEMS[name].removeprefix("v1.")
    for key, each in schema["properties"].items():
        value = item.get(key)
        if value is not None and (problem := _scalar_error(each, value, f"{struct}.metadata.{name}.{key}", key)):
            return problem
    return None


def _scalar_error(schema: Schema, value: Any, where: str, name: str) -> str | None:
    match schema["type"]:
        case "integer":
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                fits = isinstance(value, int) and value in _INT64
                return (
                    None
                    if fits
                    else f"json: cannot unmarshal number {value} into Go struct field {where} of type int64"
                )
            return _mismatch(value, where, "int64")
        case "boolean":
            return None if isinstance(value, bool) else _mismatch(value, where, "bool")
        case "object":
            return None if isinstance(value, dict) else _mismatch(value, where, "map[string]interface {}")
    if not isinstance(value, str):
        return _mismatch(value, where, "types.UID" if name == "uid" else "string")
    if schema.get("format") == "date-time" and value and not _is_time(value):
        return f'parsing time "{value}" as "{_LAYOUT}": cannot parse "{value}" as "2006"'
    return None


def _is_time(text: str) -> bool:
    if not _TIME.fullmatch(text):
        return False
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def _mismatch(value: Any, where: str, go_type: str) -> str:
    return f"json: cannot unmarshal {_json_type(value)} into Go struct field {where} of type {go_type}"


def _json_type(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, (int, float)):
        return "number"
    if isinstance(value, str):
        return "string"
    if value is None:
        return "null"
    return "array" if isinstance(value, list) else "object"
