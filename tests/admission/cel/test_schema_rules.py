"""The rules of schemas: what they see, and the errors that they report."""

from __future__ import annotations

from typing import Any

import pytest

from admission.cel.schema_rules import SchemaRuleCompiler
from apiserver.schema.rules import RuleValidator


def schema(*rules: dict[str, Any], **properties: Any) -> dict[str, Any]:
    spec = {"type": "object", "properties": properties, "x-kubernetes-validations": list(rules)}
    return {"type": "object", "properties": {"spec": spec}}


def errors(schema: dict[str, Any], spec: Any, old: Any = None) -> list[tuple[str, str, str]]:
    validator = RuleValidator(schema, SchemaRuleCompiler())
    found = validator.errors({"spec": spec}, None if old is None else {"spec": old})
    return [(each.reason, each.field, each.message) for each in found]


STRING, INTEGER = {"type": "string"}, {"type": "integer"}


@pytest.mark.parametrize(
    ("rule", "spec", "expected"),
    [
        ({"rule": "self.a > 1"}, {"a": 2}, []),
        ({"rule": "self.a > 1"}, {"a": 1}, [("FieldValueInvalid", "spec", "Invalid value: failed rule: self.a > 1")]),
        ({"rule": "self.a > 1", "message": "no"}, {"a": 1}, [("FieldValueInvalid", "spec", "Invalid value: no")]),
        (
            {"rule": "self.a > 1", "reason": "FieldValueForbidden", "message": "no", "fieldPath": ".a"},
            {"a": 1},
            [("FieldValueForbidden", "spec.a", "Forbidden: no")],
        ),
        (
            {"rule": "self.a > 1", "messageExpression": "'got ' + string(self.a)"},
            {"a": 1},
            [("FieldValueInvalid", "spec", "Invalid value: got 1")],
        ),
        (
            {"rule": "self.b == 'x'"},
            {},
            [("FieldValueInvalid", "spec", "Invalid value: \"object\": no such key: b evaluating rule: self.b == 'x'")],
        ),
        ({"rule": "self.__namespace__ == 'x'"}, {"namespace": "x"}, []),
        ({"rule": "self.foo__dash__bar == 'x'"}, {"foo-bar": "x"}, []),
        ({"rule": "self.number / 2.0 == 1.0"}, {"number": 2}, []),
        ({"rule": "size(self.data) == 2"}, {"data": "YWI="}, []),
        ({"rule": "!has(self.free.hidden)"}, {"free": {"hidden": 1}}, []),
    ],
)
def test_a_rule_sees_the_declared_fields_and_reports_its_failure(
    rule: dict[str, Any], spec: Any, expected: list[tuple[str, str, str]]
) -> None:
    properties = {
        "a": INTEGER,
        "b": STRING,
        "namespace": STRING,
        "foo-bar": STRING,
        "number": {"type": "number"},
        "data": {"type": "string", "format": "byte"},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    }
    assert errors(schema(rule, **properties), spec) == expected


def test_a_transition_rule_is_evaluated_only_with_an_old_value() -> None:
    growing = schema({"rule": "self.a >= oldSelf.a", "message": "shrinks"}, a=INTEGER)
    assert errors(growing, {"a": 1}) == []
    assert errors(growing, {"a": 1}, {"a": 2}) == [("FieldValueInvalid", "spec", "Invalid value: shrinks")]


def test_an_optional_old_value_is_absent_on_create() -> None:
    rule = {"rule": "oldSelf.hasValue() || self.a == 1", "optionalOldSelf": True, "message": "begin with 1"}
    optional = schema(rule, a=INTEGER)
    assert errors(optional, {"a": 2}) == [("FieldValueInvalid", "spec", "Invalid value: begin with 1")]
    assert errors(optional, {"a": 2}, {"a": 1}) == []


def test_an_unchanged_part_has_no_errors_in_an_update() -> None:
    small = schema({"rule": "self.a < 5"}, a=INTEGER, b=STRING)
    assert errors(small, {"a": 9}, {"a": 9}) == []
    assert len(errors(small, {"a": 9, "b": "x"}, {"a": 9})) == 1


def test_a_loop_of_any_length_is_evaluated() -> None:
    items = {"type": "array", "items": INTEGER}
    distinct = schema({"rule": "self.list.all(x, x < 20000)", "message": "too big"}, list=items)
    assert errors(distinct, {"list": list(range(15_000))}) == []
    assert len(errors(distinct, {"list": [*range(15_000), 20_000]})) == 1


@pytest.mark.parametrize(
    ("text", "part"),
    [("self.a >", "compilation failed"), ("self.weight > 1", "undefined field 'weight'"), ("self.a + 1", "bool")],
)
def test_a_rule_that_cannot_be_used_is_a_problem(text: str, part: str) -> None:
    spec = schema({"rule": text}, a=INTEGER)["properties"]["spec"]
    problems = list(SchemaRuleCompiler().compile(spec, is_root=False).problems())
    assert [(each.index, each.field) for each in problems] == [(0, "rule")]
    assert part in problems[0].text


def test_text_with_a_nul_character_ends_the_validation() -> None:
    [(_, _, message)] = errors(schema({"rule": "self.b == 'x'"}, b=STRING), {"b": "x\0"})
    assert "NUL character" in message
