"""ValidatingAdmissionPolicies of the host, judged for every write (H13 to H25)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from admission.cel.authorization import authorizer_variable, check_function
from admission.cel.environment import flattened
from admission.namespaces import NamespaceSource
from admission.policy.asking import Asking
from admission.policy.evaluation import Result, evaluate_policy
from admission.policy.facts import Binding, Policy
from admission.policy.held import HeldPolicies, Hook
from admission.policy.matching import Match, Target, is_namespace, own_namespace_labels, request_namespace
from admission.policy.params import ConfigurationError, ParamSource, UnknownParamKind, find_params
from admission.policy.report import Report
from admission.policy.requests import namespace_variable, object_as, request_variable
from apiserver import errors
from apiserver.admission import Attributes
from apiserver.authorization import Authorizer
from apiserver.errors import StatusError
from apiserver.resource import GroupResource, Object, Resource

Equivalents = Callable[[Resource], Sequence[Target]]
"""The resource and, behind it, the other versions in which its objects are served."""

_NAMESPACES = GroupResource("", "namespaces")
# Policies that could refuse the removal of themselves could not be removed; and a review changes nothing.
_EXEMPT_GROUPS = frozenset(("admissionregistration.k8s.io", "authentication.k8s.io", "authorization.k8s.io"))
_REQUEST_SECONDS = 34.0


def target_of(resource: Resource) -> Target:
    return Target(resource.group, resource.version, resource.plural, resource.kind)


def single_version(resource: Resource) -> Sequence[Target]:
    """Equivalents of resources that are served in one version each."""
    return (target_of(resource),)


@dataclass
class _Looked:
    """What one request needs of its namespace and in which forms it was asked for, looked up once."""

    attributes: Attributes
    namespaces: NamespaceSource
    equivalents: Sequence[Target]
    _namespace: Object | StatusError | None = None
    _values: dict[Target, Mapping[str, Any]] = field(default_factory=dict)

    async def namespace(self) -> Object | None:
        """None for what is in none. Raises NotFound, and what the host raises."""
        name = request_namespace(self.attributes)
        if not name:
            return None
        if self._namespace is None:
            found = self.namespaces.get(name)
            self._namespace = found if found is not None else await self._live(name)
        if isinstance(self._namespace, StatusError):
            raise self._namespace
        return self._namespace

    async def _live(self, name: str) -> Object | StatusError:
        try:
            return await self.namespaces.live(name) or errors.NotFound(_NAMESPACES, name)
        except StatusError as error:
            return error

    async def matches(self, match: Match) -> Target | None:
        """Raises ConfigurationError where the request would be matched and the namespace cannot be had."""
        if match.error:
            raise ConfigurationError(match.error)
        target = match.target(self.attributes, self.equivalents)
        if target is None or match.namespaces.empty:
            return target
        if not request_namespace(self.attributes) and not is_namespace(self.attributes):
            return target
        labels = own_namespace_labels(self.attributes)
        if labels is None:
            try:
                namespace = await self.namespace()
            except StatusError as error:
                raise ConfigurationError(error.message) from error
            labels = ((namespace or {}).get("metadata") or {}).get("labels") or {}
        return target if match.namespaces.matches(labels) else None

    async def values(self, target: Target) -> Mapping[str, Any]:
        """The variables of all expressions that the request is judged by, as this resource."""
        if target not in self._values:
            attributes = self.attributes
            namespace = None if is_namespace(attributes) else await self.namespace()
            self._values[target] = flattened(
                {
                    "object": object_as(attributes.object, target),
                    "oldObject": object_as(attributes.old_object, target),
                    "request": request_variable(attributes, self.equivalents[0], target),
                    "namespaceObject": namespace_variable(namespace),
                    "authorizer": authorizer_variable(attributes),
                }
            )
        return self._values[target]


class ValidatingPolicies:
    """A Validating plugin: behind the built-in ones, before webhooks."""

    name = "ValidatingAdmissionPolicy"

    def __init__(
        self,
        *,
        held: HeldPolicies,
        params: ParamSource,
        namespaces: NamespaceSource,
        authorizer: Authorizer,
        equivalents: Equivalents = single_version,
    ) -> None:
        self._held = held
        self._params = params
        self._namespaces = namespaces
        self._authorizer = authorizer
        self._equivalents = equivalents

    def handles(self, attributes: Attributes) -> bool:
        return attributes.resource.group not in _EXEMPT_GROUPS

    async def validate(self, attributes: Attributes) -> None:
        """Raises ServiceUnavailable while it is not known which policies there are: none are waved through."""
        if not self._held.synced:
            raise errors.ServiceUnavailable("admission policies are not yet synced", retry_after=1)
        hooks = self._held.hooks
        if not hooks:
            return
        looked = _Looked(attributes, self._namespaces, self._equivalents(attributes.resource))
        report = Report(attributes)
        for hook in hooks:
            await self._judge(hook, looked, report)
        report.publish()

    async def _judge(self, hook: Hook, looked: _Looked, report: Report) -> None:
        policy = hook.policy
        try:
            target = await looked.matches(policy.match)
        except ConfigurationError as error:
            report.misconfigured(policy, None, str(error))
            return
        if target is None:
            return
        for binding in hook.bindings:
            try:
                if await looked.matches(binding.match) is None:
                    continue
                params = await self._find(policy, binding, looked)
            except UnknownParamKind as error:
                report.misconfigured(policy, None, str(error))
                return
            except ConfigurationError as error:
                report.misconfigured(policy, binding, str(error))
                continue
            if params:
                report.add(policy, binding, await self._results(policy, params, await looked.values(target), looked))

    async def _find(self, policy: Policy, binding: Binding, looked: _Looked) -> Sequence[Object | None]:
        if policy.param_kind is None:
            return (None,)
        namespace = request_namespace(looked.attributes)
        return await find_params(self._params, policy.param_kind, binding.param_ref, namespace)

    async def _results(
        self, policy: Policy, params: Sequence[Object | None], values: Mapping[str, Any], looked: _Looked
    ) -> list[Result]:
        given = [{**values, "params": each} if policy.param_kind is not None else values for each in params]
        if not policy.authorizes:
            return [evaluate_policy(policy, each) for each in given]
        context = looked.attributes.context
        asking = Asking(self._authorizer, end=context.received + _REQUEST_SECONDS)
        check = check_function(looked.attributes.user, asking.ask)
        try:
            return [await asyncio.to_thread(partial(evaluate_policy, policy, each, check=check)) for each in given]
        finally:
            asking.give_up()
