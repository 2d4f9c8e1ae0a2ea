"""The common part of mutating and validating webhooks: matching, the call, and the failurePolicy."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, TypeVar

import orjson

from admission.cel.authorizer_bridge import AuthorizerBridge
from admission.cel.budget import CutOff
from admission.cel.evaluation import EvaluationOptions, ExpressionEvaluator
from admission.cel.evaluation_threads import EvaluationThreads
from admission.cel.library.authz import check_function
from admission.matching.match_rules import EquivalentResources, Target, single_version
from admission.matching.request_match import RequestMatcher
from admission.namespace_source import NamespaceSource
from admission.webhook.accessor import NO_SIDE_EFFECTS, Webhook, conditions_environment
from admission.webhook.admission_review import (
    AdmissionResponse,
    denial_status,
    first_supported_version,
    make_admission_review,
    parse_admission_response,
)
from admission.webhook.client import WebhookCaller
from admission.webhook.configuration_source import WebhookSource
from admission.webhook.errors import CallFailed, failed_call_error
from admission.webhook.metrics import WebhookMetrics, WebhookType
from apiserver.admission import Attributes
from apiserver.authorization.authorizer import Authorizer
from apiserver.meta import errors
from apiserver.meta.errors import StatusError
from apiserver.meta.label_validation import qualified_name_errors
from apiserver.request.context import RequestContext

# Webhooks are not called for webhook configurations: a broken one could not be repaired (WIRE-H50).
_EXEMPT_GROUP = "admissionregistration.k8s.io"

_LOG = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class WebhookDependencies:
    """The dependencies that both webhook plugins share."""

    caller: WebhookCaller
    namespaces: NamespaceSource
    authorizer: Authorizer
    metrics: WebhookMetrics
    equivalents: EquivalentResources = single_version
    threads: EvaluationThreads = field(default_factory=EvaluationThreads)


@dataclass(frozen=True, slots=True)
class CallOutcome(Generic[T]):
    """The outcome of a call: a `value`, an `error` that rejects the request, or a failure that failurePolicy
    ignores."""

    value: T | None = None
    error: StatusError | None = None
    failed_open: bool = False


class Dispatcher:
    """Matches requests against the webhooks of one type and calls them."""

    def __init__(self, source: WebhookSource, dependencies: WebhookDependencies, *, webhook_type: WebhookType) -> None:
        self.source = source
        self._dependencies = dependencies
        self._webhook_type: WebhookType = webhook_type

    def handles(self, attributes: Attributes) -> bool:
        return attributes.resource.group != _EXEMPT_GROUP

    def matcher(self, attributes: Attributes) -> RequestMatcher:
        dependencies = self._dependencies
        return RequestMatcher(attributes, dependencies.namespaces, dependencies.equivalents(attributes.resource))

    async def target(self, hook: Webhook, matcher: RequestMatcher) -> Target | None:
        """The equivalent resource to send to the webhook, None if the webhook does not match. Raises StatusError."""
        if hook.match is None:
            return None
        if hook.match.error:
            raise errors.InternalError(hook.match.error)
        target = await matcher.target(hook.match)
        if target is None or not hook.conditions:
            return target
        failed = await self._check_conditions(hook, matcher, target)
        if failed is None or (failed and hook.ignores_failures):
            return None
        if failed:
            attributes = matcher.attributes
            raise errors.Forbidden(attributes.resource.group_resource, attributes.name, failed)
        return target

    async def _check_conditions(self, hook: Webhook, matcher: RequestMatcher, target: Target) -> str | None:
        """None if a match condition is false; otherwise the errors of conditions, '' if all hold. Raises InternalError,
        whatever the failurePolicy, if a limit of ours ended the evaluation."""
        values = matcher.variables_without_namespace(target)
        values = {name: values[name] for name in hook.reads if name in values}
        work = partial(_evaluate_conditions, hook, values)
        attributes, bridge, options = matcher.attributes, None, EvaluationOptions()
        if "authorizer" in hook.reads:
            bridge = AuthorizerBridge(self._dependencies.authorizer, deadline=attributes.context.deadline)
            options = EvaluationOptions(check=check_function(attributes.user, bridge.authorize))
        try:
            return await self._dependencies.threads.evaluate(work, options, shape=hook.shape, values=matcher.input)
        except CutOff as limit:
            why = f'the matchConditions of webhook "{hook.name}" could not be evaluated: {limit}'
            raise errors.InternalError(why) from limit
        finally:
            if bridge is not None:
                bridge.cancel()

    async def call(self, hook: Webhook, matcher: RequestMatcher, target: Target) -> AdmissionResponse:
        """Calls the webhook. Raises CallFailed, and BadRequest for a dry run of a webhook with side effects."""
        attributes = matcher.attributes
        if attributes.dry_run and not hook.side_effects:
            raise CallFailed("Webhook SideEffects is nil", code=400)
        if attributes.dry_run and hook.side_effects not in NO_SIDE_EFFECTS:
            raise errors.BadRequest(f'admission webhook "{hook.name}" does not support dry run')
        version, uid = first_supported_version(hook.versions), str(uuid.uuid4())
        review = make_admission_review(attributes, matcher.equivalents[0], target, uid=uid, version=version)
        remaining = attributes.context.deadline - time.monotonic()
        caller, body = self._dependencies.caller, orjson.dumps(review)
        response = await caller.post(hook.endpoint, body, seconds=hook.seconds, remaining=remaining)
        return parse_admission_response(response, uid=uid, version=version, mutating=self._webhook_type == "admit")

    async def apply_failure_policy(
        self, hook: Webhook, attributes: Attributes, work: Coroutine[Any, Any, T]
    ) -> CallOutcome[T]:
        """Awaits `work`, which raises CallFailed, WebhookDenied or StatusError, applies the webhook's failurePolicy and
        records the metrics."""
        started = time.perf_counter()
        record = partial(self._record_call, hook, attributes.operation, lambda: time.perf_counter() - started)
        try:
            value = await work
        except CallFailed as failure:
            if not hook.ignores_failures:
                record(failure.code, rejected=True)
                self._record_rejection(hook, attributes, failure)
                return CallOutcome(error=failed_call_error(hook.name, failure))
            record(failure.code, rejected=False)
            self._dependencies.metrics.record_fail_open(hook.name, self._webhook_type)
            _LOG.warning("failed calling webhook, failing open: %s: %s", hook.name, failure)
            return CallOutcome(failed_open=True)
        except WebhookDenied as denied:
            record(denied.status.code, rejected=True)
            self._record_rejection(hook, attributes, denied)
            return CallOutcome(error=denied.status)
        except StatusError as error:
            record(0, rejected=True)
            self._record_rejection(hook, attributes, error)
            return CallOutcome(error=error)
        record(200, rejected=False)
        return CallOutcome(value)

    def _record_call(
        self, hook: Webhook, operation: str, elapsed: Callable[[], float], code: int, *, rejected: bool
    ) -> None:
        self._dependencies.metrics.record_call(
            hook.name, self._webhook_type, operation, code=code, rejected=rejected, seconds=elapsed()
        )

    def _record_rejection(
        self, hook: Webhook, attributes: Attributes, why: CallFailed | WebhookDenied | StatusError
    ) -> None:
        metrics, labels = self._dependencies.metrics, (hook.name, self._webhook_type, attributes.operation)
        match why:
            case CallFailed():
                metrics.record_rejection(*labels, error="calling_webhook_error", code=why.code)
            case WebhookDenied():
                metrics.record_rejection(*labels, error="no_error", code=why.status.code)
            case _:
                metrics.record_rejection(*labels, error="apiserver_internal_error", code=0)


class WebhookDenied(Exception):
    """A webhook denied the request; `status` is the error for the client."""

    def __init__(self, hook: Webhook, response: AdmissionResponse) -> None:
        super().__init__(hook.name)
        self.status = denial_status(hook.name, response.status)


def add_audit_annotation(context: RequestContext, key: str, value: str) -> None:
    """Adds an audit annotation, unless its key is already set or is not a qualified name."""
    if key.count("/") != 1 or qualified_name_errors(key):
        _LOG.warning("dropping an audit annotation of a webhook: its key is not a qualified name: %s", key)
        return
    context.annotations.setdefault(key, value)


def publish_warnings_and_annotations(hook: Webhook, response: AdmissionResponse, context: RequestContext) -> None:
    """Adds the audit annotations and warnings of a webhook's response to the request (WIRE-H48)."""
    for key, value in response.annotations.items():
        add_audit_annotation(context, f"{hook.name}/{key}", value)
    for text in response.warnings:
        context.warn(text)


def _evaluate_conditions(hook: Webhook, values: Mapping[str, Any], options: EvaluationOptions) -> str | None:
    """As ExpressionEvaluator.check_match_conditions."""
    evaluator = ExpressionEvaluator(conditions_environment(), {**values, "namespaceObject": None}, options)
    return evaluator.check_match_conditions(hook.conditions)
