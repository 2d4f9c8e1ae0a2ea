from __future__ import annotations

from typing import Any

import pytest

from apiserver.fieldmanager.field_set import FieldSet
from apiserver.fieldmanager.typed.compare import compare
from apiserver.fieldmanager.typed.field_set import ensure_named_fields_are_members, reconcile_with_schema, to_field_set
from apiserver.fieldmanager.typed.merge import merge
from apiserver.fieldmanager.typed.types import ABSENT, DEDUCED, Atom, atom_from_schema
from apiserver.fieldmanager.typed.validate import validate

STRING = {"type": "string"}
SET = {"type": "array", "items": STRING, "x-kubernetes-list-type": "set"}
PORTS = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["port"],
    "items": {"type": "object", "properties": {"port": {"type": "integer"}, "name": STRING}},
}
SCHEMA = {
    "type": "object",
    "properties": {
        "name": STRING,
        "on": {"type": "boolean"},
        "count": {"type": "integer"},
        "time": {"type": "string", "format": "date-time"},
        "any": {"x-kubernetes-int-or-string": True},
        "set": SET,
        "ports": PORTS,
        "list": {"type": "array", "items": STRING},
        "map": {"type": "object", "additionalProperties": STRING},
        "whole": {"type": "object", "additionalProperties": STRING, "x-kubernetes-map-type": "atomic"},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
}
ROOT = atom_from_schema(SCHEMA)


def fields_v1(fields: FieldSet) -> Any:
    return fields.to_fields_v1()


@pytest.mark.parametrize(
    ("live", "config", "merged"),
    [
        pytest.param({"set": ["a", "b"]}, {"set": ["c"]}, {"set": ["a", "b", "c"]}, id="sets are united"),
        pytest.param(
            {"set": ["a", "b", "c"]},
            {"set": ["c", "a"]},
            {"set": ["b", "c", "a"]},
            id="applied items keep the applied order",
        ),
        pytest.param(
            {"set": ["a", "x"]}, {"set": ["a", "d"]}, {"set": ["a", "x", "d"]}, id="live items keep their place"
        ),
        pytest.param(
            {"set": ["a", "a", "x"]}, {"set": ["a", "d"]}, {"set": ["a", "d", "x"]}, id="duplicates are dropped"
        ),
        pytest.param({"list": ["a", "b"]}, {"list": ["c"]}, {"list": ["c"]}, id="atomic lists are replaced"),
        pytest.param(
            {"whole": {"a": "1"}}, {"whole": {"b": "2"}}, {"whole": {"b": "2"}}, id="atomic maps are replaced"
        ),
        pytest.param({"map": {"a": "1"}}, {"map": {"b": "2"}}, {"map": {"a": "1", "b": "2"}}, id="maps are merged"),
        pytest.param(
            {"ports": [{"port": 1, "name": "p"}]},
            {"ports": [{"port": 2}, {"port": 1}]},
            {"ports": [{"port": 2}, {"port": 1, "name": "p"}]},
            id="items are merged by their key",
        ),
        pytest.param(
            {"free": {"a": [1], "b": {"c": 1}}},
            {"free": {"a": [2], "b": {"d": 2}}},
            {"free": {"a": [2], "b": {"c": 1, "d": 2}}},
            id="without a schema, lists are atomic and objects are not",
        ),
        pytest.param({"map": {"a": "1"}}, {"map": None}, {"map": {"a": "1"}}, id="a null does not clear a map"),
        pytest.param({"name": "a"}, {"name": None}, {"name": None}, id="a null replaces a scalar"),
        pytest.param({"any": 1}, {"any": "1"}, {"any": "1"}, id="a value of another form replaces the live one"),
        pytest.param(ABSENT, {"name": "a"}, {"name": "a"}, id="no live value"),
    ],
)
def test_a_configuration_is_merged_by_type(live: Any, config: Any, merged: Any) -> None:
    assert merge(ROOT, live, config) == merged


@pytest.mark.parametrize(
    ("old", "new", "removed", "modified", "added"),
    [
        pytest.param({"count": 1}, {"count": 1.0}, {}, {}, {}, id="1 equals 1.0"),
        pytest.param({"any": 1}, {"any": "1"}, {}, {"f:any": {}}, {}, id="a number differs from text"),
        pytest.param(
            {"free": {"a": 1}},
            {"free": {"a": True}},
            {},
            {"f:free": {"f:a": {}}},
            {},
            id="a number differs from a boolean",
        ),
        pytest.param({}, {"map": {"a": "1"}}, {}, {}, {"f:map": {".": {}, "f:a": {}}}, id="a new map and its keys"),
        pytest.param({"map": {}}, {"map": {"a": "1"}}, {}, {}, {"f:map": {"f:a": {}}}, id="a new key in a map"),
        pytest.param({"map": {"a": "1"}}, {}, {"f:map": {".": {}, "f:a": {}}}, {}, {}, id="a removed map"),
        pytest.param(
            {"set": ["a"]}, {"set": ["b"]}, {"f:set": {'v:"a"': {}}}, {}, {"f:set": {'v:"b"': {}}}, id="items"
        ),
        pytest.param({"set": ["a", "b"]}, {"set": ["b", "a"]}, {}, {}, {}, id="the order of a set does not matter"),
        pytest.param(
            {"list": ["a", "b"]}, {"list": ["b", "a"]}, {}, {"f:list": {}}, {}, id="the order of an atomic list matters"
        ),
        pytest.param(
            {"set": ["a", "a"]},
            {"set": ["a"]},
            {"f:set": {'v:"a"': {}}},
            {},
            {"f:set": {'v:"a"': {}}},
            id="duplicates are removed",
        ),
        pytest.param(
            {"set": ["a"]},
            {"set": ["a", "a"]},
            {"f:set": {'v:"a"': {}}},
            {},
            {"f:set": {'v:"a"': {}}},
            id="duplicates are added",
        ),
        pytest.param(
            {"free": {"a": {"b": 1}}},
            {"free": {"a": 2}},
            {"f:free": {"f:a": {"f:b": {}}}},
            {"f:free": {"f:a": {}}},
            {},
            id="an object becomes a number",
        ),
        pytest.param(
            {"whole": {"a": "1"}}, {"whole": {"a": "2"}}, {}, {"f:whole": {}}, {}, id="an atomic map is one leaf"
        ),
    ],
)
def test_a_comparison_finds_removed_modified_and_added_fields(
    old: Any, new: Any, removed: Any, modified: Any, added: Any
) -> None:
    found = compare(ROOT, old, new)
    assert (fields_v1(found.removed), fields_v1(found.modified), fields_v1(found.added)) == (removed, modified, added)


@pytest.mark.parametrize(
    ("value", "fields"),
    [
        pytest.param({"map": {}}, {"f:map": {}}, id="an empty map is owned"),
        pytest.param({"set": []}, {}, id="an empty set is not owned"),
        pytest.param({"list": []}, {"f:list": {}}, id="an empty atomic list is owned"),
        pytest.param({"name": None}, {"f:name": {}}, id="a null is owned"),
        pytest.param(
            {"ports": [{"port": 1}]},
            {"f:ports": {'k:{"port":1}': {".": {}, "f:port": {}}}},
            id="an item and its fields",
        ),
        pytest.param({"map": {"a": "1"}}, {"f:map": {"f:a": {}}}, id="a key, but not its map"),
        pytest.param({"free": {"a": {"b": 1}}}, {"f:free": {"f:a": {".": {}, "f:b": {}}}}, id="keys without a schema"),
        pytest.param({"set": ["a", "a"]}, {"f:set": {'v:"a"': {}}}, id="duplicates are one"),
        pytest.param({"whole": {"a": "1"}}, {"f:whole": {}}, id="an atomic map"),
    ],
)
def test_an_applied_value_owns_its_leaves(value: Any, fields: Any) -> None:
    assert fields_v1(to_field_set(ROOT, value)) == fields


def test_named_fields_above_a_member_become_members_and_map_keys_do_not() -> None:
    fields = FieldSet.from_fields_v1({"f:map": {"f:a": {}}, "f:free": {"f:x": {"f:y": {}}}})
    assert fields_v1(ensure_named_fields_are_members(ROOT, fields)) == {
        "f:free": {".": {}, "f:x": {"f:y": {}}},
        "f:map": {".": {}, "f:a": {}},
    }


def test_fields_that_became_atomic_are_owned_as_a_whole() -> None:
    fields = FieldSet.from_fields_v1({"f:whole": {"f:a": {}}, "f:list": {"i:0": {}}, "f:set": {'v:"a"': {}}})
    assert fields_v1(reconcile_with_schema(ROOT, fields)) == {"f:list": {}, "f:set": {'v:"a"': {}}, "f:whole": {}}


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        pytest.param({"name": "a", "any": 1, "time": "x", "set": ["a"], "free": {"x": [1]}}, "", id="a valid value"),
        pytest.param({"name": None, "map": None}, "", id="nulls are valid for every type"),
        pytest.param(
            {"name": 1}, ".name: expected string, got &value.valueUnstructured{Value:1}", id="a number for text"
        ),
        pytest.param({"count": "y"}, ".count: expected numeric (int or float), got string", id="text for a number"),
        pytest.param({"count": True}, ".count: expected numeric (int or float), got bool", id="a boolean for a number"),
        pytest.param({"on": "x"}, ".on: expected boolean, got &{x}", id="text for a boolean"),
        pytest.param({"map": 3}, ".map: expected map, got &{3}", id="a number for a map"),
        pytest.param(
            {"list": {"b": 1, "a": [True]}}, ".list: expected list, got &{map[a:[true] b:1]}", id="a map for a list"
        ),
        pytest.param({"time": {}}, ".time: expected any scalar, got &{map[]}", id="a map for a time"),
        pytest.param({"foo": 1}, ".foo: field not declared in schema", id="an unknown field"),
        pytest.param(
            {"ports": [{"name": "p"}]},
            ".ports: element 0: associative list with keys has an element that omits all key "
            'fields ["port"] (and doesn\'t have default values for any key fields)',
            id="an item without its key",
        ),
        pytest.param(
            {"ports": [None]},
            ".ports: element 0: associative list with keys may not have a null element",
            id="a null item",
        ),
        pytest.param(
            {"ports": ["x"]},
            ".ports: element 0: associative list with keys may not have non-map elements",
            id="an item that is not an object",
        ),
        pytest.param(
            {"set": [{}]},
            ".set: element 0: associative list without keys has an element that's a map type",
            id="an object in a set",
        ),
        pytest.param(
            {"set": [[]]},
            ".set: element 0: not supported: associative list with lists as elements",
            id="a list in a set",
        ),
        pytest.param(
            {"set": [None]},
            ".set: element 0: associative list without keys has an element that's an explicit null",
            id="a null in a set",
        ),
        pytest.param(
            {"list": ["a", 1]}, ".list[1]: expected string, got &value.valueUnstructured{Value:1}", id="a wrong item"
        ),
    ],
)
def test_a_value_that_does_not_match_its_type_has_the_error_of_kubernetes(value: Any, problem: str) -> None:
    assert validate(ROOT, value) == problem


