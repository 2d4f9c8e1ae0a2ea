"""Every clause of a policy is needed: without it, at least one case of the table has another result."""

from __future__ import annotations

import pytest

from admission.policy.compiled_policy import compile_policy
from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Object
from tests.policies.case_table import BINDINGS, CASES, POLICIES, plugin_of
from tests.policies.cases import Case, rejection_message
from tests.policies.in_process_evaluation import NAME, attributes, plugin_for, rejection
from tests.policies.mutants import mutants, shortened

_MUTANTS = [
    pytest.param(name, mutant, id=f"{name}: {change}")
    for name, policy in POLICIES.items()
    for change, mutant in mutants(policy)
]

_KILLERS: dict[str, list[Case]] = {name: [case for case in CASES if case.policy == name] for name in POLICIES}
"""The cases of each policy, in the order in which mutants are tried: a case that has failed for one is the next one's
first, since it often fails for that, too. The order does not change the result."""


def _as_in_the_table(case: Case, error: StatusError | None) -> bool:
    group_resource = f"{case.plural}.{case.group}" if case.group else case.plural
    message = rejection_message(case, NAME, group_resource)
    return error is None if not message else error is not None and (error.message, error.code) == (message, 403)


@pytest.mark.parametrize(("name", "mutant"), _MUTANTS)
async def test_a_case_fails_if_a_clause_is_missing(name: str, mutant: Object) -> None:
    # programs are shared with policies that are in use: the whole one, and the mutant itself
    assert plugin_of(name)
    compiled = compile_policy(mutant)
    assert compiled.problems == [], "the mutant does not compile, so it proves nothing about the clause"
    policy_plugin = plugin_for(mutant, BINDINGS[name])
    cases = _KILLERS[name]
    for position, case in enumerate(cases):
        if not _as_in_the_table(case, await rejection(policy_plugin, attributes(case))):
            cases.insert(0, cases.pop(position))
            return
    pytest.fail("every case passes without the clause")


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
def test_the_shorter_expressions_omit_one_clause_each(expression: str, expected: list[str]) -> None:
    assert [shorter for _, shorter in shortened(expression)] == expected
