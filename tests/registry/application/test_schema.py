from __future__ import annotations

import json
from typing import Any

import pytest

from admission.cel.library.regex import matches
from apiserver.meta.resource import Schema
from registry.application.defaulting import with_defaults
from registry.application.schema import (
    UnusableSchema,
    parse_schema,
    published_schema,
    undocumented_paths,
)


def nested(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


def multiplied(levels: int) -> dict[str, Any]:
    """A list of ten lists of ten lists and so on: with defaults, ten times as many for each level."""
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "array", "default": [None] * 10, "items": schema}
    return {"properties": {"a": schema}}


def parsed(schema: object) -> Schema:
    return parse_schema(schema if isinstance(schema, str) else json.dumps(schema), matches)


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        pytest.param("{", "it is no JSON", id="no JSON"),
        pytest.param(multiplied(30), r"\.: its defaults have more than 64 KiB", id="defaults of defaults"),
        pytest.param(
            {"properties": {"a": {"items": {"properties": {"b": {"default": "x" * 5000}}}}}},
            "a.items: its defaults have more than 4 KiB",
            id="a large default that each item of a list gets",
        ),
        pytest.param("[]", "no JSON object", id="a list"),
        pytest.param({"type": "string"}, "must be object", id="the root is no object"),
        pytest.param({"properties": {"a": 5}}, "a: must be an object", id="a property that is no schema"),
        pytest.param({"properties": []}, "properties has a value of a wrong type", id="properties that are a list"),
        pytest.param({"properties": {"a": {"type": "text"}}}, "a: type must be one of", id="an unknown type"),
        pytest.param({"properties": {"a": {"minLength": "x"}}}, "minLength", id="a bound that is a text"),
        pytest.param({"properties": {"a": {"pattern": "("}}}, "pattern", id="an invalid pattern"),
        pytest.param({"properties": {"a": {"pattern": "(?=a)"}}}, "pattern", id="a pattern that Go does not know"),
        pytest.param({"properties": {"a": {"pattern": "a" * 5000}}}, "characters", id="a long pattern"),
        pytest.param({"x-kubernetes-list-map-keys": [{}]}, "map-keys has a value", id="keys that are no texts"),
        pytest.param(
            {"items": {"x-kubernetes-list-map-keys": [f"key{n}" for n in range(100)]}},
            "items: x-kubernetes-list-map-keys has more than 64 names",
            id="many keys",
        ),
        pytest.param({"items": {"enum": ["a"] * 5_000}}, "items: enum has more than 2000 values", id="a huge enum"),
        pytest.param(
            {"properties": {"a": {"items": {"anyOf": [{"pattern": "a"}] * 500}}}},
            "a value may be judged by 500 alternatives .*, and 200 are allowed",
            id="many alternatives",
        ),
        pytest.param({"$ref": "#/a"}, "$ref", id="a reference"),
        pytest.param(nested(200), "levels", id="deep"),
        pytest.param({"properties": {f"a{n}": {} for n in range(20_000)}}, "parts", id="many parts"),
        pytest.param({"x-kubernetes-validations": [{"rule": "true"}] * 200}, "rules", id="many rules"),
        pytest.param({"x-kubernetes-validations": ["true"]}, "wrong type", id="a rule that is a text"),
        pytest.param(
            {"x-kubernetes-validations": [{"rule": "true", "message": {}}]},
            "wrong type",
            id="a message that is no text",
        ),
        pytest.param('{"description": "' + "a" * 600_000 + '"}', "characters", id="large"),
    ],
)
def test_a_schema_that_cannot_be_served_says_why(schema: object, why: str) -> None:
    with pytest.raises(UnusableSchema, match=why.replace("$", r"\$")):
        parsed(schema)


def test_an_empty_schema_is_an_open_object() -> None:
    assert parsed("") == parsed("{}") == {"type": "object"}


@pytest.mark.parametrize(
    ("schema", "value", "shown"),
    [
        pytest.param({"properties": {"a": {"default": 1}}}, {}, {"a": 1}, id="a missing property gets its default"),
        pytest.param(
            {"properties": {"a": {"type": "object", "default": {}, "properties": {"b": {"default": 1}}}}},
            {},
            {"a": {"b": 1}},
            id="a default is walked",
        ),
        pytest.param(
            {"properties": {"a": {"type": "object", "properties": {"b": {"default": 1}}}}},
            {},
            {},
            id="an object without default is not made",
        ),
        pytest.param(
            {"properties": {"a": {"type": "array", "items": {"properties": {"b": {"default": 1}}}}}},
            {"a": [{}, {"b": 2}]},
            {"a": [{"b": 1}, {"b": 2}]},
            id="items are walked",
        ),
        pytest.param(
            {"additionalProperties": {"type": "object", "properties": {"b": {"default": 1}}}},
            {"x": {}, "y": {"c": 2}},
            {"x": {"b": 1}, "y": {"b": 1, "c": 2}},
            id="additional properties are walked",
        ),
        pytest.param({"properties": {"a": {"default": 1}}}, {"a": None}, {"a": 1}, id="null gets the default"),
        pytest.param(
            {"properties": {"a": {"type": "object"}, "b": {"type": "array"}, "c": {"type": "string"}}},
            {"a": None, "b": None, "c": None, "d": None},
            {"a": {}, "b": [], "c": None, "d": None},
            id="null becomes an empty object or list",
        ),
        pytest.param(
            {"properties": {"a": {"type": "object", "default": {}}, "b": {"type": "array", "default": []}}},
            {"a": "text", "b": {"c": 1}},
            {"a": "text", "b": {"c": 1}},
            id="a value of a wrong type is shown as it is (T38)",
        ),
    ],
)
def test_defaults_are_added_on_reading(schema: dict[str, Any], value: object, shown: object) -> None:
    before = json.dumps(value)
    assert with_defaults(schema, value) == shown
    assert json.dumps(value) == before


def test_defaults_are_not_shared_with_the_schema() -> None:
    schema = {"properties": {"a": {"type": "object", "default": {}}}}
    with_defaults(schema, {})["a"]["changed"] = True
    assert with_defaults(schema, {}) == {"a": {}}


def test_undocumented_keys_are_found_where_a_schema_has_properties() -> None:
    schema = {
        "properties": {
            "a": {"type": "object", "properties": {"b": {}}},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            "map": {"type": "object", "additionalProperties": {"properties": {"c": {}}}},
            "list": {"type": "array", "items": {"properties": {"d": {}}}},
            "plain": {"type": "object"},
        }
    }
    value = {
        "a": {"b": 1, "x": 1},
        "free": {"x": 1},
        "map": {"one": {"c": 1, "x": 1}},
        "list": [{"d": 1}, {"x": 1}],
        "plain": {"x": 1},
        "y": 1,
    }
    assert list(undocumented_paths(schema, value, "spec")) == ["spec.a.x", "spec.map.one.x", "spec.list[1].x", "spec.y"]


def test_the_published_schema_is_open_at_the_top() -> None:
    assert published_schema({"type": "object"})["x-kubernetes-preserve-unknown-fields"] is True
    closed = {"type": "object", "additionalProperties": {"type": "string"}}
    assert published_schema(closed) == closed
