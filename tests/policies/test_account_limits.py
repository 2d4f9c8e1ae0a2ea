"""The limits of our ServiceAccount: each case of the table in the test process, and every clause is needed."""

from __future__ import annotations

from functools import cache

import pytest

from admission.policy.compiled_policy import compile_policy
from admission.policy.plugin import ValidatingPolicies
from apiserver.meta.resource import Object
from tenant_apiserver.least_privilege.rights import RIGHTS
from tests.policies.account.case import AccountCase
from tests.policies.account.evaluation import LIMITS, plugin_for, policy_of, refusal
from tests.policies.account.table import CASES
from tests.policies.mutants import mutants

_MUTANTS = [
    pytest.param(name, mutant, id=f"{name}: {change}")
    for name, (policy, _) in LIMITS.items()
    for change, mutant in mutants(policy)
    if "matchConstraints" not in change and "without request.operation" not in change
]
"""Constraints of the match are compared as a whole. Each limit has a guard with the operations that it applies to, even
if no write reaches another one."""


_KILLERS: dict[str, list[AccountCase]] = {name: [case for case in CASES if policy_of(case) == name] for name in LIMITS}
"""The cases of each policy, in the order in which mutants are tried: a case that has failed for one is the next one's
first, since it often fails for that, too. The order does not change the result."""


@cache
def _plugin(name: str) -> ValidatingPolicies:
    return plugin_for(*LIMITS[name])


def _is_as_in_the_table(case: AccountCase, message: str) -> bool:
    return message.startswith("403 ") and case.refusal in message if case.refusal else not message


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
async def test_a_write_of_the_account_is_refused_as_the_table_says(case: AccountCase) -> None:
    assert _is_as_in_the_table(case, message := await refusal(_plugin(policy_of(case)), case)), message


def test_every_case_has_a_name_of_its_own() -> None:
    assert len({case.id for case in CASES}) == len(CASES)


def test_every_policy_has_cases_that_it_admits_and_cases_that_it_refuses() -> None:
    found = {(policy_of(case), bool(case.refusal)) for case in CASES}
    assert found == {(name, refused) for name in LIMITS for refused in (False, True)}


@pytest.mark.parametrize("name", LIMITS)
def test_a_policy_is_fail_closed_and_binds_only_the_account(name: str) -> None:
    policy, binding = LIMITS[name]
    spec = policy["spec"]
    [rule] = spec["matchConstraints"]["resourceRules"]
    assert spec["failurePolicy"] == "Fail"
    assert (rule["apiVersions"], rule["operations"]) == (["*"], ["CREATE", "UPDATE", "DELETE"])
    assert (rule["apiGroups"], rule["resources"]) in [([right.group], list(right.resources)) for right in RIGHTS]
    assert [each["expression"] for each in spec["matchConditions"]] == [
        "request.userInfo.username == 'system:serviceaccount:cozy-system:tenant-apiserver'"
    ]
    assert binding["spec"] == {"policyName": name, "validationActions": ["Deny"]}
    assert compile_policy(policy).problems == []


def test_every_right_to_write_is_limited() -> None:
    """Rights on a status and on finalizers need no place: there is nothing else in them."""
    writes = {"create", "update", "patch", "delete"}
    unlimited = {
        each
        for right in RIGHTS
        if writes & set(right.verbs) and not (right.place or right.limits)
        for each in right.resources
    }
    assert unlimited == {
        "namespaces/finalizers",
        "tenantgateways/status",
        "tenantgateways/finalizers",
        "tokenreviews",
        "subjectaccessreviews",
    }


@pytest.mark.parametrize(("name", "mutant"), _MUTANTS)
async def test_a_case_fails_if_a_clause_is_missing(name: str, mutant: Object) -> None:
    # programs are shared with policies that are in use: the whole one, and the mutant itself
    assert _plugin(name)
    compiled = compile_policy(mutant)
    assert compiled.problems == [], "the mutant does not compile, so it proves nothing about the clause"
    policy_plugin = plugin_for(mutant, LIMITS[name][1])
    cases = _KILLERS[name]
    for position, case in enumerate(cases):
        if not _is_as_in_the_table(case, await refusal(policy_plugin, case)):
            cases.insert(0, cases.pop(position))
            return
    pytest.fail("every case passes without the clause")
