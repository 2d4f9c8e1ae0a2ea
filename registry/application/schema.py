"""The schema of a kind's `spec`, as an ApplicationDefinition has it: its bounds and publication. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from apiserver.json import deep as deepjson
from apiserver.json.values import nests_deeper_than
from apiserver.meta.resource import Schema
from apiserver.schema.choices import alternatives_of_one_value
from apiserver.schema.patterns import go_pattern
from apiserver.schema.rules import RULES
from apiserver.schema.validation import Matches
from registry.application.default_sizes import oversized_default

MAX_BYTES = 512 * 1024
MAX_NESTING = 64
MAX_PARTS = 10_000
MAX_PATTERN = 2_000
MAX_RULES = 100
MAX_ENUM = 2_000
MAX_MAP_KEYS = 64
MAX_ALTERNATIVES = 200
"""The largest schema of Cozystack has 34 kB, 7 levels and 150 parts, an enum of 47, and 2 alternatives of a value."""

_PRESERVE = "x-kubernetes-preserve-unknown-fields"
_MAP_KEYS = "x-kubernetes-list-map-keys"
_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_KEYWORD_TYPES: Mapping[str, tuple[type, ...]] = {
    "properties": (dict,),
    "items": (dict,),
    "additionalProperties": (dict, bool),
    "required": (list,),
    _MAP_KEYS: (list,),
    "enum": (list,),
    "anyOf": (list,),
    "oneOf": (list,),
    "allOf": (list,),
    "not": (dict,),
    "pattern": (str,),
    RULES: (list,),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"), (int,)),
    **dict.fromkeys(("minimum", "maximum", "multipleOf"), (int, float)),
}
_RULE_TEXTS = ("message", "messageExpression", "reason", "fieldPath")


class UnusableSchema(ValueError):
    """The schema cannot be served; the text says why."""


def parse_schema(text: str, matches: Matches) -> Schema:
    """The schema in the text of a definition; an open object if the text is empty. `matches` is called with every
    pattern. Raises UnusableSchema."""
    if len(text) > MAX_BYTES:
        raise UnusableSchema(f"it has more than {MAX_BYTES} characters")
    if not text.strip():
        return {"type": "object"}
    schema = _load(text)
    if schema.get("type", "object") != "object":
        raise UnusableSchema("its type must be object")
    _check(schema, matches)
    if (number := alternatives_of_one_value(schema)) > MAX_ALTERNATIVES:
        why = f"{number} alternatives (anyOf, oneOf, allOf, not)"
        raise UnusableSchema(f"a value may be judged by {why}, and {MAX_ALTERNATIVES} are allowed")
    if problem := oversized_default(schema):
        raise UnusableSchema(problem)
    return {"type": "object", **schema}


def _load(text: str) -> Schema:
    try:
        schema = orjson.loads(text)
    except ValueError as error:
        raise UnusableSchema(f"it is no JSON: {error}") from error
    if not isinstance(schema, dict):
        raise UnusableSchema("it is no JSON object")
    if deepjson.may_be_deep(text) and nests_deeper_than(schema, 2 * MAX_NESTING):
        raise UnusableSchema(f"it nests deeper than {MAX_NESTING} levels")
    return schema


def _check(schema: Schema, matches: Matches) -> None:
    rules = 0
    for number, (path, part, depth) in enumerate(schema_parts(schema), start=1):
        if number > MAX_PARTS:
            raise UnusableSchema(f"it has more than {MAX_PARTS} parts")
        if depth > MAX_NESTING:
            raise UnusableSchema(f"it nests deeper than {MAX_NESTING} levels")
        _check_part(path or ".", part, matches)
        rules += len(part.get(RULES) or ())
    if rules > MAX_RULES:
        raise UnusableSchema(f"it has more than {MAX_RULES} rules")


def _check_part(path: str, part: Schema, matches: Matches) -> None:
    for keyword, types in _KEYWORD_TYPES.items():
        if keyword in part and (not isinstance(part[keyword], types) or (part[keyword] is True and bool not in types)):
            raise UnusableSchema(f"{path}: {keyword} has a value of a wrong type")
    if "type" in part and part["type"] not in _TYPES:
        raise UnusableSchema(f"{path}: type must be one of {', '.join(_TYPES)}")
    if part.get("$ref"):
        raise UnusableSchema(f"{path}: $ref is not supported")
    for keyword in ("required", _MAP_KEYS):
        if not all(isinstance(name, str) for name in part.get(keyword) or ()):
            raise UnusableSchema(f"{path}: {keyword} has a value of a wrong type")
    if not all(_is_rule(rule) for rule in part.get(RULES) or ()):
        raise UnusableSchema(f"{path}: {RULES} has a value of a wrong type")
    if len(part.get(_MAP_KEYS) or ()) > MAX_MAP_KEYS:
        raise UnusableSchema(f"{path}: {_MAP_KEYS} has more than {MAX_MAP_KEYS} names")
    if len(part.get("enum") or ()) > MAX_ENUM:
        raise UnusableSchema(f"{path}: enum has more than {MAX_ENUM} values")
    if pattern := part.get("pattern"):
        _check_pattern(path, pattern, matches)


def _is_rule(rule: object) -> bool:
    if not isinstance(rule, dict) or not isinstance(rule.get("rule"), str):
        return False
    return all(isinstance(rule.get(field), str | None) for field in _RULE_TEXTS)


def _check_pattern(path: str, pattern: str, matches: Matches) -> None:
    if len(pattern) > MAX_PATTERN:
        raise UnusableSchema(f"{path}: pattern has more than {MAX_PATTERN} characters")
    try:
        go_pattern(pattern)
        matches(pattern, "")
    except ValueError as error:
        raise UnusableSchema(f"{path}: pattern {pattern} is invalid: {error}") from error


def schema_parts(schema: object, path: str = "", depth: int = 0) -> Iterator[tuple[str, Schema, int]]:
    """Yields every schema in a schema with its path and depth. Raises UnusableSchema for one that is no object."""
    if not isinstance(schema, dict):
        raise UnusableSchema(f"{path or '.'}: must be an object")
    yield path, schema, depth
    for name, each in _children(schema):
        yield from schema_parts(each, f"{path}.{name}" if path else name, depth + 1)


def _children(schema: Schema) -> Iterator[tuple[str, object]]:
    for name, each in (schema.get("properties") or {}).items():
        yield name, each
    for keyword in ("items", "additionalProperties", "not"):
        if keyword in schema and not isinstance(schema[keyword], bool):
            yield keyword, schema[keyword]
    for keyword in ("anyOf", "oneOf", "allOf"):
        for index, each in enumerate(schema.get(keyword) or ()):
            yield f"{keyword}[{index}]", each


def published_schema(schema: Schema) -> Schema:
    """The schema as OpenAPI shows it: open at the top, because charts take values that are not documented."""
    return schema if "additionalProperties" in schema else {**schema, _PRESERVE: True}


def decoding_schema(schema: Schema) -> Schema:
    """The schema by which writes are decoded and their fields are tracked: it has types, and it neither adds a default
    nor removes a null, because values are stored as a client sends them."""
    found = {keyword: value for keyword, value in schema.items() if keyword != "default"} | {"nullable": True}
    if "properties" in schema:
        found["properties"] = {name: decoding_schema(each) for name, each in schema["properties"].items()}
    for keyword in ("items", "additionalProperties"):
        if isinstance(schema.get(keyword), dict):
            found[keyword] = decoding_schema(schema[keyword])
    return found


def undocumented_paths(schema: Schema, value: Any, path: str) -> Iterator[str]:
    """Iterates over the paths of keys that the schema does not have, where it has any."""
    if isinstance(value, list) and isinstance(items := schema.get("items"), dict):
        for index, each in enumerate(value):
            yield from undocumented_paths(items, each, f"{path}[{index}]")
    if not isinstance(value, dict) or schema.get(_PRESERVE) is True:
        return
    properties = schema.get("properties")
    additional = schema.get("additionalProperties")
    for name, each in value.items():
        if properties and name in properties:
            yield from undocumented_paths(properties[name], each, f"{path}.{name}")
        elif isinstance(additional, dict):
            yield from undocumented_paths(additional, each, f"{path}.{name}")
        elif properties and additional is not True:
            yield f"{path}.{name}"
