"""Defaults and rules in the schemas of CustomResourceDefinitions. The texts are those of apiextensions-apiserver."""

from __future__ import annotations

from typing import Any

import pytest

from tests.registry.embedded.custom.definitions import errors_of, with_schema


def with_rules(*rules: dict[str, Any]) -> dict[str, Any]:
    return with_schema(a={"type": "string", "x-kubernetes-validations": list(rules)})


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        pytest.param({"type": "integer", "default": 3}, [], id="valid"),
        pytest.param(
            {"type": "object", "default": {"b": 1}},
            ['default: Invalid value: {"b":1}: must not have unknown fields'],
            id="an unknown field",
        ),
    ],
)
def test_a_default_is_a_valid_value_of_its_field(field: dict[str, Any], expected: list[str]) -> None:
    path = "spec.validation.openAPIV3Schema.properties[spec].properties[a]"
    assert errors_of(with_schema(a=field)) == [f"{path}.{each}" for each in expected]


def test_a_default_of_another_type_is_an_error() -> None:
    path = "spec.validation.openAPIV3Schema.properties[spec].properties[a].default"
    assert errors_of(with_schema(a={"type": "string", "default": 3})) == [
        f'{path}: Invalid value: "integer":  in body must be of type string: "integer"'
    ]


def test_a_default_obeys_the_rules_of_its_field() -> None:
    field = {"type": "string", "default": "x", "x-kubernetes-validations": [{"rule": "self == 'y'"}]}
    path = "spec.validation.openAPIV3Schema.properties[spec].properties[a].default"
    assert errors_of(with_schema(a=field)) == [f"{path}: Invalid value: \"x\": failed rule: self == 'y'"]


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        pytest.param({"rule": "self != ''", "message": "must be set", "reason": "FieldValueRequired"}, [], id="valid"),
        pytest.param({"rule": " "}, ["rule: Required value: rule is not specified"], id="no rule"),
        pytest.param(
            {"rule": "true", "message": " "},
            ['message: Invalid value: " ": must be non-empty if specified'],
            id="an empty message",
        ),
        pytest.param(
            {"rule": "true", "message": "a\nb"},
            ['message: Invalid value: "a\\nb": must not contain line breaks'],
            id="a message of two lines",
        ),
        pytest.param(
            {"rule": "true\n|| false"},
            ["message: Required value: message must be specified if rule contains line breaks"],
            id="a rule of two lines without a message",
        ),
        pytest.param(
            {"rule": "true", "reason": "Because"},
            [
                (
                    'reason: Unsupported value: "Because": supported values: "FieldValueDuplicate", '
                    '"FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"'
                )
            ],
            id="an unknown reason",
        ),
    ],
)
def test_a_rule_has_a_text_and_a_message_of_one_line(rule: dict[str, Any], expected: list[str]) -> None:
    path = "spec.validation.openAPIV3Schema.properties[spec].properties[a].x-kubernetes-validations[0]"
    assert errors_of(with_rules(rule)) == [f"{path}.{each}" for each in expected]


def test_a_rule_that_does_not_compile_is_an_error() -> None:
    (found,) = errors_of(with_rules({"rule": "self =="}))
    assert ".properties[a].x-kubernetes-validations[0].rule: Invalid value: " in found
