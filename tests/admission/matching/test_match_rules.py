from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from admission.matching.match_rules import (
    MatchCriteria,
    parse_match_criteria,
    request_namespace,
    single_version,
    target_of,
)
from apiserver.admission import Attributes, Operation
from apiserver.meta.resource import Resource
from tests.tenant_objects import attributes, tenant

_RULE = {
    "apiGroups": ["apps.cozystack.io"],
    "apiVersions": ["v1alpha1"],
    "operations": ["CREATE"],
    "resources": ["tenants"],
}


def _request(operation: Operation = "CREATE", **changes: Any) -> Attributes:
    new = tenant("a") if operation != "DELETE" else None
    old = tenant("a") if operation != "CREATE" else None
    return dataclasses.replace(attributes(operation, new, old), **changes)


def _matches(document: dict[str, Any], request: Attributes) -> bool:
    return parse_match_criteria(document).matching_target(request, single_version(request.resource)) is not None


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        pytest.param({}, True, id="exactly"),
        pytest.param({"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"]}, True, id="wildcards"),
        pytest.param({"resources": ["*"]}, True, id="all resources"),
        pytest.param({"resources": ["*/*"]}, True, id="all resources and subresources"),
        pytest.param({"resources": ["tenants/*"]}, True, id="the resource and its subresources"),
        pytest.param({"resources": ["tenants/status"]}, False, id="a subresource"),
        pytest.param({"apiGroups": ["apps"]}, False, id="another group"),
        pytest.param({"apiVersions": ["v1"]}, False, id="another version"),
        pytest.param({"operations": ["UPDATE", "DELETE"]}, False, id="another operation"),
        pytest.param({"scope": "Cluster"}, False, id="another scope"),
        pytest.param({"scope": "Namespaced"}, True, id="the scope"),
        pytest.param({"resourceNames": ["a", "b"]}, True, id="the name"),
        pytest.param({"resourceNames": ["b"]}, False, id="another name"),
    ],
)
def test_a_rule_matches_group_version_operation_resource_scope_and_name(rule: dict[str, Any], expected: bool) -> None:
    assert _matches({"resourceRules": [{**_RULE, **rule}]}, _request()) is expected


@given(
    rule=st.fixed_dictionaries(
        {
            "apiGroups": st.sampled_from([["*"], ["apps.cozystack.io"], ["apps"]]),
            "apiVersions": st.sampled_from([["*"], ["v1alpha1"], ["v1"]]),
            "operations": st.sampled_from([["*"], ["CREATE"], ["UPDATE", "DELETE"]]),
            "resources": st.sampled_from([["*"], ["*/*"], ["tenants"], ["tenants/status"], ["widgets"]]),
            "scope": st.sampled_from(["*", "Namespaced", "Cluster"]),
            "resourceNames": st.sampled_from([[], ["a"], ["b"]]),
        }
    ),
    operation=st.sampled_from(["CREATE", "UPDATE", "DELETE"]),
    subresource=st.sampled_from(["", "status"]),
    policy=st.sampled_from(["Exact", "Equivalent"]),
)
def test_criteria_that_match_a_request_may_match_its_resource(
    rule: dict[str, Any], operation: Operation, subresource: str, policy: str
) -> None:
    request = _request(operation, subresource=subresource)
    own = target_of(request.resource)
    equivalents = (own, dataclasses.replace(own, version="v1"), dataclasses.replace(own, group="apps"))
    criteria = parse_match_criteria({"resourceRules": [rule], "matchPolicy": policy})
    matches = criteria.matching_target(request, equivalents) is not None
    assert criteria.may_match(request, equivalents) or not matches
    if not rule["resourceNames"]:
        assert criteria.may_match(request, equivalents) == matches


def test_invalid_criteria_may_match_any_resource() -> None:
    selector = {"matchExpressions": [{"key": "a", "operator": "Near"}]}
    criteria = parse_match_criteria({"resourceRules": [{**_RULE, "apiGroups": ["apps"]}], "objectSelector": selector})
    request = _request()
    assert criteria.may_match(request, single_version(request.resource))


def test_a_subresource_is_matched_only_by_a_rule_that_names_it() -> None:
    request = _request("UPDATE", subresource="status")
    update = {**_RULE, "operations": ["UPDATE"]}
    assert not _matches({"resourceRules": [update]}, request)
    assert not _matches({"resourceRules": [{**update, "resources": ["*"]}]}, request)
    assert _matches({"resourceRules": [{**update, "resources": ["*/status"]}]}, request)


def test_empty_rules_match_everything_and_excluded_rules_take_precedence() -> None:
    assert _matches({}, _request())
    assert not _matches({"resourceRules": [_RULE], "excludeResourceRules": [_RULE]}, _request())


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        pytest.param({}, True, id="empty"),
        pytest.param({"matchLabels": {"a": "b"}}, True, id="a label of the new object"),
        pytest.param({"matchLabels": {"c": "d"}}, True, id="a label of the old object"),
        pytest.param({"matchLabels": {"a": "b", "c": "d"}}, False, id="labels of both"),
        pytest.param({"matchExpressions": [{"key": "x", "operator": "DoesNotExist"}]}, True, id="without a label"),
        pytest.param(
            {"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["b"]}]},
            True,
            id="only the old object matches",
        ),
    ],
)
def test_object_selectors_match_either_object(selector: dict[str, Any], expected: bool) -> None:
    new, old = tenant("a"), tenant("a")
    new["metadata"]["labels"], old["metadata"]["labels"] = {"a": "b"}, {"c": "d"}
    assert _matches({"objectSelector": selector}, attributes("UPDATE", new, old)) is expected


def _other_version(resource: Resource) -> Resource:
    return dataclasses.replace(resource, version="v1")


@pytest.mark.parametrize(("policy", "expected"), [("Equivalent", "v1"), (None, "v1"), ("Exact", None)])
def test_another_version_of_the_resource_matches_unless_match_policy_is_exact(
    policy: str | None, expected: str | None
) -> None:
    request = _request()
    equivalents = (target_of(request.resource), target_of(_other_version(request.resource)))
    found = parse_match_criteria(
        {"matchPolicy": policy, "resourceRules": [{**_RULE, "apiVersions": ["v1"]}]}
    ).matching_target(request, equivalents)
    assert (found.version if found else None) == expected


def test_an_invalid_selector_is_an_error_of_the_match_criteria() -> None:
    selector = {"matchExpressions": [{"key": "a", "operator": "Like"}]}
    assert parse_match_criteria({"objectSelector": selector}) == MatchCriteria(
        error='"Like" is not a valid label selector operator'
    )


def test_an_existing_namespace_is_in_itself() -> None:
    resource = dataclasses.replace(_request().resource, group="", version="v1", plural="namespaces", namespaced=False)
    request = _request("UPDATE", resource=resource, namespace="", name="a")
    assert request_namespace(request) == "a"
    assert request_namespace(dataclasses.replace(request, operation="CREATE")) == "a"
