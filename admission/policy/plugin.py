"""Evaluates the cluster's ValidatingAdmissionPolicies for every write (WIRE-H13 to WIRE-H25)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from admission.cel.authorizer_bridge import AuthorizerBridge
from admission.cel.budget import CutOff
from admission.cel.evaluation import EvaluationOptions
from admission.cel.evaluation_threads import EvaluationThreads
from admission.cel.library.authz import check_function
from admission.matching.match_rules import EquivalentResources, MatchCriteria, Target, request_namespace, single_version
from admission.matching.request_match import RequestMatcher
from admission.namespace_source import NamespaceSource
from admission.policy.compiled_policy import CompiledPolicy, PolicyBinding
from admission.policy.denial_report import DenialReport
from admission.policy.params import ConfigurationError, ParamSource, UnknownParamKind, find_params
from admission.policy.policy_source import BoundPolicy, PolicySource
from admission.policy.validator import PolicyResult, evaluate_policy
from apiserver.admission import Attributes
from apiserver.authorization.authorizer import Authorizer
from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Object

# A policy could reject its own deletion, and reviews change nothing.
_EXEMPT_GROUPS = frozenset(("admissionregistration.k8s.io", "authentication.k8s.io", "authorization.k8s.io"))


class ValidatingPolicies:
    """A validating plugin that runs after the built-in ones and before webhooks."""

    name = "ValidatingAdmissionPolicy"

    def __init__(
        self,
        *,
        source: PolicySource,
        params: ParamSource,
        namespaces: NamespaceSource,
        authorizer: Authorizer,
        equivalents: EquivalentResources = single_version,
        threads: EvaluationThreads | None = None,
    ) -> None:
        self._source = source
        self._params = params
        self._namespaces = namespaces
        self._authorizer = authorizer
        self._equivalents = equivalents
        self._threads = threads or EvaluationThreads()

    def handles(self, attributes: Attributes) -> bool:
        return attributes.resource.group not in _EXEMPT_GROUPS

    async def validate(self, attributes: Attributes) -> None:
        equivalents = self._equivalents(attributes.resource)
        applicable = self._source.applicable(attributes, equivalents)
        if not applicable:
            return
        matcher = RequestMatcher(attributes, self._namespaces, equivalents)
        report = DenialReport(attributes)
        for bound in applicable:
            await self._evaluate(bound, matcher, report)
        report.publish()

    async def _evaluate(self, bound: BoundPolicy, matcher: RequestMatcher, report: DenialReport) -> None:
        policy = bound.policy
        try:
            target = await _matching_target(matcher, policy.match)
        except ConfigurationError as error:
            report.add_configuration_error(policy, None, str(error))
            return
        if target is None:
            return
        for binding in bound.bindings:
            try:
                if await _matching_target(matcher, binding.match) is None:
                    continue
                params = await self._find_params(policy, binding, matcher)
            except UnknownParamKind as error:
                report.add_configuration_error(policy, None, str(error))
                return
            except ConfigurationError as error:
                report.add_configuration_error(policy, binding, str(error))
                continue
            if params:
                try:
                    report.add(policy, binding, await self._evaluate_params(policy, params, target, matcher))
                except CutOff as limit:
                    report.add_cut_off(policy, binding, str(limit))

    async def _find_params(
        self, policy: CompiledPolicy, binding: PolicyBinding, matcher: RequestMatcher
    ) -> Sequence[Object | None]:
        if policy.param_kind is None:
            return (None,)
        namespace = request_namespace(matcher.attributes)
        return await find_params(self._params, policy.param_kind, binding.param_ref, namespace)

    async def _evaluate_params(
        self, policy: CompiledPolicy, params: Sequence[Object | None], target: Target, matcher: RequestMatcher
    ) -> list[PolicyResult]:
        """Raises CutOff, and StatusError."""
        if not policy.reads_authorizer:
            options = EvaluationOptions()
            return [await self._evaluate_param(policy, each, target, matcher, options) for each in params]
        bridge = AuthorizerBridge(self._authorizer, deadline=matcher.attributes.context.deadline)
        check = check_function(matcher.attributes.user, bridge.authorize)
        options = EvaluationOptions(check=check)
        try:
            return [await self._evaluate_param(policy, each, target, matcher, options) for each in params]
        finally:
            bridge.cancel()

    async def _evaluate_param(
        self,
        policy: CompiledPolicy,
        param: Object | None,
        target: Target,
        matcher: RequestMatcher,
        options: EvaluationOptions,
    ) -> PolicyResult:
        values, read = await matcher.variables(target), matcher.input
        if policy.param_kind is not None:
            values, read = {**values, "params": param}, read.including(param)
        work = partial(evaluate_policy, policy, values)
        return await self._threads.evaluate(work, options, shape=policy.expressions.shape, values=read)


async def _matching_target(matcher: RequestMatcher, match: MatchCriteria) -> Target | None:
    """The equivalent resource that the criteria match, or None. Raises ConfigurationError if the criteria are invalid
    or the namespace that they need cannot be read."""
    if match.error:
        raise ConfigurationError(match.error)
    try:
        return await matcher.target(match)
    except StatusError as error:
        raise ConfigurationError(error.message) from error