def test_stored_objects_may_hold_duplicates() -> None:
    assert validate(ROOT, {"set": ["a", "a"]}, allow_duplicates=True) == ""
    assert validate(ROOT, {"set": ["a", "a"]}) == '.set: duplicate entries for key [="a"]'


def test_a_schema_that_preserves_unknown_fields_allows_them_at_any_depth() -> None:
    root = atom_from_schema(
        {
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": True,
            "properties": {"a": {"type": "object", "properties": {"b": STRING}}},
        }
    )
    assert validate(root, {"x": 1, "a": {"y": 2}}) == ""
    assert validate(root, {"a": {"b": 2}}) != ""


def test_an_atom_is_narrowed_to_the_form_of_the_value() -> None:
    assert DEDUCED.deduce_atom({}) == Atom(map_type=DEDUCED.map_type)
    assert DEDUCED.deduce_atom([]) == Atom(list_type=DEDUCED.list_type)
    assert DEDUCED.deduce_atom(1) == Atom(scalar="untyped")
    assert DEDUCED.deduce_atom(None) == DEDUCED


def test_the_first_errors_are_told() -> None:
    """ATTACK-19: the path of each field quotes the keys of its item."""
    item = {"name": "k" * 50_000, **{f"f{number}": 1 for number in range(1000)}}
    schema = {
        "type": "array",
        "items": {"type": "object", "properties": {"name": {"type": "string"}}},
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
    }
    text = validate(atom_from_schema(schema), [item])
    assert text.count("field not declared in schema") == 6
