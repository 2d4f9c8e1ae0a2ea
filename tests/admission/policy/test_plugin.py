"""The decisions of ValidatingAdmissionPolicies: denials, warnings, audit annotations and errors."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence

import pytest

from tests.admission.policy.policy_objects import (
    RULES,
    StubNamespaces,
    binding,
    create,
    denial_message,
    plugin,
    policy,
    policy_source,
    rejection,
)
from tests.tenant_objects import attributes, tenant


async def test_a_denial_is_byte_for_byte_that_of_kubernetes() -> None:
    policies_plugin = plugin([policy({"expression": "object.spec.host == 'x'", "message": " no "})], [binding()])
    error = await rejection(policies_plugin, create(host="y"))
    sentence = "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no"
    assert error.status() == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": f'tenants.apps.cozystack.io "a" is forbidden: {sentence}',
        "reason": "Invalid",
        "details": {
            "name": "a",
            "group": "apps.cozystack.io",
            "kind": "tenants",
            "causes": [{"message": sentence}],
        },
        "code": 422,
    }


@pytest.mark.parametrize(
    ("reason", "code"),
    [("Unauthorized", 401), ("Forbidden", 403), ("RequestEntityTooLarge", 413), ("Invalid", 422)],
)
async def test_the_reason_determines_the_status_code(reason: str, code: int) -> None:
    policies_plugin = plugin([policy({"expression": "false", "reason": reason})], [binding()])
    error = await rejection(policies_plugin)
    assert (error.reason, error.code) == (reason, code)


@pytest.mark.parametrize(
    ("validation", "message"),
    [
        pytest.param({}, "failed expression: 1 > 2", id="neither"),
        pytest.param({"messageExpression": "' for ' + object.metadata.name + ' '"}, "for a", id="an expression"),
        pytest.param({"message": "m", "messageExpression": "'a\\nb'"}, "m", id="more than a line"),
        pytest.param({"message": "m", "messageExpression": "' '"}, "m", id="blank"),
        pytest.param({"message": "m", "messageExpression": "object.none"}, "m", id="not a string"),
        pytest.param({"message": "m", "messageExpression": "string(object.none)"}, "m", id="an error"),
        pytest.param(
            {"message": "m", "messageExpression": "'%s'.format(['0123456789']).replace('', '" + "x" * 600 + "')"},
            "m",
            id="longer than 5 KiB",
        ),
        pytest.param(
            {"message": "m", "messageExpression": "authorizer.path('/').check('get').reason()"}, "m", id="authorizer"
        ),
    ],
)  # fmt: skip
async def test_message_expression_is_preferred_over_message_and_message_over_the_expression(
    validation: dict[str, str], message: str
) -> None:
    assert await denial_message({"expression": " 1 > 2 ", **validation}) == message


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        pytest.param(
            {"expression": "object.none == 1"},
            "expression 'object.none == 1' resulted in error: no such key: none",
            id="evaluation",
        ),
        pytest.param({"expression": "'a'"}, "compilation error: must evaluate to bool but got string", id="type"),
    ],
)  # fmt: skip
async def test_an_expression_error_is_handled_by_failure_policy(spec: dict[str, str], message: str) -> None:
    assert await denial_message(spec) == message
    assert await denial_message(spec, failurePolicy="Fail") == message
    await plugin([policy(spec, failurePolicy="Ignore")], [binding()]).validate(create())


async def test_variables_are_evaluated_on_first_use() -> None:
    variables = [
        {"name": "broken", "expression": "object.none"},
        {"name": "host", "expression": "object.spec.host"},
        {"name": "upper", "expression": "variables.host.upperAscii()"},
    ]
    fine = {"expression": "variables.upper == 'X' || variables.broken == 1"}
    await plugin([policy(fine, variables=variables)], [binding()]).validate(create(host="x"))
    assert await denial_message({"expression": "variables.broken == 1"}, variables=variables) == (
        "expression 'variables.broken == 1' resulted in error: "
        'composited variable "broken" fails to evaluate: no such key: none'
    )


async def test_a_variable_cannot_read_one_that_is_declared_later() -> None:
    variables = [{"name": "a", "expression": "variables.b"}, {"name": "b", "expression": "1"}]
    message = await denial_message({"expression": "variables.a == 1"}, variables=variables)
    assert 'composited variable "a" fails to compile: compilation failed:' in message


@pytest.mark.parametrize(
    ("conditions", "rejected"),
    [
        pytest.param(["true"], True, id="true"),
        pytest.param(["true", "false"], False, id="false"),
        pytest.param(["object.none == 1", "false"], False, id="false beside an error"),
        pytest.param(["object.none == 1", "true"], True, id="an error"),
    ],
)
async def test_match_conditions_must_all_hold(conditions: Sequence[str], rejected: bool) -> None:
    named = [{"name": f"c{index}", "expression": text} for index, text in enumerate(conditions)]
    policies_plugin = plugin([policy({"expression": "false"}, matchConditions=named)], [binding()])
    if rejected:
        await rejection(policies_plugin)
    else:
        await policies_plugin.validate(create())


async def test_the_request_variable_has_kubernetes_fields() -> None:
    expression = (
        "request.operation == 'UPDATE' && request.kind == {'group': 'apps.cozystack.io', 'version': 'v1alpha1',"
        " 'kind': 'Tenant'} && request.resource.resource == 'tenants' && request.requestKind == request.kind"
        " && !has(request.subResource) && request.name == 'a' && request.namespace == 'tenant-root'"
        " && request.userInfo.username == 'alice' && 'system:authenticated' in request.userInfo.groups"
        " && !has(request.userInfo.uid) && !request.dryRun && request.options.kind == 'UpdateOptions'"
        " && namespaceObject.metadata.labels.kind == 'tenant' && !has(namespaceObject.metadata.managedFields)"
        " && oldObject.spec.host == 'x' && object.spec.host == 'y'"
    )
    request = attributes(
        "UPDATE", tenant("a", spec={"host": "y"}), tenant("a", spec={"host": "x"}), options={"kind": "UpdateOptions"}
    )
    policies_plugin = plugin([policy({"expression": expression})], [binding()])
    await policies_plugin.validate(request)
    await rejection(policies_plugin, dataclasses.replace(request, dry_run=True))


async def test_object_is_null_on_delete() -> None:
    policies_plugin = plugin([policy({"expression": "object == null && oldObject.metadata.name == 'a'"})], [binding()])
    await policies_plugin.validate(attributes("DELETE", old=tenant("a")))


async def test_warn_and_audit_actions_do_not_deny() -> None:
    request = create()
    actions = ["Warn", "Audit"]
    await plugin(
        [policy({"expression": "true"}, {"expression": "1 > 2 && '<' == '<'"})], [binding(actions=actions)]
    ).validate(request)
    assert request.context.warnings == [
        "Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': failed expression: 1 > 2 && '<' == '<'"
    ]
    annotation = request.context.annotations["validation.policy.admission.k8s.io/validation_failure"]
    assert "\\u003c" in annotation
    assert "\\u0026" in annotation
    assert json.loads(annotation) == [
        {
            "message": "failed expression: 1 > 2 && '<' == '<'",
            "policy": "p",
            "binding": "b",
            "expressionIndex": 1,
            "validationActions": actions,
        }
    ]  # fmt: skip


async def test_audit_annotations_without_a_value_are_left_out() -> None:
    audits = [
        {"key": "name", "valueExpression": "' ' + object.metadata.name"},
        {"key": "none", "valueExpression": "null"},
        {"key": "blank", "valueExpression": "' '"},
    ]
    request = create()
    await plugin([policy(auditAnnotations=audits)], [binding()]).validate(request)
    assert request.context.annotations == {"p/name": "a"}
    broken = [{"key": "name", "valueExpression": "string(object.none)"}]
    assert "no such key: none" in (await rejection(plugin([policy(auditAnnotations=broken)], [binding()]))).message


async def test_of_several_denials_the_first_by_policy_name_is_reported() -> None:
    policies = [policy({"expression": "false", "message": name}, name=name) for name in ("q", "p")]
    error = await rejection(plugin(policies, [binding("b2", policy="q"), binding("b1", policy="p")]))
    assert "'p' with binding 'b1'" in error.message


async def test_a_policy_without_a_binding_is_not_in_force() -> None:
    await plugin([policy({"expression": "false"})], [binding(policy="other")]).validate(create())


@pytest.mark.parametrize(
    ("selector", "rejected"),
    [({"kind": "tenant"}, True), ({"kind": "other"}, False)],
    ids=["matches", "does not match"],
)
async def test_namespaces_are_selected_by_their_labels(selector: dict[str, str], rejected: bool) -> None:
    matches = {"namespaceSelector": {"matchLabels": selector}}
    policies_plugin = plugin([policy({"expression": "false"})], [binding(matchResources=matches)])
    if rejected:
        await rejection(policies_plugin)
    else:
        await policies_plugin.validate(create())


async def test_a_missing_namespace_is_a_configuration_error() -> None:
    matches = {"namespaceSelector": {"matchLabels": {"a": "b"}}}
    namespaces = StubNamespaces()
    policies_plugin = plugin([policy({"expression": "true"})], [binding(matchResources=matches)], namespaces=namespaces)
    assert (await rejection(policies_plugin)).message.endswith(
        "with binding 'b' denied request: failed to configure binding: namespaces \"tenant-root\" not found"
    )
    assert namespaces.live_reads == ["tenant-root"]


@pytest.mark.parametrize("group", ["admissionregistration.k8s.io", "authorization.k8s.io", "authentication.k8s.io"])
async def test_policies_do_not_apply_to_admission_configurations_and_reviews(group: str) -> None:
    request = create()
    resource = dataclasses.replace(request.resource, group=group)
    assert not plugin([], []).handles(dataclasses.replace(request, resource=resource))


async def test_a_policy_is_compiled_once_until_its_spec_changes() -> None:
    policies = policy_source([policy({"expression": "true"})], [binding()])
    [before] = policies.bound_policies
    policies.policies.apply("MODIFIED", {**policy({"expression": "true"}), "status": {"observedGeneration": 1}}, 2)
    assert policies.bound_policies[0].policy is before.policy
    policies.policies.apply("MODIFIED", policy({"expression": "false"}), 3)
    assert policies.bound_policies[0].policy is not before.policy
    policies.bindings.apply("DELETED", binding(), 4)
    assert policies.bound_policies == ()


async def test_compile_errors_of_policies_are_reported() -> None:
    policies = policy_source([policy({"expression": "1 < 2.5"}), policy({"expression": "true"}, name="fine")], [])
    assert list(policies.problems) == ["p"]
    assert policies.problems["p"][0].startswith("expression '1 < 2.5': compilation failed:")


async def test_of_an_aggregated_servers_policies_only_those_about_its_groups_are_compiled_at_once() -> None:
    others = {"matchConstraints": {"resourceRules": [{**RULES["resourceRules"][0], "apiGroups": ["batch"]}]}}
    invalid = {"matchConstraints": {"namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "?"}]}}}
    documents = [
        policy({"expression": "1 < 2.5"}, name="about-ours"),
        policy({"expression": "1 < 2.5"}, name="about-others", **others),
        policy({"expression": "true"}, name="about-what", **invalid),
    ]
    source = policy_source(documents, [], groups=["apps.cozystack.io"])
    assert list(source.problems) == ["about-ours", "about-what"]
    # one that is needed nevertheless, for a dry run of a write of another kind
    assert source.policies.compiled["about-others"].expressions.validations[0].expression.error
    assert list(source.problems) == ["about-others", "about-ours", "about-what"]
