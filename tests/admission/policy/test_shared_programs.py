"""Expressions that policies have in common are compiled once, as long as one of the policies is there."""

from __future__ import annotations

import gc
import weakref
from typing import Any

from admission.policy.compiled_policy import CompiledPolicy, compile_policy


def _policy(expression: str, *, limit: str = "10") -> CompiledPolicy:
    spec: dict[str, Any] = {
        "variables": [{"name": "limit", "expression": limit}],
        "validations": [{"expression": expression}, {"expression": "object.size < variables.limit"}],
    }
    return compile_policy({"metadata": {"name": "sizes"}, "spec": spec})


def _programs(policy: CompiledPolicy) -> list[object]:
    assert policy.problems == []
    expressions = policy.expressions
    return [expressions.variables["limit"].program, *(each.expression.program for each in expressions.validations)]


def test_the_next_version_of_a_policy_has_the_programs_of_what_did_not_change() -> None:
    former, latter = (_programs(_policy(text)) for text in ("object.size > 1", "object.size > 2"))
    assert [one is other for one, other in zip(former, latter, strict=True)] == [True, False, True]


def test_a_variable_of_another_type_shares_no_program_that_could_read_it() -> None:
    former, latter = (_programs(_policy("true", limit=text)) for text in ("10", "10.0"))
    assert not any(one is other for one, other in zip(former, latter, strict=True))


def test_a_program_that_has_another_type_than_required_is_a_problem_each_time() -> None:
    """Also after a variable, whose type is free, has compiled it."""
    kept = _policy("true", limit="1 + 2")
    assert kept.problems == []
    for _ in range(2):
        assert _policy("1 + 2").problems == ["expression '1 + 2': must evaluate to bool but got int"]


def test_another_policy_does_not_decide_whether_an_expression_compiles() -> None:
    """A match condition has no `variables`, so that a loop may call its own variable so; a validation may not."""
    loop = "[object].all(variables, variables.size < 4)"
    condition: dict[str, Any] = {"matchConditions": [{"name": "small", "expression": loop}]}
    kept = compile_policy({"metadata": {"name": "small"}, "spec": condition})
    assert kept.problems == []
    validation: dict[str, Any] = {"validations": [{"expression": loop}]}
    (problem,) = compile_policy({"metadata": {"name": "sizes"}, "spec": validation}).problems
    assert problem.endswith("undefined field 'size'")


def test_the_programs_of_a_removed_policy_are_released() -> None:
    policy = _policy("object.size > 3")
    programs = [weakref.ref(each) for each in _programs(policy)]
    del policy
    gc.collect()
    assert [each() for each in programs] == [None, None, None]
