"""ValidatingAdmissionPolicies of the host, judged for every write (WIRE-H13 to WIRE-H25)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from admission.cel.authorizer_bridge import Asking
from admission.cel.library.authz import check_function
from admission.matching.match_rules import Equivalents, Match, Target, request_namespace, single_version
from admission.matching.request_match import Lookup
from admission.namespace_source import NamespaceSource
from admission.policy.compiled_policy import Binding, Policy
from admission.policy.denial_report import Report
from admission.policy.params import ConfigurationError, ParamSource, UnknownParamKind, find_params
from admission.policy.policy_source import HeldPolicies, Hook
from admission.policy.validator import Result, evaluate_policy
from apiserver.admission import Attributes
from apiserver.authorization.authorizer import Authorizer
from apiserver.meta import errors
from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Object

# Policies that could refuse the removal of themselves could not be removed; and a review changes nothing.
_EXEMPT_GROUPS = frozenset(("admissionregistration.k8s.io", "authentication.k8s.io", "authorization.k8s.io"))


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
        lookup = Lookup(attributes, self._namespaces, self._equivalents(attributes.resource))
        report = Report(attributes)
        for hook in hooks:
            await self._judge(hook, lookup, report)
        report.publish()

    async def _judge(self, hook: Hook, lookup: Lookup, report: Report) -> None:
        policy = hook.policy
        try:
            target = await _target(lookup, policy.match)
        except ConfigurationError as error:
            report.misconfigured(policy, None, str(error))
            return
        if target is None:
            return
        for binding in hook.bindings:
            try:
                if await _target(lookup, binding.match) is None:
                    continue
                params = await self._find(policy, binding, lookup)
            except UnknownParamKind as error:
                report.misconfigured(policy, None, str(error))
                return
            except ConfigurationError as error:
                report.misconfigured(policy, binding, str(error))
                continue
            if params:
                report.add(policy, binding, await self._results(policy, params, await lookup.values(target), lookup))

    async def _find(self, policy: Policy, binding: Binding, lookup: Lookup) -> Sequence[Object | None]:
        if policy.param_kind is None:
            return (None,)
        namespace = request_namespace(lookup.attributes)
        return await find_params(self._params, policy.param_kind, binding.param_ref, namespace)

    async def _results(
        self, policy: Policy, params: Sequence[Object | None], values: Mapping[str, Any], lookup: Lookup
    ) -> list[Result]:
        given = [{**values, "params": each} if policy.param_kind is not None else values for each in params]
        if not policy.authorizes:
            return [evaluate_policy(policy, each) for each in given]
        asking = Asking(self._authorizer, end=lookup.attributes.context.deadline)
        check = check_function(lookup.attributes.user, asking.ask)
        try:
            return [await asyncio.to_thread(partial(evaluate_policy, policy, each, check=check)) for each in given]
        finally:
            asking.give_up()


async def _target(lookup: Lookup, match: Match) -> Target | None:
    """Raises ConfigurationError where the request would be matched and the namespace cannot be had."""
    if match.error:
        raise ConfigurationError(match.error)
    try:
        return await lookup.target(match)
    except StatusError as error:
        raise ConfigurationError(error.message) from error
