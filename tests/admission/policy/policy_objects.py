"""Policies, bindings and a plugin over in-memory values, for tests."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import pytest

from admission.policy.compiled_policy import ParamKind
from admission.policy.params import ParamObjects, UnknownParamKind
from admission.policy.plugin import ValidatingPolicies
from admission.policy.policy_source import PolicySource
from apiserver.admission import Attributes
from apiserver.authorization.authorizer import AccessAttributes, Authorizer, Decision
from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Object
from tests.run_coroutine import run_coroutine
from tests.tenant_objects import attributes, tenant

DENIAL_PREFIX = (
    "tenants.apps.cozystack.io \"a\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: "
)
RULES: Mapping[str, Any] = {
    "resourceRules": [
        {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["tenants"]},
    ]
}


def policy(*validations: Mapping[str, Any], name: str = "p", **spec: Any) -> Object:
    full_spec = {"matchConstraints": RULES, "validations": list(validations), **spec}
    return {"metadata": {"name": name, "resourceVersion": "1"}, "spec": full_spec}


def binding(name: str = "b", *, policy: str = "p", actions: Sequence[str] = ("Deny",), **spec: Any) -> Object:
    full_spec = {"policyName": policy, "validationActions": list(actions), **spec}
    return {"metadata": {"name": name, "resourceVersion": "1"}, "spec": full_spec}


class StubNamespaces:
    """A NamespaceSource over a dict."""

    def __init__(self, *namespaces: Object) -> None:
        self._namespaces = {each["metadata"]["name"]: each for each in namespaces}
        self.live_reads: list[str] = []

    def get(self, name: str) -> Object | None:
        return self._namespaces.get(name)

    async def get_live(self, name: str) -> Object | None:
        self.live_reads.append(name)
        return None


class StubParams:
    """A ParamSource that serves one kind."""

    def __init__(self, kind: str = "", *objects: Object, namespaced: bool = True) -> None:
        self._kind = kind
        self._objects = objects
        self.namespaced = namespaced

    async def objects(self, kind: ParamKind) -> ParamObjects:
        if kind.kind != self._kind:
            raise UnknownParamKind(kind)
        return self

    def items(self, namespace: str) -> Iterable[Object]:
        return [each for each in self._objects if (each["metadata"].get("namespace") or "") == namespace]

    async def get(self, namespace: str, name: str) -> Object | None:
        return next((each for each in self.items(namespace) if each["metadata"]["name"] == name), None)


class StubAuthorizer:
    """An Authorizer that allows one verb after `delay` seconds and records the checks."""

    def __init__(self, verb: str = "", *, delay: float = 0.0) -> None:
        self._verb = verb
        self._delay = delay
        self.checks: list[AccessAttributes] = []

    async def authorize(self, attributes: AccessAttributes) -> Decision:
        self.checks.append(attributes)
        await asyncio.sleep(self._delay)
        return Decision(allowed=attributes.verb == self._verb, reason="because")


ROOT_NAMESPACE: Object = {
    "metadata": {"name": "tenant-root", "labels": {"kind": "tenant"}, "managedFields": []},
    "status": {"phase": "Active"},
}


def policy_source(
    policies: Sequence[Object], bindings: Sequence[Object], groups: Collection[str] | None = None
) -> PolicySource:
    source = PolicySource(groups)
    run_coroutine(source.policies.replace(policies, 1))
    run_coroutine(source.bindings.replace(bindings, 1))
    return source


def plugin(
    policies: Sequence[Object],
    bindings: Sequence[Object],
    *,
    params: StubParams | None = None,
    authorizer: Authorizer | None = None,
    namespaces: StubNamespaces | None = None,
) -> ValidatingPolicies:
    return ValidatingPolicies(
        source=policy_source(policies, bindings),
        params=params or StubParams(),
        namespaces=namespaces or StubNamespaces(ROOT_NAMESPACE),
        authorizer=authorizer or StubAuthorizer(),
    )


def create(**spec: Any) -> Attributes:
    return attributes("CREATE", tenant("a", spec=spec))


async def rejection(policies_plugin: ValidatingPolicies, request: Attributes | None = None) -> StatusError:
    with pytest.raises(StatusError) as caught:
        await policies_plugin.validate(request or create())
    return caught.value


async def denial_message(validation: Mapping[str, Any], **spec: Any) -> str:
    """The message of a denial, without its common prefix."""
    error = await rejection(plugin([policy(validation, **spec)], [binding()]))
    assert error.message.startswith(DENIAL_PREFIX)
    return error.message.removeprefix(DENIAL_PREFIX)
