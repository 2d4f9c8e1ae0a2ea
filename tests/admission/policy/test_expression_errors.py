"""Policies with expressions that do not compile are not stored, with the errors of Kubernetes."""

from __future__ import annotations

from typing import Any

import pytest

from admission.policy.expression_errors import expression_errors


def problems(**spec: Any) -> list[str]:
    return [str(each) for each in expression_errors({"metadata": {"name": "p"}, "spec": spec})]


def test_a_policy_that_compiles_has_none() -> None:
    valid = {
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "matchConditions": [{"name": "a", "expression": "request.name != ''"}],
        "variables": [{"name": "low", "expression": "1"}, {"name": "lower", "expression": "variables.low - 1"}],
        "validations": [{"expression": "variables.lower < 2", "messageExpression": "'name ' + object.metadata.name"}],
        "auditAnnotations": [{"key": "k", "valueExpression": "null"}],
    }
    assert problems(**valid) == []
    assert problems() == []


@pytest.mark.parametrize(
    ("spec", "path", "detail"),
    [
        pytest.param(
            {"validations": [{"expression": "true"}, {"expression": "object.x >"}]},
            "spec.validations[1].expression",
            "compilation failed: ERROR: <input>:1:",
            id="validation",
        ),
        pytest.param(
            {"validations": [{"expression": "'text'"}]},
            "spec.validations[0].expression",
            "must evaluate to bool but got string",
            id="type",
        ),
        pytest.param(
            {"validations": [{"expression": "true", "messageExpression": "1 +"}]},
            "spec.validations[0].messageExpression",
            "compilation failed: ",
            id="message",
        ),
        pytest.param(
            {"matchConditions": [{"name": "a", "expression": "nobody == 1"}]},
            "spec.matchConditions[0].expression",
            "undeclared reference to 'nobody'",
            id="match condition",
        ),
        pytest.param(
            {"variables": [{"name": "a", "expression": "("}]},
            "spec.variables[0].expression",
            "compilation failed: ",
            id="variable",
        ),
        pytest.param(
            {"auditAnnotations": [{"key": "k", "valueExpression": "1"}]},
            "spec.auditAnnotations[0].valueExpression",
            "must evaluate to one of [string null_type] but got int",
            id="audit annotation",
        ),
    ],
)
def test_an_expression_that_does_not_compile_is_an_invalid_value(spec: dict[str, Any], path: str, detail: str) -> None:
    [found] = problems(**spec)
    assert found.startswith(f"{path}: Invalid value: ")
    assert detail in found


def test_a_missing_expression_is_required() -> None:
    assert problems(validations=[{"message": "m"}]) == [
        "spec.validations[0].expression: Required value: expression is not specified"
    ]
