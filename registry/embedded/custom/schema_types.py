"""Reads the schemas of CustomResourceDefinitions as Go reads them into JSONSchemaProps
(apiextensions.k8s.io/v1, types_jsonschema.go): every keyword has a type, null is the same as absence, and what is no
keyword is dropped. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from apiserver.meta.errors import BadRequest
from apiserver.meta.resource import Object

_Read = Callable[[Any, str, str], Any]
"""(value, path, struct) -> the value as it is stored. Raises BadRequest. The path is in Go's form, without the names of
properties; the struct is the one whose field it is."""

_STRUCT = "JSONSchemaProps"
_RULE_STRUCT = "ValidationRule"


def with_schema_types(crd: Object) -> Object:
    """Returns a copy of a definition whose schemas have only keywords of the right types. Raises BadRequest with the
    message of a kube-apiserver."""
    spec = crd.get("spec") or {}
    versions = [_version(each) for each in spec.get("versions") or ()]
    return {**crd, "spec": {**spec, "versions": versions}} if versions else crd


def _version(version: Any) -> Any:
    schema = version.get("schema") if isinstance(version, dict) else None
    if not isinstance(schema, dict) or (found := schema.get("openAPIV3Schema")) is None:
        return version
    path = "spec.versions.schema.openAPIV3Schema"
    return {**version, "schema": {**schema, "openAPIV3Schema": _schema(found, path, "CustomResourceValidation")}}


def _schema(value: Any, path: str, struct: str) -> Any:
    if value is None:
        return {}
    return _struct(value, path, struct, _KEYWORDS, _STRUCT, "v1.JSONSchemaProps")


def _struct(value: Any, path: str, struct: str, fields: Mapping[str, _Read], own: str, type_: str) -> Any:
    if not isinstance(value, dict):
        raise _mismatch(value, path, struct, type_)
    return {
        name: fields[name](each, f"{path}.{name}", own)
        for name, each in value.items()
        if each is not None and name in fields
    }


def _mismatch(value: Any, path: str, struct: str, type_: str) -> BadRequest:
    names: Mapping[type, str] = {bool: "bool", int: "number", float: "number", str: "string", list: "array"}
    found = names.get(type(value), "object")
    if found == "number" and type_ == "int64":
        found = f"number {value}"
    return BadRequest(
        'CustomResourceDefinition in version "v1" cannot be handled as a CustomResourceDefinition: json: cannot '
        f"unmarshal {found} into Go struct field {struct}.{path} of type {type_}"
    )


def _scalar(type_: str, *accepted: type) -> _Read:
    def read(value: Any, path: str, struct: str) -> Any:
        # a bool is an int in Python
        if not isinstance(value, accepted) or (isinstance(value, bool) and bool not in accepted):
            raise _mismatch(value, path, struct, type_)
        return value

    return read


def _integer(value: Any, path: str, struct: str) -> Any:
    if isinstance(value, bool) or not isinstance(value, int) or not -(2**63) <= value < 2**63:
        raise _mismatch(value, path, struct, "int64")
    return value


def _list(read: _Read, type_: str) -> _Read:
    def read_list(value: Any, path: str, struct: str) -> Any:
        if not isinstance(value, list):
            raise _mismatch(value, path, struct, type_)
        return [read(each, path, struct) for each in value]

    return read_list


def _map(read: _Read, type_: str) -> _Read:
    def read_map(value: Any, path: str, struct: str) -> Any:
        if not isinstance(value, dict):
            raise _mismatch(value, path, struct, f"map[string]{type_}")
        return {name: read(each, path, struct) for name, each in value.items()}

    return read_map


def _anything(value: Any, path: str, struct: str) -> Any:
    return value


def _schema_or_bool(value: Any, path: str, struct: str) -> Any:
    if isinstance(value, bool):
        return value
    if not isinstance(value, dict):
        raise _bad_union("boolean or JSON schema expected")
    return _schema(value, path, struct)


def _schema_or_list(value: Any, path: str, struct: str) -> Any:
    if isinstance(value, list):
        return [_schema(each, path, struct) for each in value]
    return _schema(value, path, struct)


def _schema_or_strings(value: Any, path: str, struct: str) -> Any:
    return _strings(value, path, struct) if isinstance(value, list) else _schema(value, path, struct)


def _bad_union(why: str) -> BadRequest:
    return BadRequest(
        f'CustomResourceDefinition in version "v1" cannot be handled as a CustomResourceDefinition: {why}'
    )


def _rule(value: Any, path: str, struct: str) -> Any:
    return _struct(value, path, struct, _RULE_FIELDS, _RULE_STRUCT, "v1.ValidationRule")


_string, _boolean, _number = _scalar("string", str), _scalar("bool", bool), _scalar("float64", int, float)
_strings = _list(_string, "[]string")
_schemas, _schema_map = _list(_schema, "[]v1.JSONSchemaProps"), _map(_schema, "v1.JSONSchemaProps")
_RULE_FIELDS: Mapping[str, _Read] = {
    **dict.fromkeys(("rule", "message", "messageExpression", "reason", "fieldPath"), _string),
    "optionalOldSelf": _boolean,
}
_KEYWORDS: Mapping[str, _Read] = {
    **dict.fromkeys(("id", "$schema", "$ref", "description", "type", "format", "title", "pattern"), _string),
    **dict.fromkeys(("x-kubernetes-list-type", "x-kubernetes-map-type"), _string),
    **dict.fromkeys(("exclusiveMaximum", "exclusiveMinimum", "uniqueItems", "nullable"), _boolean),
    **dict.fromkeys(
        (
            "x-kubernetes-preserve-unknown-fields",
            "x-kubernetes-embedded-resource",
            "x-kubernetes-int-or-string",
        ),
        _boolean,
    ),
    **dict.fromkeys(("maximum", "minimum", "multipleOf"), _number),
    **dict.fromkeys(("maxLength", "minLength", "maxItems", "minItems", "maxProperties", "minProperties"), _integer),
    **dict.fromkeys(("default", "example"), _anything),
    "enum": _list(_anything, "[]v1.JSON"),
    "required": _strings,
    "x-kubernetes-list-map-keys": _strings,
    "items": _schema_or_list,
    **dict.fromkeys(("allOf", "oneOf", "anyOf"), _schemas),
    "not": _schema,
    **dict.fromkeys(("properties", "patternProperties", "definitions"), _schema_map),
    **dict.fromkeys(("additionalProperties", "additionalItems"), _schema_or_bool),
    "dependencies": _map(_schema_or_strings, "v1.JSONSchemaPropsOrStringArray"),
    "externalDocs": lambda value, path, struct: _struct(
        value,
        path,
        struct,
        {"description": _string, "url": _string},
        "ExternalDocumentation",
        "v1.ExternalDocumentation",
    ),
    "x-kubernetes-validations": _list(_rule, "v1.ValidationRules"),
}
