"""`replace` has the results of Go, within a limit: a short expression could make a text of any size of a short one."""

from __future__ import annotations

import pytest

from admission.cel.schema_rules import SchemaRuleCompiler
from apiserver.schema.rules import RuleValidator
from tests.cpu_time import least_ratio


def errors_of(rule: str, text: str) -> list[str]:
    field = {"type": "string", "x-kubernetes-validations": [{"rule": rule, "message": "failed"}]}
    found = RuleValidator({"type": "object", "properties": {"a": field}}, SchemaRuleCompiler()).errors({"a": text})
    return [each.detail for each in found]


@pytest.mark.parametrize(
    "rule",
    [
        "self.replace('a', 'b') == 'bbb'",
        "self.replace('a', 'b', 1) == 'baa'",
        "self.replace('a', 'b', 0) == 'aaa'",
        "self.replace('a', 'b', -1) == 'bbb'",
        "self.replace('', 'x') == 'xaxaxax'",
        "self.replace('c', '') == 'aaa'",
        "dyn(self).replace('aa', 'b').replace(self.replace('a', ''), '-') == '-b-a-'",
    ],
)
def test_the_result_is_that_of_go(rule: str) -> None:
    assert errors_of(rule, "aaa") == []


CHAIN = "self" + ".replace('a', 'aaaaaaaaaa')" * 6


@pytest.mark.parametrize("rule", [f"{CHAIN} != ''", "self.replace('a', self) != ''"])
def test_a_result_beyond_the_limit_ends_the_rule_at_once(rule: str) -> None:
    text = "a" * 5000
    assert errors_of(rule, text) == ["operation cancelled: actual cost limit exceeded evaluating rule: failed"]
    # the text of a billion bytes that is not created would take a thousand times as long
    once = "self.replace('a', 'b') == ''"
    assert least_ratio(lambda: errors_of(rule, text), lambda: errors_of(once, text), below=100) < 100


def test_the_message_for_other_types_names_the_function_as_it_was_written() -> None:
    why = "call arguments did not match a supported operator, function or macro signature for rule: failed"
    assert errors_of("dyn(1).replace('a', 'b') == ''", "a") == [
        f"'no such overload: replace(int, string, string)': {why}"
    ]
