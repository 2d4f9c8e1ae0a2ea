"""Schemas must be structural. The texts are those of apiextensions-apiserver."""

from __future__ import annotations

from typing import Any

import pytest

from registry.embedded.custom.structural_checks import structural_errors

OBJECT = {"type": "object"}
STRING = {"type": "string"}
PRESERVE = {"x-kubernetes-preserve-unknown-fields": True}
INT_OR_STRING = {"x-kubernetes-int-or-string": True}
EITHER = [{"type": "integer"}, {"type": "string"}]


def errors_of(schema: dict[str, Any]) -> list[str]:
    return [str(each) for each in structural_errors(schema, "s")]


def with_field(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": schema}}


def map_list(keys: list[str], items: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "array",
        "items": items,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": keys,
    }


@pytest.mark.parametrize(
    "schema",
    [
        pytest.param(with_field(STRING), id="a field"),
        pytest.param(with_field({"type": "object", "additionalProperties": STRING}), id="a map"),
        pytest.param(with_field(PRESERVE), id="a field of any type"),
        pytest.param(with_field(INT_OR_STRING), id="an integer or a string"),
        pytest.param(with_field({**INT_OR_STRING, "anyOf": EITHER}), id="alternatives of an integer or a string"),
        pytest.param(
            with_field({**INT_OR_STRING, "allOf": [{"anyOf": EITHER}, {"pattern": "^a"}]}),
            id="a restricted integer or string",
        ),
        pytest.param(with_field({**STRING, "anyOf": [{"pattern": "^a"}, {"minLength": 3}]}), id="alternatives"),
        pytest.param({"type": "object", "properties": {"metadata": OBJECT}}, id="metadata"),
        pytest.param(
            {"type": "object", "properties": {"metadata": {**OBJECT, "properties": {"name": {"maxLength": 5}}}}},
            id="a restricted name",
        ),
        pytest.param(
            with_field(map_list(["k"], {**with_field(STRING), "required": ["k"], "properties": {"k": STRING}})),
            id="a list by key",
        ),
        pytest.param(with_field({"type": "array", "items": STRING, "x-kubernetes-list-type": "set"}), id="a set"),
        pytest.param(with_field({**OBJECT, "x-kubernetes-map-type": "atomic"}), id="an atomic object"),
        pytest.param(
            with_field({**OBJECT, **PRESERVE, "x-kubernetes-embedded-resource": True}), id="an embedded object"
        ),
    ],
)
def test_a_structural_schema_has_no_errors(schema: dict[str, Any]) -> None:
    assert errors_of(schema) == []


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        pytest.param({}, "s.type: Required value: must not be empty at the root", id="no type at the root"),
        pytest.param(STRING, 's.type: Invalid value: "string": must be object at the root', id="a string at the root"),
        pytest.param(
            {**OBJECT, "additionalProperties": STRING},
            "s.additionalProperties: Forbidden: must not be used at the root",
            id="a map at the root",
        ),
        pytest.param(
            {**OBJECT, "nullable": True},
            "s.nullable: Forbidden: nullable cannot be true at the root",
            id="null at the root",
        ),
        pytest.param(
            {"type": "object", "properties": {"metadata": {**OBJECT, "properties": {"labels": OBJECT}}}},
            "s.properties[metadata]: Forbidden: must not specify anything other than name and generateName, but "
            "metadata is implicitly specified",
            id="labels in metadata",
        ),
        pytest.param(
            {"type": "object", "properties": {"metadata": STRING}},
            's.properties[metadata].type: Invalid value: "string": must be object',
            id="metadata that is a string",
        ),
    ],
)
def test_the_root_must_be_an_object_with_declared_fields(schema: dict[str, Any], expected: str) -> None:
    assert errors_of(schema) == [expected]


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        pytest.param({}, "type: Required value: must not be empty for specified object fields", id="no type"),
        pytest.param(
            {"type": "thing"},
            'type: Unsupported value: "thing": supported values: "array", "boolean", "integer", "number", "object", '
            '"string"',
            id="an unknown type",
        ),
        pytest.param({"type": "array"}, "items: Required value: must be specified", id="no items"),
        pytest.param(
            {"type": "array", "items": {}},
            "items.type: Required value: must not be empty for specified array items",
            id="items without a type",
        ),
        pytest.param(
            {"type": "array", "items": [STRING]},
            "items: Forbidden: items must be a schema object and not an array",
            id="items by position",
        ),
        pytest.param(
            {**OBJECT, "properties": {"b": STRING}, "additionalProperties": STRING},
            "additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive",
            id="a map with fields",
        ),
        pytest.param(
            {**STRING, "x-kubernetes-preserve-unknown-fields": False},
            "x-kubernetes-preserve-unknown-fields: Invalid value: false: must be true or undefined",
            id="no preservation",
        ),
        pytest.param(
            {**INT_OR_STRING, **PRESERVE},
            "x-kubernetes-preserve-unknown-fields: Invalid value: true: must be false if x-kubernetes-int-or-string is "
            "true",
            id="an integer or string with unknown fields",
        ),
        pytest.param(
            {**OBJECT, "x-kubernetes-embedded-resource": True},
            "properties: Required value: must not be empty if x-kubernetes-embedded-resource is true without "
            "x-kubernetes-preserve-unknown-fields",
            id="an embedded object without fields",
        ),
        pytest.param(
            {**PRESERVE, "x-kubernetes-embedded-resource": True},
            "type: Required value: must be object if x-kubernetes-embedded-resource is true",
            id="an embedded object without a type",
        ),
        pytest.param({**STRING, "$ref": "#/x"}, "$ref: Forbidden: $ref is not supported", id="a reference"),
        pytest.param(
            {**OBJECT, "patternProperties": {"^a": STRING}},
            "patternProperties: Forbidden: patternProperties is not supported",
            id="fields by pattern",
        ),
        pytest.param(
            {"type": "array", "items": STRING, "uniqueItems": True},
            "uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
            id="unique items",
        ),
        pytest.param(
            {**STRING, "x-kubernetes-map-type": "atomic"},
            'type: Invalid value: "string": must be object if x-kubernetes-map-type is specified',
            id="an atomic string",
        ),
        pytest.param(
            {**OBJECT, "x-kubernetes-map-type": "set"},
            'x-kubernetes-map-type: Unsupported value: "set": supported values: "atomic", "granular"',
            id="an unknown map type",
        ),
    ],
)
def test_a_field_needs_a_type_and_only_supported_keywords(schema: dict[str, Any], expected: str) -> None:
    assert errors_of(with_field(schema)) == [f"s.properties[a].{expected}"]


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        pytest.param(
            {**STRING, "x-kubernetes-list-type": "set"},
            'type: Invalid value: "string": must be array if x-kubernetes-list-type is specified',
            id="a string that is a set",
        ),
        pytest.param(
            {"type": "array", "items": STRING, "x-kubernetes-list-type": "bag"},
            'x-kubernetes-list-type: Unsupported value: "bag": supported values: "atomic", "set", "map"',
            id="an unknown list type",
        ),
        pytest.param(
            {"type": "array", "items": OBJECT, "x-kubernetes-list-type": "set"},
            "items.x-kubernetes-map-type: Invalid value: null: must be atomic as item of a list with "
            "x-kubernetes-list-type=set",
            id="a set of objects",
        ),
        pytest.param(
            {"type": "array", "items": OBJECT, "x-kubernetes-list-map-keys": ["k"]},
            "x-kubernetes-list-type: Required value: must be map if x-kubernetes-list-map-keys is non-empty",
            id="keys without a list type",
        ),
        pytest.param(
            map_list([], OBJECT),
            "x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map",
            id="no keys",
        ),
        pytest.param(
            map_list(["k"], STRING),
            'items.type: Invalid value: "string": must be object if parent array\'s x-kubernetes-list-type is map',
            id="strings by key",
        ),
        pytest.param(
            map_list(["k"], {**OBJECT, "required": ["k"]}),
            'x-kubernetes-list-map-keys: Invalid value: ["k"]: entries must all be names of item properties',
            id="an unknown key",
        ),
        pytest.param(
            map_list(["k", "k"], {**OBJECT, "properties": {"k": STRING}, "required": ["k"]}),
            'x-kubernetes-list-map-keys: Invalid value: ["k","k"]: must not contain duplicate entries',
            id="a key twice",
        ),
        pytest.param(
            map_list(["k"], {**OBJECT, "properties": {"k": OBJECT}, "required": ["k"]}),
            'items.properties[k].type: Invalid value: "object": must be a scalar type if parent array\'s '
            "x-kubernetes-list-type is map",
            id="a key that is an object",
        ),
        pytest.param(
            map_list(["k"], {**OBJECT, "properties": {"k": STRING}}),
            "items.properties[k].default: Required value: this property is in x-kubernetes-list-map-keys, so it must "
            "have a default or be a required property",
            id="an optional key",
        ),
        pytest.param(
            map_list(["k"], {**OBJECT, "properties": {"k": {**STRING, "nullable": True}}, "required": ["k"]}),
            "items.properties[k].nullable: Forbidden: this property is in x-kubernetes-list-map-keys, so it cannot be "
            "nullable",
            id="a key that can be null",
        ),
        pytest.param(
            map_list(["k"], {**OBJECT, "nullable": True, "properties": {"k": STRING}, "required": ["k"]}),
            "items.nullable: Forbidden: cannot be nullable when x-kubernetes-list-type is map",
            id="items that can be null",
        ),
    ],
)
def test_a_list_with_a_type_can_be_merged_by_its_items(schema: dict[str, Any], expected: str) -> None:
    assert errors_of(with_field(schema)) == [f"s.properties[a].{expected}"]


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        pytest.param(
            {**STRING, "anyOf": [{"type": "string"}]},
            ["s.properties[a].anyOf[0].type: Forbidden: must be empty to be structural"],
            id="a type in anyOf",
        ),
        pytest.param(
            {**STRING, "not": {"default": "x"}},
            ["s.properties[a].not.default: Forbidden: must be undefined to be structural"],
            id="a default in not",
        ),
        pytest.param(
            {**STRING, "oneOf": [{"x-kubernetes-validations": [{"rule": "true"}]}]},
            ["s.properties[a].oneOf[0].x-kubernetes-validations: Forbidden: must be empty to be structural"],
            id="rules in oneOf",
        ),
        pytest.param({**STRING, "allOf": [{"x-kubernetes-validations": [{"rule": "true"}]}]}, [], id="rules in allOf"),
    ],
)
def test_alternatives_restrict_values_and_declare_nothing(schema: dict[str, Any], expected: list[str]) -> None:
    assert errors_of(with_field(schema)) == expected


@pytest.mark.parametrize(
    "alternative",
    [
        pytest.param({"properties": {"b": {"minLength": 1}}}, id="a field"),
        pytest.param({"properties": {"a": {"properties": {"b": {"minLength": 1}}}}}, id="a field of a field"),
        pytest.param({"oneOf": [{"properties": {"b": {"minLength": 1}}}]}, id="a nested alternative"),
    ],
)
@pytest.mark.parametrize("keyword", ["allOf", "anyOf", "oneOf", "not"])
def test_an_alternative_of_the_root_restricts_only_declared_fields(keyword: str, alternative: dict[str, Any]) -> None:
    schema = {**with_field(OBJECT), keyword: alternative if keyword == "not" else [alternative]}
    (found,) = errors_of(schema)
    declared = {**with_field({"type": "object", "properties": {"b": STRING}})}
    declared["properties"]["b"] = STRING
    assert "properties[b]: Required value: because it is defined in s." + keyword in found
    assert errors_of({**declared, keyword: schema[keyword]}) == []
