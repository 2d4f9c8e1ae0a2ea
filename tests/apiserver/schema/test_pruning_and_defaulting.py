from __future__ import annotations

import copy
from typing import Any

import pytest

from apiserver.endpoints.openapi.meta_definitions import META, meta_definitions
from apiserver.json.values import MAX_OBJECT_NESTING
from apiserver.meta.errors import BadRequest
from apiserver.meta.resource import Resource
from apiserver.schema.object_meta import OBJECT_META
from apiserver.schema.pruning_and_defaulting import (
    apply_defaults,
    metadata_type_error,
    object_schema,
    prune,
    schema_errors,
    unknown_fields,
)

STRING = {"type": "string"}
SPEC = {
    "type": "object",
    "required": ["name"],
    "properties": {
        "name": {"type": "string", "pattern": "^[a-z]+$", "minLength": 2, "maxLength": 5},
        "on": {"type": "boolean", "default": False},
        "count": {"type": "integer", "minimum": 1, "maximum": 9},
        "ratio": {"type": "number"},
        "mode": {"type": "string", "enum": ["a", "b"]},
        "maybe": {"type": "string", "nullable": True},
        "quotas": {
            "type": "object",
            "default": {},
            "additionalProperties": {"x-kubernetes-int-or-string": True},
        },
        "list": {
            "type": "array",
            "maxItems": 2,
            "items": {"type": "object", "properties": {"a": STRING, "b": {"type": "string", "default": "z"}}},
        },
        "set": {"type": "array", "items": STRING, "x-kubernetes-list-type": "set"},
        "ports": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["port"],
            "items": {"type": "object", "properties": {"port": {"type": "integer"}}},
        },
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"known": STRING}},
        "bare": {"type": "object"},
    },
}


def widgets(*, preserve_unknown_fields: bool = False) -> Resource:
    return Resource(
        group="g",
        version="v1",
        kind="Widget",
        plural="widgets",
        singular="widget",
        namespaced=True,
        properties={"spec": SPEC},
        preserve_unknown_fields=preserve_unknown_fields,
    )


SCHEMA = object_schema(widgets())


def test_unknown_fields_are_found_in_document_order() -> None:
    obj = {
        "zeta": 1,
        "metadata": {"name": "x", "unknownMeta": 1, "labels": {"any": "x"}, "ownerReferences": [{"foo": 1}]},
        "spec": {
            "foo": {"deep": 1},
            "list": [{"a": "x"}, {"x": 1}],
            "quotas": {"cpu": 1},
            "free": {"anything": {"goes": 1}, "known": "x"},
            "bare": {"y": 1},
        },
    }
    assert unknown_fields(SCHEMA, obj) == [
        "zeta",
        "metadata.unknownMeta",
        "metadata.ownerReferences[0].foo",
        "spec.foo",
        "spec.list[1].x",
        "spec.bare.y",
    ]


def test_a_resource_that_preserves_unknown_fields_allows_any_top_level_field() -> None:
    schema = object_schema(widgets(preserve_unknown_fields=True))
    assert unknown_fields(schema, {"data": {"a": 1}, "spec": {"foo": 1}}) == ["spec.foo"]


def test_pruning_drops_unknown_fields_and_does_not_modify_the_original() -> None:
    obj = {
        "extra": 1,
        "metadata": {"name": "x", "foo": 1},
        "spec": {"foo": 1, "list": [{"a": "x", "y": 1}], "free": {"x": {"y": []}}, "quotas": {"cpu": 1}},
    }
    before = copy.deepcopy(obj)
    pruned = prune(SCHEMA, obj)
    assert pruned == {
        "metadata": {"name": "x"},
        "spec": {"list": [{"a": "x"}], "free": {"x": {"y": []}}, "quotas": {"cpu": 1}},
    }
    pruned["spec"]["free"]["x"]["y"].append(1)
    pruned["spec"]["quotas"]["cpu"] = 2
    assert obj == before


