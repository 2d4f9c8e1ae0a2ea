"""The params of a policy: the objects that its bindings name or select."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.meta.resource import Object
from tests.admission.policy.policy_objects import (
    DENIAL_PREFIX,
    StubParams,
    binding,
    create,
    plugin,
    policy,
    rejection,
)


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
        assert (await rejection(policies_plugin, create(host="x"))).message == DENIAL_PREFIX + message


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
