from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from admission.policy.plugin import ValidatingPolicies
from apiserver.admission import Attributes
from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Object
from tests.admission.policy.policy_objects import (
    StubAuthorizer,
    StubNamespaces,
    StubParams,
    binding,
    plugin,
    policy,
    policy_source,
)
from tests.tenant_objects import attributes, tenant

_START = "tenants.apps.cozystack.io \"a\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: "


def create(**spec: Any) -> Attributes:
    return attributes("CREATE", tenant("a", spec=spec))


async def rejection(policies_plugin: ValidatingPolicies, request: Attributes | None = None) -> StatusError:
    with pytest.raises(StatusError) as caught:
        await policies_plugin.validate(request or create())
    return caught.value


async def denial_message(validation: Mapping[str, Any], **spec: Any) -> str:
    """The message of a denial, without its common prefix."""
    error = await rejection(plugin([policy(validation, **spec)], [binding()]))
    assert error.message.startswith(_START)
    return error.message.removeprefix(_START)


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


def _limit(name: str, host: str, **metadata: Any) -> Object:
    return {"metadata": {"name": name, "namespace": "tenant-root", **metadata}, "data": {"host": host}}


_PARAMS = StubParams("ConfigMap", _limit("one", "x", labels={"a": "b"}), _limit("two", "y", labels={"a": "b"}))
_KIND = {"apiVersion": "v1", "kind": "ConfigMap"}


@pytest.mark.parametrize(
    ("ref", "message"),
    [
        pytest.param({"name": "one"}, "", id="by name"),
        pytest.param({"name": "two"}, "failed expression: params.data.host == object.spec.host", id="another"),
        pytest.param({"name": "no", "parameterNotFoundAction": "Allow"}, "", id="not found, allowed"),
        pytest.param(
            {"name": "no", "parameterNotFoundAction": "Deny"},
            "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction",
            id="not found, denied",
        ),
        pytest.param(
            {"selector": {"matchLabels": {"a": "b"}}, "parameterNotFoundAction": "Deny"},
            "failed expression: params.data.host == object.spec.host",
            id="by selector, each",
        ),
        pytest.param(
            {"selector": {"matchLabels": {"a": "c"}}, "parameterNotFoundAction": "Allow"}, "", id="none selected"
        ),
        pytest.param({"name": "one", "namespace": "other", "parameterNotFoundAction": "Allow"}, "", id="elsewhere"),
        pytest.param({}, "failed to configure binding: one of name or selector must be provided", id="neither"),
    ],
)  # fmt: skip
async def test_params_are_found_by_name_or_selector(ref: dict[str, Any], message: str) -> None:
    policy_object = policy({"expression": "params.data.host == object.spec.host"}, paramKind=_KIND)
    policies_plugin = plugin([policy_object], [binding(paramRef=ref or {"namespace": "x"})], params=_PARAMS)
    if not message:
        await policies_plugin.validate(create(host="x"))
    else:
        assert (await rejection(policies_plugin, create(host="x"))).message == _START + message


async def test_params_are_null_without_a_param_ref() -> None:
    policy_object = policy({"expression": "params == null"}, paramKind=_KIND)
    await plugin([policy_object], [binding()], params=_PARAMS).validate(create())


async def test_an_unknown_param_kind_is_an_error_of_the_policy() -> None:
    policy_object = policy({"expression": "true"}, paramKind={"apiVersion": "a.b/v1", "kind": "Nope"})
    error = await rejection(plugin([policy_object], [binding(paramRef={"name": "x"})]))
    assert error.message.endswith(
        "ValidatingAdmissionPolicy 'p' denied request: failed to configure policy: "
        "failed to find resource referenced by paramKind: 'a.b/v1, Kind=Nope'"
    )


async def test_a_param_ref_to_a_cluster_scoped_kind_may_not_have_a_namespace() -> None:
    policy_object = policy({"expression": "true"}, paramKind=_KIND)
    policies_plugin = plugin(
        [policy_object],
        [binding(paramRef={"name": "x", "namespace": "y"})],
        params=StubParams("ConfigMap", namespaced=False),
    )
    assert (
        "paramRef.namespace must not be provided for a cluster-scoped `paramKind`"
        in (await rejection(policies_plugin)).message
    )