def test_pruning_keeps_values_of_wrong_types_for_validation() -> None:
    assert prune(SCHEMA, {"spec": {"on": [1], "list": "x"}}) == {"spec": {"on": [1], "list": "x"}}


def test_pruning_drops_null_and_empty_metadata() -> None:
    metadata = {
        "name": "x",
        "generateName": "",
        "labels": {"a": None},
        "annotations": {},
        "finalizers": [],
        "uid": None,
        "generation": 0,
        "ownerReferences": [{"uid": "u", "controller": None, "blockOwnerDeletion": False}],
        "managedFields": [],
    }
    assert prune(SCHEMA, {"metadata": metadata})["metadata"] == {
        "name": "x",
        "labels": {"a": ""},
        "generation": 0,
        "ownerReferences": [{"uid": "u", "blockOwnerDeletion": False}],
        "managedFields": [],
    }


def nested(levels: int) -> Any:
    value: Any = "x"
    for _ in range(levels):
        value = {"a": value}
    return value


def test_an_object_may_nest_to_the_limit_and_no_further() -> None:
    inside_spec_free = MAX_OBJECT_NESTING - 3
    deepest = {"spec": {"free": {"x": nested(inside_spec_free)}}}
    assert prune(SCHEMA, deepest) == deepest
    with pytest.raises(BadRequest, match="nested too deeply"):
        prune(SCHEMA, {"spec": {"free": {"x": nested(inside_spec_free + 1)}}})
    with pytest.raises(BadRequest, match="nested too deeply"):
        prune(SCHEMA, {"spec": {"on": [nested(100_000)]}})


def test_unknown_fields_may_nest_to_any_depth() -> None:
    assert prune(SCHEMA, {"spec": {"unknown": nested(100_000)}}) == {"spec": {}}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({}, {"on": False, "quotas": {}}, id="defaults are filled in"),
        pytest.param({"on": True}, {"on": True, "quotas": {}}, id="given values stay"),
        pytest.param(
            {"on": None, "mode": None}, {"on": False, "quotas": {}}, id="a null is replaced by its default, or removed"
        ),
        pytest.param({"maybe": None}, {"maybe": None, "on": False, "quotas": {}}, id="a nullable field stays null"),
        pytest.param({"quotas": {"a": None}}, {"on": False, "quotas": {}}, id="a null in a map"),
        pytest.param(
            {"list": [{}, None]}, {"list": [{"b": "z"}, None], "on": False, "quotas": {}}, id="items of lists"
        ),
    ],
)
def test_defaults_are_applied(spec: Any, expected: Any) -> None:
    apply_defaults(SPEC, spec)
    assert spec == expected


def test_a_default_is_not_shared_between_objects() -> None:
    one: dict[str, Any] = {}
    other: dict[str, Any] = {}
    apply_defaults(SPEC, one)
    apply_defaults(SPEC, other)
    one["quotas"]["cpu"] = 1
    assert other["quotas"] == {}


