from __future__ import annotations

from typing import Any

import pytest

from apiserver.schema.validation import schema_errors
from tests.apiserver.schema.widgets import SPEC


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
