from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Mapping
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest

from admission.chain import Chain
from admission.webhook.errors import CallFailed
from admission.webhook.mutating import MutatingWebhooks
from admission.webhook.validating import ValidatingWebhooks
from apiserver.admission import Attributes
from apiserver.meta.errors import StatusError
from apiserver.schema.pruning_and_defaulting import apply_defaults, object_schema
from tests.admission.policy.policy_objects import StubAuthorizer
from tests.admission.webhook.webhook_objects import (
    ALLOWED,
    DENIED,
    StubCaller,
    allowing,
    configuration,
    hook,
    mutating,
    patch_of,
    validating,
    webhook_dependencies,
    webhook_source,
)
from tests.tenant_objects import attributes, tenant

_BROKEN = CallFailed("failed to call webhook: connection refused")
_LABEL = {"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}
_MUTATION = "mutation.webhook.admission.k8s.io/"


def create() -> Attributes:
    return attributes("CREATE", tenant("a"))


async def rejection(plugin: ValidatingWebhooks | MutatingWebhooks, request: Attributes | None = None) -> StatusError:
    run = plugin.validate if isinstance(plugin, ValidatingWebhooks) else plugin.admit
    with pytest.raises(StatusError) as caught:
        await run(request or create())
    return caught.value


async def test_without_webhooks_no_call_is_made() -> None:
    caller, request = allowing(), create()
    await validating(caller).validate(request)
    assert await mutating(caller).admit(request) is request.object
    assert caller.calls == []


@pytest.mark.parametrize("kind", ["ValidatingWebhookConfiguration", "ValidatingAdmissionPolicy"])
def test_webhooks_do_not_apply_to_admission_configurations(kind: str) -> None:
    request = create()
    resource = dataclasses.replace(request.resource, group="admissionregistration.k8s.io", kind=kind)
    for plugin in (validating(allowing()), mutating(allowing())):
        assert not plugin.handles(dataclasses.replace(request, resource=resource))
        assert plugin.handles(request)


async def test_a_failed_call_rejects_the_request() -> None:
    for make in (validating, mutating):
        error = await rejection(make(StubCaller({"a.b.c": _BROKEN}), hook("a.b.c")))
        why = 'failed calling webhook "a.b.c": failed to call webhook: connection refused'
        assert (error.code, error.reason) == (500, "InternalError")
        assert error.message == f"Internal error occurred: {why}"
        assert error.causes == [{"message": why}]


async def test_an_ignored_failure_is_recorded_in_the_audit_annotations() -> None:
    ignored = hook("a.b.c", failurePolicy="Ignore")
    request = create()
    await validating(StubCaller({"a.b.c": _BROKEN}), hook("no.b.c", rules=[]), ignored).validate(request)
    open_ = "failed-open.validating.webhook.admission.k8s.io/round_0_index_0"
    assert request.context.annotations == {open_: "a.b.c"}
    request = create()
    await mutating(StubCaller({"a.b.c": _BROKEN}), hook("no.b.c", rules=[]), ignored).admit(request)
    assert request.context.annotations == {
        f"{_MUTATION}round_0_index_1": '{"configuration":"c","webhook":"a.b.c","mutated":false}',
        f"failed-open.{_MUTATION}round_0_index_1": "a.b.c",
    }


async def test_failure_policy_ignore_does_not_apply_to_denials() -> None:
    for make in (validating, mutating):
        error = await rejection(make(StubCaller({"a.b.c": DENIED}), hook("a.b.c", failurePolicy="Ignore")))
        assert error.message == 'admission webhook "a.b.c" denied the request: no'


async def test_all_validating_webhooks_are_called_and_the_first_denial_in_order_is_reported() -> None:
    names = ["a.b.c", "d.b.c", "e.b.c"]
    denied_first = {"allowed": False, "status": {"message": "first"}, "warnings": ["w"], "auditAnnotations": {"k": "v"}}
    caller = StubCaller({"a.b.c": ALLOWED, "d.b.c": denied_first, "e.b.c": {**DENIED, "warnings": ["x"]}})
    request = create()
    error = await rejection(validating(caller, *map(hook, names)), request)
    assert error.message == 'admission webhook "d.b.c" denied the request: first'
    assert sorted(caller.names) == names
    assert request.context.warnings == ["w", "x"]
    assert request.context.annotations == {"d.b.c/k": "v"}


async def test_mutating_webhooks_see_earlier_mutations_and_stop_at_the_first_denial() -> None:
    names = ["a.b.c", "d.b.c", "e.b.c"]
    caller = StubCaller({"a.b.c": patch_of(_LABEL), "d.b.c": DENIED, "e.b.c": ALLOWED})
    await rejection(mutating(caller, *map(hook, names)))
    assert caller.names == names[:2]
    assert caller.calls[1][1]["request"]["object"]["metadata"]["labels"] == {"a": "b"}


async def test_an_earlier_mutation_can_make_a_later_webhook_match() -> None:
    selected = hook("d.b.c", objectSelector={"matchLabels": {"a": "b"}})
    caller = StubCaller({"a.b.c": patch_of(_LABEL), "d.b.c": ALLOWED})
    await mutating(caller, hook("a.b.c"), selected).admit(create())
    assert caller.names == ["a.b.c", "d.b.c"]


async def test_mutations_are_recorded_in_the_audit_annotations() -> None:
    request, caller = create(), StubCaller({"a.b.c": ALLOWED, "d.b.c": patch_of(_LABEL)})
    admitted = await mutating(caller, hook("a.b.c", reinvocationPolicy="IfNeeded"), hook("d.b.c")).admit(request)
    assert admitted is not None
    assert admitted["metadata"]["labels"] == {"a": "b"}
    assert request.object is not None
    assert "labels" not in request.object["metadata"]
    assert {key: json.loads(value)["mutated"] for key, value in request.context.annotations.items()} == {
        f"{_MUTATION}round_0_index_0": False,
        f"{_MUTATION}round_0_index_1": True,
        f"{_MUTATION}round_1_index_0": False,
    }
    assert caller.names == ["a.b.c", "d.b.c", "a.b.c"]


async def test_a_patch_that_changes_nothing_is_not_a_mutation() -> None:
    defaulted = tenant("a")
    apply_defaults(object_schema(create().resource), defaulted)
    request = attributes("CREATE", defaulted)
    caller = StubCaller({"a.b.c": patch_of({"op": "test", "path": "/kind", "value": "Tenant"})})
    await mutating(caller, hook("a.b.c", reinvocationPolicy="IfNeeded")).admit(request)
    assert [json.loads(each)["mutated"] for each in request.context.annotations.values()] == [False]


async def test_mutating_webhooks_are_called_first_for_a_deletion() -> None:
    log: list[str] = []

    class Validator:
        name = "validator"

        def handles(self, attributes: Attributes) -> bool:
            return True

        async def validate(self, attributes: Attributes) -> None:
            log.append("validate")

    def respond(request: Mapping[str, Any]) -> Mapping[str, Any]:
        log.append(request["operation"])
        return ALLOWED

    caller = StubCaller({"a.b.c": respond, "d.b.c": ALLOWED})
    chain = Chain((Validator(), mutating(caller, hook("a.b.c")), validating(caller, hook("d.b.c"))))
    async with chain.validating(attributes("DELETE", old=tenant("a"))):
        log.append("write")
    assert log == ["DELETE", "validate", "write"]
    assert caller.names == ["a.b.c", "d.b.c"]


@pytest.mark.parametrize(
    ("effects", "code", "message"),
    [
        ("None", 0, ""),
        ("NoneOnDryRun", 0, ""),
        ("Some", 400, 'admission webhook "a.b.c" does not support dry run'),
        ("Unknown", 400, 'admission webhook "a.b.c" does not support dry run'),
        (None, 500, 'Internal error occurred: failed calling webhook "a.b.c": Webhook SideEffects is nil'),
    ],
)
async def test_a_dry_run_calls_only_webhooks_without_side_effects(effects: str | None, code: int, message: str) -> None:
    request = dataclasses.replace(create(), dry_run=True)
    for make in (validating, mutating):
        caller = allowing("a.b.c")
        plugin = make(caller, hook("a.b.c", sideEffects=effects))
        if not code:
            await (plugin.validate if isinstance(plugin, ValidatingWebhooks) else plugin.admit)(request)
            assert caller.names == ["a.b.c"]
            continue
        error = await rejection(plugin, request)
        assert (error.code, error.message, caller.names) == (code, message, [])


async def test_a_call_gets_the_timeout_of_the_webhook_and_the_time_left_to_the_request() -> None:
    caller, request = allowing("a.b.c"), create()
    request.context.timeout = 5.0
    request.context.received_at = time.monotonic() - 1
    await validating(caller, hook("a.b.c", timeoutSeconds=7)).validate(request)
    [(seconds, remaining)] = caller.seconds
    assert seconds == 7
    assert 3.0 < remaining <= 4.0


async def test_authorizer_checks_are_for_the_user_of_the_request() -> None:
    condition = {"name": "c", "expression": "authorizer.requestResource.check('rule').allowed()"}
    authorizer, caller = StubAuthorizer("rule"), allowing("a.b.c")
    await validating(caller, hook("a.b.c", matchConditions=[condition]), authorizer=authorizer).validate(create())
    assert caller.names == ["a.b.c"]
    [access] = authorizer.checks
    assert (access.user.name, access.resource, access.name) == ("alice", "tenants", "a")


@pytest.mark.parametrize("failure_policy", ["Fail", "Ignore"])
async def test_a_match_condition_that_takes_too_long_rejects_the_request(failure_policy: str) -> None:
    endless = "lists.range(9000).all(a, lists.range(9000).all(b, lists.range(9000).all(c, a + b + c >= 0)))"
    conditions = [{"name": "slow", "expression": endless}]
    plugin = validating(allowing(), hook("a.b.c", matchConditions=conditions, failurePolicy=failure_policy))
    error = await rejection(plugin)
    assert error.code == 500
    assert error.message.endswith(
        'the matchConditions of webhook "a.b.c" could not be evaluated: it takes more than 1 s of CPU time'
    )


async def test_an_invalid_selector_rejects_the_request() -> None:
    invalid_selector = {"matchExpressions": [{"key": "a", "operator": "Like"}]}
    assert (await rejection(validating(allowing(), hook(namespaceSelector=invalid_selector)))).code == 500


async def test_a_missing_namespace_fails_with_404() -> None:
    request = attributes("CREATE", tenant("a", "gone"))
    error = await rejection(validating(allowing(), hook(namespaceSelector={"matchLabels": {"a": "b"}})), request)
    assert (error.code, error.message) == (404, 'namespaces "gone" not found')


async def test_audit_annotations_with_invalid_keys_are_dropped() -> None:
    request = create()
    caller = StubCaller({"a.b.c": {"allowed": True, "auditAnnotations": {"x/y": "1", " ": "2", "ok": "3"}}})
    await validating(caller, hook("a.b.c"), hook("a.b.c")).validate(request)
    assert request.context.annotations == {"a.b.c/ok": "3"}


async def test_the_time_spent_in_webhooks_is_added_up() -> None:
    request = create()
    await validating(allowing("a.b.c"), hook("a.b.c")).validate(request)
    once = request.context.webhook_seconds
    assert once > 0
    await mutating(allowing("a.b.c"), hook("a.b.c")).admit(request)
    assert request.context.webhook_seconds > once


async def test_calls_and_rejections_are_counted() -> None:
    registry = CollectorRegistry()
    names = ["ok.b.c", "no.b.c", "down.b.c", "ignored.b.c"]
    caller = StubCaller({"ok.b.c": ALLOWED, "no.b.c": DENIED, "down.b.c": _BROKEN, "ignored.b.c": _BROKEN})
    hooks = [hook(name, failurePolicy="Ignore" if name.startswith("ignored") else "Fail") for name in names]
    await rejection(validating(caller, *hooks, registry=registry))
    lines = set(generate_latest(registry).decode().splitlines())

    def counted(family: str, name: str, **labels: str) -> bool:
        about: dict[str, Any] = {"name": name, "type": "validating", **labels}
        text = ",".join(f'{key}="{value}"' for key, value in sorted(about.items()))
        return f"apiserver_admission_webhook_{family}{{{text}}} 1.0" in lines

    create_ = {"operation": "CREATE"}
    assert counted("request_total", "ok.b.c", code="200", rejected="false", **create_)
    assert counted("request_total", "no.b.c", code="400", rejected="true", **create_)
    assert counted("request_total", "down.b.c", code="503", rejected="true", **create_)
    assert counted("request_total", "ignored.b.c", code="503", rejected="false", **create_)
    assert counted("admission_duration_seconds_count", "ok.b.c", rejected="false", **create_)
    assert counted("rejection_count", "no.b.c", error_type="no_error", rejection_code="400", **create_)
    assert counted("rejection_count", "down.b.c", error_type="calling_webhook_error", rejection_code="503", **create_)
    assert counted("fail_open_count", "ignored.b.c")


async def test_a_webhook_without_rules_is_never_called_but_counts_for_the_index() -> None:
    caller, request = allowing("b.b.c"), create()
    without_rules = hook("a.b.c", rules=None)
    await MutatingWebhooks(
        webhook_source(configuration(without_rules, hook("b.b.c"))), webhook_dependencies(caller)
    ).admit(request)
    assert caller.names == ["b.b.c"]
    assert list(request.context.annotations) == [f"{_MUTATION}round_0_index_1"]