def problem(reason: str, message: str, field: str) -> tuple[str, str, str]:
    return reason, message, field


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param(
            {"name": "ab", "count": 1, "ratio": 3, "quotas": {"a": 1, "b": "1"}, "maybe": None}, [], id="a valid value"
        ),
        pytest.param(
            "x",
            [
                problem(
                    "FieldValueTypeInvalid",
                    'Invalid value: "string": spec in body must be of type object: "string"',
                    "spec",
                )
            ],
            id="spec itself",
        ),
        pytest.param(
            {"name": 1},
            [
                problem(
                    "FieldValueTypeInvalid",
                    'Invalid value: "integer": spec.name in body must be of type string: "integer"',
                    "spec.name",
                )
            ],
            id="a number for text",
        ),
        pytest.param(
            {"name": "ab", "on": 1},
            [
                problem(
                    "FieldValueTypeInvalid",
                    'Invalid value: "integer": spec.on in body must be of type boolean: "integer"',
                    "spec.on",
                )
            ],
            id="a number for a boolean",
        ),
        pytest.param(
            {"name": "ab", "count": 1.5},
            [
                problem(
                    "FieldValueTypeInvalid",
                    'Invalid value: "number": spec.count in body must be of type integer: "number"',
                    "spec.count",
                )
            ],
            id="a fraction for an integer",
        ),
        pytest.param(
            {"name": "ab", "quotas": {"a": True}},
            [
                problem(
                    "FieldValueTypeInvalid",
                    'Invalid value: "boolean": spec.quotas.a in body must be of type integer,string: "boolean"',
                    "spec.quotas.a",
                )
            ],
            id="a boolean for an int-or-string",
        ),
        pytest.param(
            {"name": "ab", "list": [None]},
            [
                problem(
                    "FieldValueTypeInvalid",
                    'Invalid value: "null": spec.list[0] in body must be of type object: "null"',
                    "spec.list[0]",
                )
            ],
            id="a null item",
        ),
        pytest.param({}, [problem("FieldValueRequired", "Required value", "spec.name")], id="a required field"),
        pytest.param(
            {"name": "a"},
            [
                problem(
                    "FieldValueInvalid",
                    'Invalid value: "a": spec.name in body should be at least 2 chars long',
                    "spec.name",
                )
            ],
            id="too short",
        ),
        pytest.param(
            {"name": "abcdef"},
            [problem("FieldValueTooLong", "Too long: may not be more than 5 bytes", "spec.name")],
            id="too long",
        ),
        pytest.param(
            {"name": "A1"},
            [
                problem(
                    "FieldValueInvalid", "Invalid value: \"A1\": spec.name in body should match '^[a-z]+$'", "spec.name"
                )
            ],
            id="a pattern that does not match",
        ),
        pytest.param(
            {"name": "ab", "count": 0},
            [
                problem(
                    "FieldValueInvalid",
                    "Invalid value: 0: spec.count in body should be greater than or equal to 1",
                    "spec.count",
                )
            ],
            id="too small",
        ),
        pytest.param(
            {"name": "ab", "count": 10},
            [
                problem(
                    "FieldValueInvalid",
                    "Invalid value: 10: spec.count in body should be less than or equal to 9",
                    "spec.count",
                )
            ],
            id="too big",
        ),
        pytest.param(
            {"name": "ab", "mode": "z"},
            [problem("FieldValueNotSupported", 'Unsupported value: "z": supported values: "a", "b"', "spec.mode")],
            id="a value that is not in the enum",
        ),
        pytest.param(
            {"name": "ab", "set": ["a", "a"]},
            [problem("FieldValueDuplicate", 'Duplicate value: "a"', "spec.set[1]")],
            id="a duplicate in a set",
        ),
        pytest.param(
            {"name": "ab", "ports": [{"port": 1}, {"port": 1}]},
            [problem("FieldValueDuplicate", 'Duplicate value: {"port":1}', "spec.ports[1]")],
            id="a duplicate key",
        ),
        pytest.param(
            {"name": "ab", "list": [{}, {}, {}]},
            [problem("FieldValueTooMany", "Too many: 3: must have at most 2 items", "spec.list")],
            id="too many items",
        ),
    ],
)
def test_schema_errors_match_those_of_a_custom_resource_definition(spec: Any, expected: Any) -> None:
    found = schema_errors(SPEC, spec, "spec")
    assert [(error.reason, error.message, error.field) for error in found] == expected


def test_all_schema_errors_are_reported_at_once() -> None:
    fields = [error.field for error in schema_errors(SPEC, {"on": "x", "mode": 3, "count": 99}, "spec")]
    assert fields == ["spec.name", "spec.on", "spec.mode", "spec.count"]


