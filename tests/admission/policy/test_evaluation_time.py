"""Evaluations that wait for an authorizer or take long block no other request, and let no write pass."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from apiserver.meta.errors import StatusError
from tests.admission.policy.policy_objects import (
    StubAuthorizer,
    binding,
    create,
    plugin,
    policy,
    rejection,
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