async def test_authorizer_checks_are_for_the_user_of_the_request() -> None:
    check = "authorizer.requestResource.check('rule')"
    expression = f"{check}.allowed() && {check}.reason() == 'because'"
    authorizer = StubAuthorizer("rule")
    await plugin([policy({"expression": expression})], [binding()], authorizer=authorizer).validate(create())
    [check_attributes] = authorizer.checks
    assert (
        check_attributes.user.name,
        check_attributes.resource,
        check_attributes.namespace,
        check_attributes.name,
    ) == ("alice", "tenants", "tenant-root", "a")


async def test_the_event_loop_keeps_running_during_an_authorizer_check() -> None:
    policies_plugin = plugin(
        [policy({"expression": "authorizer.path('/x').check('rule').allowed()"})],
        [binding()],
        authorizer=StubAuthorizer("rule", delay=0.05),
    )
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0.001)

    ticking = asyncio.create_task(tick())
    await policies_plugin.validate(create())
    ticking.cancel()
    assert ticks > 5


async def test_an_authorizer_check_after_the_deadline_of_the_request_is_an_error() -> None:
    request = create()
    request.context.received_at -= 60
    check = "authorizer.path('/x').check('get')"
    expression = f"{check}.errored() && {check}.error() == 'context deadline exceeded'"
    authorizer = StubAuthorizer()
    await plugin([policy({"expression": expression})], [binding()], authorizer=authorizer).validate(request)
    assert authorizer.checks == []


_ENDLESS = "lists.range(9000).all(a, lists.range(9000).all(b, lists.range(9000).all(c, a + b + c >= 0)))"
_ENDLESS_OR_TRUE = {"name": "slow", "expression": f"{_ENDLESS} || true"}
_TOO_LONG = "could not be evaluated: it takes more than 1 s of CPU time"


@pytest.mark.parametrize(
    ("spec", "actions", "rejected"),
    [
        pytest.param({"validations": [_ENDLESS_OR_TRUE]}, ["Deny"], True, id="a validation"),
        pytest.param({"validations": [_ENDLESS_OR_TRUE], "failurePolicy": "Ignore"}, ["Deny"], True, id="ignored"),
        pytest.param({"matchConditions": [_ENDLESS_OR_TRUE]}, ["Warn", "Deny"], True, id="a match condition"),
        pytest.param(
            {"variables": [_ENDLESS_OR_TRUE], "validations": [{"expression": "variables.slow || true"}]},
            ["Deny"],
            True,
            id="a variable",
        ),
        pytest.param(
            {"validations": [{"expression": "false", "messageExpression": f"string({_ENDLESS})"}]},
            ["Deny"],
            True,
            id="a message",
        ),
        pytest.param(
            {"auditAnnotations": [{"key": "a", "valueExpression": f"string({_ENDLESS})"}]},
            ["Warn"],
            True,
            id="an audit annotation, whose errors deny whatever the actions",
        ),
        pytest.param({"validations": [_ENDLESS_OR_TRUE]}, ["Warn"], False, id="a policy that only warns"),
    ],
)
async def test_a_policy_that_takes_too_long_rejects_a_request_that_it_might_deny(
    spec: Mapping[str, Any], actions: Sequence[str], rejected: bool
) -> None:
    """Even if it ignores failures: the limit is ours, and a kube-apiserver might deny the request."""
    policies_plugin = plugin([policy(**spec)], [binding(actions=actions)])
    request = create()
    if not rejected:
        await policies_plugin.validate(request)
        [warning] = request.context.warnings
        assert warning.endswith(_TOO_LONG)
        return
    error = await rejection(policies_plugin, request)
    assert error.code == 500
    assert error.message.endswith(f"ValidatingAdmissionPolicy 'p' with binding 'b' {_TOO_LONG}")


async def test_other_requests_are_served_during_a_long_evaluation() -> None:
    policies_plugin = plugin([policy(_ENDLESS_OR_TRUE)], [binding()])
    evaluation = asyncio.create_task(policies_plugin.validate(create()))
    served = 0
    while not evaluation.done():
        await asyncio.sleep(0)
        served += 1
    assert isinstance(evaluation.exception(), StatusError)
    assert served > 20


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