@pytest.mark.parametrize(
    ("metadata", "text"),
    [
        pytest.param({"name": "x", "labels": {"a": "b"}, "generation": 1}, None, id="valid types"),
        pytest.param(None, None, id="no metadata"),
        pytest.param({"labels": None, "ownerReferences": [{"controller": None}]}, None, id="nulls"),
        pytest.param(
            "x",
            "json: cannot unmarshal string into Go struct field Widget.metadata of type v1.ObjectMeta",
            id="metadata",
        ),
        pytest.param(
            {"name": 1},
            "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.name of type string",
            id="name",
        ),
        pytest.param(
            {"name": True},
            "json: cannot unmarshal bool into Go struct field ObjectMeta.metadata.name of type string",
            id="a boolean",
        ),
        pytest.param(
            {"labels": 1},
            "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type map[string]string",
            id="labels",
        ),
        pytest.param(
            {"labels": {"a": 1}},
            "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type string",
            id="a label",
        ),
        pytest.param(
            {"finalizers": "x"},
            "json: cannot unmarshal string into Go struct field ObjectMeta.metadata.finalizers of type []string",
            id="finalizers",
        ),
        pytest.param(
            {"finalizers": [[]]},
            "json: cannot unmarshal array into Go struct field ObjectMeta.metadata.finalizers of type string",
            id="a finalizer",
        ),
        pytest.param(
            {"ownerReferences": {}},
            "json: cannot unmarshal object into Go struct field "
            "ObjectMeta.metadata.ownerReferences of type []v1.OwnerReference",
            id="owners",
        ),
        pytest.param(
            {"ownerReferences": [1]},
            "json: cannot unmarshal number into Go struct field "
            "ObjectMeta.metadata.ownerReferences of type v1.OwnerReference",
            id="an owner",
        ),
        pytest.param(
            {"ownerReferences": [{"uid": 1}]},
            "json: cannot unmarshal number into Go struct field "
            "OwnerReference.metadata.ownerReferences.uid of type types.UID",
            id="an owner's uid",
        ),
        pytest.param(
            {"ownerReferences": [{"controller": 1}]},
            "json: cannot unmarshal number into Go struct field "
            "OwnerReference.metadata.ownerReferences.controller of type bool",
            id="an owner's controller",
        ),
        pytest.param(
            {"generation": "x"},
            "json: cannot unmarshal string into Go struct field ObjectMeta.metadata.generation of type int64",
            id="generation",
        ),
        pytest.param(
            {"generation": 1.5},
            "json: cannot unmarshal number 1.5 into Go struct field ObjectMeta.metadata.generation of type int64",
            id="a fraction",
        ),
        pytest.param(
            {"creationTimestamp": "x"},
            'parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"',
            id="a time",
        ),
        pytest.param(
            {"creationTimestamp": "2026-02-30T00:00:00Z"},
            'parsing time "2026-02-30T00:00:00Z" as "2006-01-02T15:04:05Z07:00": cannot parse '
            '"2026-02-30T00:00:00Z" as "2006"',
            id="a day that does not exist",
        ),
        pytest.param(
            {"managedFields": [{"fieldsV1": 3}]},
            "json: cannot unmarshal number into Go struct field "
            "ManagedFieldsEntry.metadata.managedFields.fieldsV1 of type map[string]interface {}",
            id="managedFields",
        ),
    ],
)
def test_wrong_types_in_metadata_have_the_errors_of_go(metadata: Any, text: str | None) -> None:
    assert metadata_type_error(widgets(), {"metadata": metadata}) == text


def test_the_object_meta_schema_matches_the_published_openapi() -> None:
    published = meta_definitions([])[f"{META}.ObjectMeta"]["properties"]
    assert OBJECT_META["properties"].keys() == published.keys()
    for name, schema in OBJECT_META["properties"].items():
        for hint in ("type", "x-kubernetes-list-type", "x-kubernetes-list-map-keys"):
            if hint != "type" or "type" in published[name]:
                assert schema.get(hint) == published[name].get(hint), name
