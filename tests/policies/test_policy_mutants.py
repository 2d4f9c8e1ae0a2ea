"""No clause of a policy is there in vain: without any one of them a case of the table comes out otherwise."""

from __future__ import annotations

import pytest

from admission.policy.compiled_policy import policy_of
from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Object
from tests.policies.case_table import BINDINGS, CASES, POLICIES
from tests.policies.cases import Case, refusal
from tests.policies.in_process_verdicts import NAME, attributes, judge_of, refused
from tests.policies.mutants import mutants, shortened

_MUTANTS = [
    pytest.param(name, mutant, id=f"{name}: {change}")
    for name, policy in POLICIES.items()
    for change, mutant in mutants(policy)
]


def _as_in_the_table(case: Case, error: StatusError | None) -> bool:
    group_resource = f"{case.plural}.{case.group}" if case.group else case.plural
    message = refusal(case, NAME, group_resource)
    return error is None if not message else error is not None and (error.message, error.code) == (message, 403)


@pytest.mark.parametrize(("name", "mutant"), _MUTANTS)
async def test_a_case_notices_that_a_clause_is_missing(name: str, mutant: Object) -> None:
    assert policy_of(mutant).problems == [], "a clause that cannot be left out is no clause"
    judge = judge_of(mutant, BINDINGS[name])
    for case in CASES:
        if case.policy == name and not _as_in_the_table(case, await refused(judge, attributes(case))):
            return
    pytest.fail("every case passes without it")


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        pytest.param("a", [], id="nothing to leave out"),
        pytest.param("a && b", [" b", "a "], id="and"),
        pytest.param("a || b && c", [" b && c", "a ", "a || c", "a || b "], id="and binds closer than or"),
        pytest.param("f(x, !(a || b))", ["f(x, !( b))", "f(x, !(a ))", "f(x, (a || b))"], id="in an argument"),
        pytest.param("'a && b' == c", [], id="not in a text"),
        pytest.param("['a', 'b'].all(x, x)", ["[ 'b'].all(x, x)", "['a'].all(x, x)"], id="elements of a list"),
        pytest.param("a == b ? c : d", ["c", "d"], id="branches"),
        pytest.param("a != ''", [], id="not an inequality"),
        pytest.param("a.?b[?'c'].lowerAscii()", ["a.?b[?'c']"], id="letter case"),
    ],
)
def test_clauses_are_found(expression: str, expected: list[str]) -> None:
    assert [shorter for _, shorter in shortened(expression)] == expected
