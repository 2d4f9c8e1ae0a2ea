"""Pruning, defaulting and unknown fields by structural schemas, as for a CustomResourceDefinition."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from apiserver.json import deep as deepjson
from apiserver.json.values import MAX_OBJECT_NESTING, deep_copy, nests_deeper_than
from apiserver.meta.errors import BadRequest, RequestEntityTooLarge
from apiserver.meta.resource import Resource, Schema
from apiserver.schema.object_meta import OBJECT_META
from apiserver.schema.object_meta_types import metadata_type_error
from apiserver.schema.validation import schema_errors

__all__ = [
    "DefaultsTooLarge",
    "apply_defaults",
    "metadata_type_error",
    "object_schema",
    "prune",
    "schema_errors",
    "unknown_fields",
]

_PRESERVE = "x-kubernetes-preserve-unknown-fields"
_EMBEDDED = "x-kubernetes-embedded-resource"
_META_FIELDS = ("apiVersion", "kind", "metadata")

MAX_DEFAULTS = 1024 * 1024
"""The characters of JSON, about, that defaults may add to a value. etcd has room for an object of 1.5 MiB."""


def object_schema(resource: Resource) -> Schema:
    """Returns the schema of complete objects of a resource, including ObjectMeta."""
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": OBJECT_META,
            **resource.properties,
        },
    }
    if resource.preserve_unknown_fields:
        schema[_PRESERVE] = True
    return schema


def unknown_fields(schema: Schema, value: Any, path: str = "") -> Iterator[str]:
    """The paths of unknown fields in document order: 'spec.foo', 'spec.list[0].x' (WIRE-D67)."""
    if isinstance(value, dict):
        for name, each in value.items():
            inside = f"{path}.{name}" if path else name
            child = _value_schema(schema, name)
            if child is not None:
                yield from unknown_fields(child, each, inside)
            elif name in _META_FIELDS and schema.get(_EMBEDDED):
                continue
            elif not _preserves_unknown_fields(schema):
                yield inside
    elif isinstance(value, list) and (items := schema.get("items")):
        for index, each in enumerate(value):
            yield from unknown_fields(items, each, f"{path}[{index}]")


def prune(schema: Schema, value: Any) -> Any:
    """Copies `value` without unknown fields, and without null or empty metadata, which Go omits (WIRE-D52).

    Raises BadRequest if the copy nests deeper than MAX_OBJECT_NESTING.
    """
    pruned = _prune(schema, value, MAX_OBJECT_NESTING)
    if isinstance(pruned, dict) and (schema.get("properties") or {}).get("metadata") is OBJECT_META:
        metadata = pruned.get("metadata")
        if isinstance(metadata, dict):
            pruned["metadata"] = _drop_empty_metadata(metadata)
    return pruned


def _prune(schema: Schema, value: Any, depth: int) -> Any:
    if not isinstance(value, (dict, list)):
        return value
    if depth <= 0:
        raise BadRequest(f"the object is nested too deeply: more than {MAX_OBJECT_NESTING} levels")
    if isinstance(value, list):
        items = schema.get("items")
        return _copy(value, depth) if items is None else [_prune(items, each, depth - 1) for each in value]
    pruned = {}
    for name, each in value.items():
        child = _value_schema(schema, name)
        if child is not None:
            pruned[name] = _prune(child, each, depth - 1)
        elif _preserves_unknown_fields(schema) or (name in _META_FIELDS and schema.get(_EMBEDDED)):
            pruned[name] = _copy(each, depth - 1)
    return pruned


def _copy(value: Any, depth: int) -> Any:
    if nests_deeper_than(value, depth):
        raise BadRequest(f"the object is nested too deeply: more than {MAX_OBJECT_NESTING} levels")
    return deep_copy(value)


def _drop_empty_metadata(metadata: dict[str, Any]) -> dict[str, Any]:
    cleaned = {name: _drop_nulls(name, value) for name, value in metadata.items()}
    # empty managedFields have a meaning of their own: they turn tracking off (WIRE-G11)
    return {
        name: value for name, value in cleaned.items() if name == "managedFields" or value not in (None, "", {}, [])
    }


def _drop_nulls(name: str, value: Any) -> Any:
    if name in ("labels", "annotations") and isinstance(value, dict):
        return {key: "" if each is None else each for key, each in value.items()}
    if name == "ownerReferences" and isinstance(value, list):
        return [
            {key: each for key, each in owner.items() if each is not None} if isinstance(owner, dict) else owner
            for owner in value
        ]
    return value


class DefaultsTooLarge(RequestEntityTooLarge):
    """The defaults of the schema would add more to a value than MAX_DEFAULTS: those of the items of a list can be a
    thousand times the list."""

    def __init__(self) -> None:
        super().__init__(f"the defaults of its schema may add {MAX_DEFAULTS} characters of JSON to an object")


def apply_defaults(schema: Schema, value: Any) -> None:
    """Applies defaults in place. A null that is not allowed is replaced by the default, or else removed (WIRE-D98).
    Raises DefaultsTooLarge, after it has applied some."""
    _Defaulting().apply(schema, value)


class _Defaulting:
    """Applies the defaults of one value, and counts what they add."""

    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left = MAX_DEFAULTS

    def apply(self, schema: Schema, value: Any) -> None:
        if isinstance(value, list):
            for each in value:
                self.apply(schema.get("items") or {}, each)
            return
        if not isinstance(value, dict):
            return
        for name, child in (schema.get("properties") or {}).items():
            if "default" in child and (name not in value or _is_disallowed_null(child, value[name])):
                value[name] = self._copied(name, child["default"])
        for name in list(value):
            declared = _value_schema(schema, name)
            if declared is None:
                continue
            if _is_disallowed_null(declared, value[name]):
                del value[name]
            else:
                self.apply(declared, value[name])

    def _copied(self, name: str, default: Any) -> Any:
        is_container = isinstance(default, (dict, list))
        self._left -= len(name) + len(deepjson.dumps(default) if is_container else str(default))
        if self._left < 0:
            raise DefaultsTooLarge
        return deep_copy(default) if is_container else default


def _is_disallowed_null(schema: Schema, value: Any) -> bool:
    return value is None and not schema.get("nullable")


def _value_schema(schema: Schema, name: str) -> Schema | None:
    """Returns the schema of a key's value: its property, else additionalProperties."""
    properties = schema.get("properties") or {}
    if name in properties:
        found: Schema = properties[name]
        return found
    additional = schema.get("additionalProperties")
    return additional if isinstance(additional, Mapping) else None


def _preserves_unknown_fields(schema: Schema) -> bool:
    """True if undeclared keys are preserved. An object for an int-or-string is preserved too, for validation to
    reject."""
    return bool(
        schema.get(_PRESERVE)
        or schema.get("additionalProperties") is True
        or schema.get("x-kubernetes-int-or-string")
        or ("type" not in schema and "properties" not in schema)
    )
