"""Checks the schemas of CustomResourceDefinitions: they must be structural (apiextensions-apiserver's
pkg/apiserver/schema and pkg/apis/apiextensions/validation). Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from apiserver.meta import errors
from apiserver.meta.errors import FieldError
from apiserver.meta.resource import Schema

_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_PRESERVE = "x-kubernetes-preserve-unknown-fields"
_INT_OR_STRING = "x-kubernetes-int-or-string"
_EMBEDDED = "x-kubernetes-embedded-resource"
_INT_OR_STRING_TYPES = [{"type": "integer"}, {"type": "string"}]
_MISSING_TYPE = {
    "root": "must not be empty at the root",
    "item": "must not be empty for specified array items",
    "field": "must not be empty for specified object fields",
}
_NESTED_FORBIDDEN: Mapping[str, str] = {
    "type": "must be empty to be structural",
    "additionalProperties": "must be undefined to be structural",
    "default": "must be undefined to be structural",
    "title": "must be empty to be structural",
    "description": "must be empty to be structural",
    "nullable": "must be false to be structural",
    _PRESERVE: "must be false to be structural",
    _EMBEDDED: "must be false to be structural",
    _INT_OR_STRING: "must be false to be structural",
    "x-kubernetes-list-map-keys": "must be empty to be structural",
    "x-kubernetes-list-type": "must be undefined to be structural",
    "x-kubernetes-map-type": "must be undefined to be structural",
}
_NOT_SUPPORTED = ("definitions", "dependencies", "id", "patternProperties", "$ref", "$schema", "additionalItems")
_METADATA_PARTS = {"name", "generateName"}


def structural_errors(schema: Schema, path: str) -> list[FieldError]:
    """Returns why the schema of a version is not structural, and what else is wrong with it besides its rules."""
    return [*_invariant_errors(schema, "root", path), *_completeness_errors(schema, schema, path, path)]


def _invariant_errors(schema: Schema, level: str, path: str) -> Iterator[FieldError]:
    items, additional = schema.get("items"), schema.get("additionalProperties")
    properties: Mapping[str, Schema] = schema.get("properties") or {}
    if schema.get("type") == "array" and items is None:
        yield errors.required(f"{path}.items", "must be specified")
    if isinstance(items, Mapping):
        yield from _invariant_errors(items, "item", f"{path}.items")
    elif items is not None:
        yield errors.forbidden(f"{path}.items", "items must be a schema object and not an array")
    for name, each in properties.items():
        if level == "root" and name == "metadata":
            yield from _metadata_errors(each, f"{path}.properties[metadata]")
        else:
            yield from _invariant_errors(each, "field", f"{path}.properties[{name}]")
    if additional is not None:
        if level == "root":
            yield errors.forbidden(f"{path}.additionalProperties", "must not be used at the root")
        if properties:
            why = "additionalProperties and properties are mutual exclusive"
            yield errors.forbidden(f"{path}.additionalProperties", why)
        if isinstance(additional, Mapping):
            yield from _invariant_errors(additional, "field", f"{path}.additionalProperties")
    yield from _type_errors(schema, level, path)
    yield from _keyword_errors(schema, path)
    yield from _list_errors(schema, path)
    yield from _alternative_errors(schema, path)


def _type_errors(schema: Schema, level: str, path: str) -> Iterator[FieldError]:
    found, where = schema.get("type") or "", f"{path}.type"
    if schema.get(_EMBEDDED) and found != "object":
        why = f"must be object if {_EMBEDDED} is true"
        yield errors.invalid(where, found, why) if found else errors.required(where, why)
    elif not found and not schema.get(_INT_OR_STRING) and not schema.get(_PRESERVE) and not schema.get("$ref"):
        yield errors.required(where, _MISSING_TYPE[level])
    elif level == "root" and found and found != "object":
        yield errors.invalid(where, found, "must be object at the root")
    if found and found not in _TYPES:
        yield errors.not_supported(where, found, _TYPES)
    if schema.get(_INT_OR_STRING) and schema.get(_PRESERVE):
        yield errors.invalid(f"{path}.{_PRESERVE}", True, f"must be false if {_INT_OR_STRING} is true")
    if schema.get(_INT_OR_STRING) and schema.get(_EMBEDDED):
        yield errors.invalid(f"{path}.{_EMBEDDED}", True, f"must be false if {_INT_OR_STRING} is true")
    if schema.get(_EMBEDDED) and not schema.get(_PRESERVE) and not schema.get("properties"):
        why = f"must not be empty if {_EMBEDDED} is true without {_PRESERVE}"
        yield errors.required(f"{path}.properties", why)
    if level == "root" and schema.get("nullable"):
        yield errors.forbidden(f"{path}.nullable", "nullable cannot be true at the root")


def _metadata_errors(schema: Schema, path: str) -> Iterator[FieldError]:
    if schema.get("type") != "object":
        yield errors.invalid(f"{path}.type", schema.get("type") or "", "must be object")
    others = {name for name in schema if name not in ("type", "description", "properties")}
    if others or not _METADATA_PARTS.issuperset(schema.get("properties") or ()):
        why = "must not specify anything other than name and generateName, but metadata is implicitly specified"
        yield errors.forbidden(path, why)


def _keyword_errors(schema: Schema, path: str) -> Iterator[FieldError]:
    for name in _NOT_SUPPORTED:
        if schema.get(name):
            yield errors.forbidden(f"{path}.{name}", f"{name} is not supported")
    if schema.get("uniqueItems"):
        why = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield errors.forbidden(f"{path}.uniqueItems", why)
    if schema.get(_PRESERVE) is False:
        yield errors.invalid(f"{path}.{_PRESERVE}", False, "must be true or undefined")
    kind, found = schema.get("x-kubernetes-map-type"), schema.get("type") or ""
    if kind is not None:
        if found != "object":
            why = "must be object if x-kubernetes-map-type is specified"
            yield errors.invalid(f"{path}.type", found, why) if found else errors.required(f"{path}.type", why)
        if kind not in ("atomic", "granular"):
            yield errors.not_supported(f"{path}.x-kubernetes-map-type", kind, ("atomic", "granular"))


def _list_errors(schema: Schema, path: str) -> Iterator[FieldError]:
    kind, keys = schema.get("x-kubernetes-list-type"), schema.get("x-kubernetes-list-map-keys") or ()
    found, items = schema.get("type") or "", schema.get("items") or {}
    where = f"{path}.x-kubernetes-list-type"
    if kind is not None and found != "array":
        why = "must be array if x-kubernetes-list-type is specified"
        yield errors.invalid(f"{path}.type", found, why) if found else errors.required(f"{path}.type", why)
    elif kind == "set" and items.get("type") == "object" and items.get("x-kubernetes-map-type") != "atomic":
        why = "must be atomic as item of a list with x-kubernetes-list-type=set"
        yield errors.invalid(f"{path}.items.x-kubernetes-map-type", items.get("x-kubernetes-map-type"), why)
    if kind not in (None, "atomic", "set", "map"):
        yield errors.not_supported(where, kind, ("atomic", "set", "map"))
    if keys and kind != "map":
        why = "must be map if x-kubernetes-list-map-keys is non-empty"
        yield errors.required(where, why) if kind is None else errors.invalid(where, kind, why)
    if kind == "map":
        yield from _map_errors(items, keys, path)


def _map_errors(items: Schema, keys: Sequence[str], path: str) -> Iterator[FieldError]:
    where = f"{path}.x-kubernetes-list-map-keys"
    if not keys:
        yield errors.required(where, "must not be empty if x-kubernetes-list-type is map")
    if items.get("type") != "object":
        why = "must be object if parent array's x-kubernetes-list-type is map"
        yield errors.invalid(f"{path}.items.type", items.get("type") or "", why)
        return
    if items.get("nullable"):
        yield errors.forbidden(f"{path}.items.nullable", "cannot be nullable when x-kubernetes-list-type is map")
    properties, required = items.get("properties") or {}, items.get("required") or ()
    if len(set(keys)) < len(keys):
        yield errors.invalid(where, list(keys), "must not contain duplicate entries")
    for key in dict.fromkeys(keys):
        part = properties.get(key)
        inside = f"{path}.items.properties[{key}]"
        if part is None:
            yield errors.invalid(where, list(keys), "entries must all be names of item properties")
        elif part.get("type") in ("array", "object"):
            why = "must be a scalar type if parent array's x-kubernetes-list-type is map"
            yield errors.invalid(f"{inside}.type", part["type"], why)
        elif part.get("nullable"):
            why = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable"
            yield errors.forbidden(f"{inside}.nullable", why)
        elif "default" not in part and key not in required:
            why = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property"
            yield errors.required(f"{inside}.default", why)


def _alternative_errors(schema: Schema, path: str) -> Iterator[FieldError]:
    """The alternatives of a structural schema restrict values, and do not declare fields."""
    for name in ("anyOf", "allOf", "oneOf"):
        alternatives = schema.get(name) or ()
        if schema.get(_INT_OR_STRING) and _is_int_or_string(name, alternatives):
            alternatives = ()
        for index, each in enumerate(alternatives):
            yield from _nested_errors(each, f"{path}.{name}[{index}]")
    if isinstance(negated := schema.get("not"), Mapping):
        yield from _nested_errors(negated, f"{path}.not")


def _is_int_or_string(name: str, alternatives: Sequence[Any]) -> bool:
    if name == "anyOf":
        return list(alternatives) == _INT_OR_STRING_TYPES
    return name == "allOf" and bool(alternatives) and alternatives[0].get("anyOf") == _INT_OR_STRING_TYPES


def _nested_errors(schema: Schema, path: str) -> Iterator[FieldError]:
    for name, why in _NESTED_FORBIDDEN.items():
        if schema.get(name):
            yield errors.forbidden(f"{path}.{name}", why)
    if "metadata" in (schema.get("properties") or {}):
        yield errors.forbidden(f"{path}.properties[metadata]", "must not be specified in a nested context")
    if schema.get("x-kubernetes-validations") and ".allOf[" not in path:
        yield errors.forbidden(f"{path}.x-kubernetes-validations", "must be empty to be structural")
    yield from _alternative_errors(schema, path)
    if isinstance(items := schema.get("items"), Mapping):
        yield from _nested_errors(items, f"{path}.items")
    for name, each in (schema.get("properties") or {}).items():
        yield from _nested_errors(each, f"{path}.properties[{name}]")


def _completeness_errors(restriction: Schema, schema: Schema | None, path: str, where: str) -> Iterator[FieldError]:
    """Every field that an alternative restricts must be declared outside of it."""
    for name in ("allOf", "anyOf", "oneOf"):
        for index, each in enumerate(restriction.get(name) or ()):
            yield from _undeclared_errors(each, schema, path, f"{where}.{name}[{index}]")
    if isinstance(negated := restriction.get("not"), Mapping):
        yield from _undeclared_errors(negated, schema, path, f"{where}.not")


def _undeclared_errors(restriction: Schema, schema: Schema | None, path: str, where: str) -> Iterator[FieldError]:
    if schema is None:
        yield errors.required(path, f"because it is defined in {where}")
        return
    yield from _completeness_errors(restriction, schema, path, where)
    if isinstance(items := restriction.get("items"), Mapping):
        yield from _undeclared_errors(items, schema.get("items"), f"{path}.items", f"{where}.items")
    for name, each in (restriction.get("properties") or {}).items():
        declared = (schema.get("properties") or {}).get(name)
        inside = f"properties[{name}]"
        yield from _undeclared_errors(each, declared, f"{path}.{inside}", f"{where}.{inside}")
