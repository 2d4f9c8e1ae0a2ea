"""Patterns have Go's syntax, and matching them takes no exponential time."""

from __future__ import annotations

import pytest

from admission.cel.schema_rules import SchemaRuleCompiler
from registry.embedded.custom.definition import parse_definition
from registry.embedded.custom.validation import CustomValidation
from tests.cpu_time import least_ratio
from tests.registry.embedded.custom.definitions import errors_of, with_schema

STRING = {"type": "string"}


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("^(?=a)b", "invalid or unsupported Perl syntax: `(?=`"),
        (r"(a)\1", r"invalid escape sequence: `\1`"),
        ("a{2000}", "invalid repeat count: `{2000}`"),
        ("a++b", "invalid nested repetition operator: `++`"),
        (r"a\Z", r"invalid escape sequence: `\Z`"),
        ("a(", "missing closing ): `a(`"),
    ],
)
@pytest.mark.parametrize("alternative", [False, True], ids=["of a field", "of an alternative"])
def test_a_pattern_that_go_does_not_know_is_an_error(pattern: str, why: str, alternative: bool) -> None:
    part = {"pattern": pattern}
    (found,) = errors_of(with_schema(a={**STRING, "anyOf": [part]} if alternative else {**STRING, **part}))
    assert found.endswith(f"must be a valid regular expression, but isn't: error parsing regexp: {why}")


@pytest.mark.parametrize("pattern", [r"^\p{L}+$", r"^\Qa.b\E$", "(?U)a+", "(?i)^[[:alpha:]]+$", "(?P<name>a)"])
def test_a_pattern_in_the_syntax_of_go_is_valid(pattern: str) -> None:
    assert errors_of(with_schema(a={**STRING, "pattern": pattern})) == []


@pytest.mark.parametrize(("pattern", "text"), [("^(a+)+$", "a" * 5000 + "!"), ("(x+x+)+y", "x" * 200)])
def test_no_pattern_takes_exponential_time(pattern: str, text: str) -> None:
    judged, simple = (_validation(each) for each in (pattern, "^a+$"))
    body = {"metadata": {"name": "a"}, "spec": {"a": text}}
    (found,) = judged.create_errors(body)
    assert found.detail == f"spec.a in body should match '{pattern}'"
    assert least_ratio(lambda: judged.create_errors(body), lambda: simple.create_errors(body), below=100) < 100


def _validation(pattern: str) -> CustomValidation:
    (version,) = parse_definition(with_schema(a={**STRING, "pattern": pattern})).versions
    return CustomValidation(version, SchemaRuleCompiler())
