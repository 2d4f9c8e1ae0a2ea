"""Validation by structural schemas, with the errors of a CustomResourceDefinition (WIRE-D20)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from apiserver.json.values import equal
from apiserver.meta import errors
from apiserver.meta import field_path as fieldpath
from apiserver.meta.errors import FieldError
from apiserver.meta.resource import Schema


def schema_errors(schema: Schema, value: Any, path: str) -> list[FieldError]:
    """Validates `value`, whose path is `path`: types, enums, patterns, bounds, required fields and duplicates in sets.
    The errors are in document order; a value of a wrong type has no other errors."""
    return list(_errors(schema, value, path))


def _errors(schema: Schema, value: Any, path: str) -> Iterator[FieldError]:
    if value is None and schema.get("nullable"):
        return
    if expected := _expected_type(schema, value):
        found = _json_type(value)
        yield errors.type_invalid(path, found, f'{path} in body must be of type {expected}: "{found}"')
        return
    if isinstance(value, dict):
        yield from _object_errors(schema, value, path)
    elif isinstance(value, list):
        yield from _list_errors(schema, value, path)
    elif isinstance(value, str):
        yield from _string_errors(schema, value, path)
    elif not isinstance(value, bool):
        yield from _number_errors(schema, value, path)
    choices = schema.get("enum")
    if choices is not None and not any(equal(value, choice) for choice in choices):
        yield errors.not_supported(path, value, choices)


def _expected_type(schema: Schema, value: Any) -> str:
    """Returns the type that `value` should have, empty if it is valid."""
    if schema.get("x-kubernetes-int-or-string"):
        fits = isinstance(value, (int, str)) and not isinstance(value, bool)
        return "" if fits else "integer,string"
    expected: str = schema.get("type", "")
    if not expected:
        return ""
    found = _json_type(value)
    return "" if found == expected or (expected == "number" and found == "integer") else expected


def _object_errors(schema: Schema, value: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    for name in schema.get("required") or ():
        if name not in value:
            yield errors.required(f"{path}.{name}" if path else name)
    properties = schema.get("properties") or {}
    additional = schema.get("additionalProperties")
    for name, each in value.items():
        child = properties.get(name, additional)
        if isinstance(child, Mapping):
            yield from _errors(child, each, f"{path}.{name}" if path else name)


def _list_errors(schema: Schema, value: Sequence[Any], path: str) -> Iterator[FieldError]:
    fewest, most = schema.get("minItems"), schema.get("maxItems")
    if fewest is not None and len(value) < fewest:
        yield errors.invalid(path, len(value), f"{path} in body should have at least {fewest} items")
    if most is not None and len(value) > most:
        yield FieldError("FieldValueTooMany", path, len(value), f"must have at most {most} items")
    items = schema.get("items")
    if isinstance(items, Mapping):
        for index, each in enumerate(value):
            yield from _errors(items, each, f"{path}[{index}]")
    yield from _duplicate_errors(schema, value, path)


def _duplicate_errors(schema: Schema, value: Sequence[Any], path: str) -> Iterator[FieldError]:
    kind, keys = schema.get("x-kubernetes-list-type"), schema.get("x-kubernetes-list-map-keys") or ()
    if kind not in ("set", "map"):
        return
    seen: set[str] = set()
    for index, each in enumerate(value):
        identity = each
        if kind == "map":
            if not isinstance(each, dict):
                continue
            identity = {name: each[name] for name in keys if name in each}
        # equal values have equal texts, which can be looked up in a set
        text = fieldpath.value_element(identity)
        if text in seen:
            yield FieldError("FieldValueDuplicate", f"{path}[{index}]", identity)
        seen.add(text)


def _string_errors(schema: Schema, value: str, path: str) -> Iterator[FieldError]:
    shortest, longest, pattern = schema.get("minLength"), schema.get("maxLength"), schema.get("pattern")
    if longest is not None and len(value) > longest:
        yield errors.too_long(path, longest)
    if shortest is not None and len(value) < shortest:
        yield errors.invalid(path, value, f"{path} in body should be at least {shortest} chars long")
    if pattern is not None and not _compiled(pattern).search(value):
        yield errors.invalid(path, value, f"{path} in body should match '{pattern}'")


def _number_errors(schema: Schema, value: float, path: str) -> Iterator[FieldError]:
    least, most = schema.get("minimum"), schema.get("maximum")
    if least is not None and value < least:
        yield errors.invalid(path, value, f"{path} in body should be greater than or equal to {least}")
    if most is not None and value > most:
        yield errors.invalid(path, value, f"{path} in body should be less than or equal to {most}")


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def _json_type(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float):
        return "integer" if value.is_integer() else "number"
    if isinstance(value, str):
        return "string"
    if value is None:
        return "null"
    return "array" if isinstance(value, list) else "object"
