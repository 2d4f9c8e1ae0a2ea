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
from tests.admission.policy.policy_objects import Verdicts
from tests.admission.webhook.webhook_objects import (
    ALLOWED,
    DENIED,
    Caller,
    allowing,
    configuration,
    held,
    hook,
    mutating,
    patch_of,
    validating,
    webhook_dependencies,
)
from tests.tenant_objects import attributes, tenant

_BROKEN = CallFailed("failed to call webhook: nobody there")
_LABEL = {"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}
_MUTATION = "mutation.webhook.admission.k8s.io/"


def create() -> Attributes:
    return attributes("CREATE", tenant("a"))


async def refusal(plugin: ValidatingWebhooks | MutatingWebhooks, request: Attributes | None = None) -> StatusError:
    judge = plugin.validate if isinstance(plugin, ValidatingWebhooks) else plugin.admit
    with pytest.raises(StatusError) as caught:
        await judge(request or create())
    return caught.value


@pytest.mark.parametrize("plugin", [ValidatingWebhooks, MutatingWebhooks])
async def test_nothing_is_waved_through_before_the_webhooks_are_known(
    plugin: type[ValidatingWebhooks] | type[MutatingWebhooks],
) -> None:
    refused = await refusal(plugin(held(synced=False), webhook_dependencies(allowing())))
    assert (refused.code, refused.retry_after) == (503, 1)


async def test_without_webhooks_nobody_is_asked() -> None:
    caller, request = allowing(), create()
    await validating(caller).validate(request)
    assert await mutating(caller).admit(request) is request.object
    assert caller.asked == []


@pytest.mark.parametrize("kind", ["ValidatingWebhookConfiguration", "ValidatingAdmissionPolicy"])
def test_nobody_has_a_say_in_admission_itself(kind: str) -> None:
    request = create()
    resource = dataclasses.replace(request.resource, group="admissionregistration.k8s.io", kind=kind)
    for plugin in (validating(allowing()), mutating(allowing())):
        assert not plugin.handles(dataclasses.replace(request, resource=resource))
        assert plugin.handles(request)


async def test_a_call_that_fails_refuses() -> None:
    for make in (validating, mutating):
        refused = await refusal(make(Caller({"a.b.c": _BROKEN}), hook("a.b.c")))
        why = 'failed calling webhook "a.b.c": failed to call webhook: nobody there'
        assert (refused.code, refused.reason) == (500, "InternalError")
        assert refused.message == f"Internal error occurred: {why}"
        assert refused.causes == [{"message": why}]


async def test_or_is_passed_over_and_noted() -> None:
    ignored = hook("a.b.c", failurePolicy="Ignore")
    request = create()
    await validating(Caller({"a.b.c": _BROKEN}), hook("no.b.c", rules=[]), ignored).validate(request)
    open_ = "failed-open.validating.webhook.admission.k8s.io/round_0_index_0"
    assert request.context.annotations == {open_: "a.b.c"}
    request = create()
    await mutating(Caller({"a.b.c": _BROKEN}), hook("no.b.c", rules=[]), ignored).admit(request)
    assert request.context.annotations == {
        f"{_MUTATION}round_0_index_1": '{"configuration":"c","webhook":"a.b.c","mutated":false}',
        f"failed-open.{_MUTATION}round_0_index_1": "a.b.c",
    }


async def test_a_failure_is_ignored_and_a_refusal_never() -> None:
    for make in (validating, mutating):
        refused = await refusal(make(Caller({"a.b.c": DENIED}), hook("a.b.c", failurePolicy="Ignore")))
        assert refused.message == 'admission webhook "a.b.c" denied the request: no'


async def test_all_validating_webhooks_are_asked_and_the_first_in_order_is_told() -> None:
    names = ["a.b.c", "d.b.c", "e.b.c"]
    said = {"allowed": False, "status": {"message": "first"}, "warnings": ["w"], "auditAnnotations": {"k": "v"}}
    caller = Caller({"a.b.c": ALLOWED, "d.b.c": said, "e.b.c": {**DENIED, "warnings": ["x"]}})
    request = create()
    refused = await refusal(validating(caller, *map(hook, names)), request)
    assert refused.message == 'admission webhook "d.b.c" denied the request: first'
    assert sorted(caller.names) == names
    assert request.context.warnings == ["w", "x"]
    assert request.context.annotations == {"d.b.c/k": "v"}


async def test_mutating_webhooks_see_what_the_ones_before_them_did_and_end_with_a_refusal() -> None:
    names = ["a.b.c", "d.b.c", "e.b.c"]
    caller = Caller({"a.b.c": patch_of(_LABEL), "d.b.c": DENIED, "e.b.c": ALLOWED})
    await refusal(mutating(caller, *map(hook, names)))
    assert caller.names == names[:2]
    assert caller.asked[1][1]["request"]["object"]["metadata"]["labels"] == {"a": "b"}


async def test_an_earlier_mutation_can_make_a_later_webhook_match() -> None:
    selected = hook("d.b.c", objectSelector={"matchLabels": {"a": "b"}})
    caller = Caller({"a.b.c": patch_of(_LABEL), "d.b.c": ALLOWED})
    await mutating(caller, hook("a.b.c"), selected).admit(create())
    assert caller.names == ["a.b.c", "d.b.c"]


async def test_mutations_are_noted() -> None:
    request, caller = create(), Caller({"a.b.c": ALLOWED, "d.b.c": patch_of(_LABEL)})
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


async def test_a_patch_that_changes_nothing_is_no_mutation() -> None:
    given = tenant("a")
    apply_defaults(object_schema(create().resource), given)
    request = attributes("CREATE", given)
    caller = Caller({"a.b.c": patch_of({"op": "test", "path": "/kind", "value": "Tenant"})})
    await mutating(caller, hook("a.b.c", reinvocationPolicy="IfNeeded")).admit(request)
    assert [json.loads(each)["mutated"] for each in request.context.annotations.values()] == [False]


async def test_a_deletion_passes_mutating_webhooks_first() -> None:
    log: list[str] = []

    class Judge:
        name = "judge"

        def handles(self, attributes: Attributes) -> bool:
            return True

        async def validate(self, attributes: Attributes) -> None:
            log.append("judge")

    def respond(request: Mapping[str, Any]) -> Mapping[str, Any]:
        log.append(request["operation"])
        return ALLOWED

    caller = Caller({"a.b.c": respond, "d.b.c": ALLOWED})
    chain = Chain((Judge(), mutating(caller, hook("a.b.c")), validating(caller, hook("d.b.c"))))
    async with chain.validating(attributes("DELETE", old=tenant("a"))):
        log.append("write")
    assert log == ["DELETE", "judge", "write"]
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
async def test_dry_runs_are_for_webhooks_without_side_effects(effects: str | None, code: int, message: str) -> None:
    request = dataclasses.replace(create(), dry_run=True)
    for make in (validating, mutating):
        caller = allowing("a.b.c")
        plugin = make(caller, hook("a.b.c", sideEffects=effects))
        if not code:
            await (plugin.validate if isinstance(plugin, ValidatingWebhooks) else plugin.admit)(request)
            assert caller.names == ["a.b.c"]
            continue
        refused = await refusal(plugin, request)
        assert (refused.code, refused.message, caller.names) == (code, message, [])


async def test_the_webhook_s_time_and_the_request_s_are_told() -> None:
    caller, request = allowing("a.b.c"), create()
    request.context.timeout = 5.0
    request.context.received_at = time.monotonic() - 1
    await validating(caller, hook("a.b.c", timeoutSeconds=7)).validate(request)
    [(seconds, remaining)] = caller.seconds
    assert seconds == 7
    assert 3.0 < remaining <= 4.0


async def test_the_authorizer_is_asked_for_the_user_of_the_request() -> None:
    condition = {"name": "c", "expression": "authorizer.requestResource.check('rule').allowed()"}
    authorizer, caller = Verdicts("rule"), allowing("a.b.c")
    await validating(caller, hook("a.b.c", matchConditions=[condition]), authorizer=authorizer).validate(create())
    assert caller.names == ["a.b.c"]
    [asked] = authorizer.asked
    assert (asked.user.name, asked.resource, asked.name) == ("alice", "tenants", "a")


async def test_a_condition_that_takes_long_runs_out_of_budget() -> None:
    slow = [{"name": f"c{n}", "expression": "lists.range(8000).map(x, string(x)).size() == 8000"} for n in range(3)]
    refused = await refusal(validating(allowing(), hook(matchConditions=slow)))
    assert refused.code == 403
    assert refused.message.endswith("running out of cost budget, no further validation rules will be run")


async def test_a_selector_that_is_none_refuses() -> None:
    odd = {"matchExpressions": [{"key": "a", "operator": "Like"}]}
    assert (await refusal(validating(allowing(), hook(namespaceSelector=odd)))).code == 500


async def test_a_namespace_that_is_missing_is_not_found() -> None:
    request = attributes("CREATE", tenant("a", "gone"))
    refused = await refusal(validating(allowing(), hook(namespaceSelector={"matchLabels": {"a": "b"}})), request)
    assert (refused.code, refused.message) == (404, 'namespaces "gone" not found')


async def test_annotations_have_keys_that_audit_takes() -> None:
    request = create()
    caller = Caller({"a.b.c": {"allowed": True, "auditAnnotations": {"x/y": "1", " ": "2", "ok": "3"}}})
    await validating(caller, hook("a.b.c"), hook("a.b.c")).validate(request)
    assert request.context.annotations == {"a.b.c/ok": "3"}


async def test_what_webhooks_take_is_known() -> None:
    request = create()
    await validating(allowing("a.b.c"), hook("a.b.c")).validate(request)
    once = request.context.webhook_seconds
    assert once > 0
    await mutating(allowing("a.b.c"), hook("a.b.c")).admit(request)
    assert request.context.webhook_seconds > once


async def test_calls_are_counted() -> None:
    registry = CollectorRegistry()
    names = ["ok.b.c", "no.b.c", "down.b.c", "ignored.b.c"]
    caller = Caller({"ok.b.c": ALLOWED, "no.b.c": DENIED, "down.b.c": _BROKEN, "ignored.b.c": _BROKEN})
    hooks = [hook(name, failurePolicy="Ignore" if name.startswith("ignored") else "Fail") for name in names]
    await refusal(validating(caller, *hooks, registry=registry))
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


async def test_a_webhook_without_rules_is_never_asked_and_keeps_its_place() -> None:
    caller, request = allowing("b.b.c"), create()
    nobody = hook("a.b.c", rules=None)
    await MutatingWebhooks(held(configuration(nobody, hook("b.b.c"))), webhook_dependencies(caller)).admit(request)
    assert caller.names == ["b.b.c"]
    assert list(request.context.annotations) == [f"{_MUTATION}round_0_index_1"]
