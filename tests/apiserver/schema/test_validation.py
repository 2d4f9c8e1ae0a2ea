from __future__ import annotations

from typing import Any

import pytest

from apiserver.schema.validation import schema_errors
from tests.apiserver.schema.widgets import SPEC
from tests.cpu_time import least_ratio


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
    """A value of a wrong type is not one of an enum either, and required fields come last."""
    fields = [error.field for error in schema_errors(SPEC, {"on": "x", "mode": 3, "count": 99}, "spec")]
    assert fields == ["spec.on", "spec.mode", "spec.mode", "spec.count", "spec.name"]


@pytest.mark.parametrize(
    ("items", "has_duplicates"),
    [
        pytest.param([1, 1.0], True, id="equal numbers"),
        pytest.param([1, True, "1", [1], None], False, id="values of different types"),
        pytest.param([{"a": 1, "b": [2]}, {"b": [2], "a": 1}], True, id="objects with keys in another order"),
        pytest.param([{"a": 1}, ["a", 1], [["a", 1]]], False, id="an object and lists of its entries"),
        pytest.param([[1], [True]], False, id="a number and a boolean in lists"),
        pytest.param([[], {}], False, id="an empty list and an empty object"),
    ],
)
def test_unique_items_are_compared_as_json(items: list[Any], has_duplicates: bool) -> None:
    found = schema_errors({"type": "array", "uniqueItems": True}, items, "spec")
    assert [each.detail for each in found] == ["spec in body shouldn't contain duplicates"] * has_duplicates


def test_many_unique_items_take_no_time_by_the_square_of_their_number() -> None:
    """A client that may create an object whose schema has uniqueItems could otherwise occupy the server for minutes."""
    schema = {"type": "array", "uniqueItems": True}

    def check(number: int) -> None:
        assert schema_errors(schema, [{"a": index} for index in range(number)], "spec") == []

    assert least_ratio(lambda: check(3_200), lambda: check(200), below=64) < 64
