from __future__ import annotations

import copy
from typing import Any

import pytest

from apiserver.json.values import MAX_OBJECT_NESTING
from apiserver.meta.errors import BadRequest
from apiserver.schema.pruning_and_defaulting import (
    DefaultsTooLarge,
    apply_defaults,
    object_schema,
    prune,
    unknown_fields,
)
from tests.apiserver.schema.widgets import SPEC, widgets

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
    assert list(unknown_fields(SCHEMA, obj)) == [
        "zeta",
        "metadata.unknownMeta",
        "metadata.ownerReferences[0].foo",
        "spec.foo",
        "spec.list[1].x",
        "spec.bare.y",
    ]


def test_a_resource_that_preserves_unknown_fields_allows_any_top_level_field() -> None:
    schema = object_schema(widgets(preserve_unknown_fields=True))
    assert list(unknown_fields(schema, {"data": {"a": 1}, "spec": {"foo": 1}})) == ["spec.foo"]


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


@pytest.mark.parametrize(
    "default",
    [
        pytest.param("x" * 200, id="a text"),
        pytest.param([{"a": "x" * 180}], id="a list"),
        pytest.param(True, id="many small ones"),
    ],
)
def test_what_defaults_add_is_limited(default: Any) -> None:
    """100 fields of each item: a list of four kilobytes would become one of gigabytes."""
    fields = {f"field-{number}": {"default": default} for number in range(100)}
    schema = {"properties": {"items": {"items": {"type": "object", "properties": fields}}}}
    apply_defaults(schema, {"items": [{} for _ in range(10)]})
    with pytest.raises(DefaultsTooLarge, match="1048576 characters"):
        apply_defaults(schema, {"items": [{} for _ in range(1200)]})


def test_a_default_is_not_shared_between_objects() -> None:
    one: dict[str, Any] = {}
    other: dict[str, Any] = {}
    apply_defaults(SPEC, one)
    apply_defaults(SPEC, other)
    one["quotas"]["cpu"] = 1
    assert other["quotas"] == {}
