"""What mutating and validating webhooks have in common: whom a request concerns, the question, the failure policy."""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

import orjson
from cel_expr_python import cel

from admission.cel.authorizer_bridge import AuthorizerBridge
from admission.cel.evaluation import OUT_OF_BUDGET, OutOfBudget, Run
from admission.cel.library.authz import check_function
from admission.matching.match_rules import EquivalentResources, Target, single_version
from admission.matching.request_match import RequestMatcher
from admission.namespace_source import NamespaceSource
from admission.webhook.accessor import NO_SIDE_EFFECTS, Webhook, conditions_environment
from admission.webhook.admission_review import (
    Verdict,
    denial,
    make_admission_review,
    parse_admission_response,
    version_of,
)
from admission.webhook.client import WebhookCaller
from admission.webhook.configuration_source import WebhookSource
from admission.webhook.errors import CallFailed, refusal
from admission.webhook.metrics import Phase, WebhookMetrics
from apiserver.admission import Attributes
from apiserver.authorization.authorizer import Authorizer
from apiserver.meta import errors
from apiserver.meta.errors import StatusError
from apiserver.meta.label_validation import qualified_name_errors
from apiserver.request.context import RequestContext

# Whoever may change configurations must be able to, whatever they say (WIRE-H50).
_EXEMPT_GROUP = "admissionregistration.k8s.io"

_LOG = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class WebhookDependencies:
    """What webhooks of both kinds need."""

    caller: WebhookCaller
    namespaces: NamespaceSource
    authorizer: Authorizer
    metrics: WebhookMetrics
    equivalents: EquivalentResources = single_version


@dataclass(frozen=True, slots=True)
class Outcome(Generic[T]):
    """What came of a webhook: a `value`; an `error` that refuses the request; or a failure that is ignored."""

    value: T | None = None
    error: StatusError | None = None
    failed_open: bool = False


class Dispatcher:
    """Webhooks of one kind: `held` are their configurations."""

    def __init__(self, held: WebhookSource, webhook_dependencies: WebhookDependencies, *, phase: Phase) -> None:
        self.held = held
        self._surroundings = webhook_dependencies
        self._phase: Phase = phase

    def handles(self, attributes: Attributes) -> bool:
        return attributes.resource.group != _EXEMPT_GROUP

    def require_synced(self) -> None:
        """Raises ServiceUnavailable while it is not known which webhooks there are: nothing is waved through."""
        if not self.held.synced:
            raise errors.ServiceUnavailable("admission webhooks are not yet synced", retry_after=1)

    def lookup(self, attributes: Attributes) -> RequestMatcher:
        around = self._surroundings
        return RequestMatcher(attributes, around.namespaces, around.equivalents(attributes.resource))

    async def target(self, hook: Webhook, lookup: RequestMatcher) -> Target | None:
        """As what the webhook is asked about the request, None if it is not. Raises StatusError."""
        if hook.match is None:
            return None
        if hook.match.error:
            raise errors.InternalError(hook.match.error)
        target = await lookup.target(hook.match)
        if target is None or not hook.conditions:
            return target
        failed = await self._failed_conditions(hook, lookup, target)
        if failed is None or (failed and hook.ignores_failures):
            return None
        if failed:
            attributes = lookup.attributes
            raise errors.Forbidden(attributes.resource.group_resource, attributes.name, failed)
        return target

    async def _failed_conditions(self, hook: Webhook, lookup: RequestMatcher, target: Target) -> str | None:
        values = lookup.variables_without_namespace(target)
        values = {name: values[name] for name in hook.reads if name in values}
        if "authorizer" not in hook.reads:
            return _failed_conditions(hook, values, None)
        attributes = lookup.attributes
        asking = AuthorizerBridge(self._surroundings.authorizer, end=attributes.context.deadline)
        check = check_function(attributes.user, asking.authorize)
        try:
            return await asyncio.to_thread(partial(_failed_conditions, hook, values, check))
        finally:
            asking.cancel()

    async def ask(self, hook: Webhook, lookup: RequestMatcher, target: Target) -> Verdict:
        """What the webhook says to the request. Raises CallFailed, and BadRequest for a dry run that it cannot do."""
        attributes = lookup.attributes
        if attributes.dry_run and not hook.side_effects:
            raise CallFailed("Webhook SideEffects is nil", code=400)
        if attributes.dry_run and hook.side_effects not in NO_SIDE_EFFECTS:
            raise errors.BadRequest(f'admission webhook "{hook.name}" does not support dry run')
        version, uid = version_of(hook.versions), str(uuid.uuid4())
        review = make_admission_review(attributes, lookup.equivalents[0], target, uid=uid, version=version)
        remaining = attributes.context.deadline - time.monotonic()
        body = orjson.dumps(review)
        answer = await self._surroundings.caller.post(hook.endpoint, body, seconds=hook.seconds, remaining=remaining)
        return parse_admission_response(answer, uid=uid, version=version, mutating=self._phase == "admit")

    async def outcome(self, hook: Webhook, attributes: Attributes, work: Coroutine[Any, Any, T]) -> Outcome[T]:
        """What `work`, which raises CallFailed, Denied or StatusError, comes to under the webhook's failurePolicy."""
        started = time.perf_counter()
        observed = partial(self._observe, hook, attributes.operation, lambda: time.perf_counter() - started)
        try:
            value = await work
        except CallFailed as failure:
            if not hook.ignores_failures:
                observed(failure.code, rejected=True)
                self._count(hook, attributes, failure)
                return Outcome(error=refusal(hook.name, failure))
            observed(failure.code, rejected=False)
            self._surroundings.metrics.failed_open(hook.name, self._phase)
            _LOG.warning("failed calling webhook, failing open: %s: %s", hook.name, failure)
            return Outcome(failed_open=True)
        except Denied as denied:
            observed(denied.status.code, rejected=True)
            self._count(hook, attributes, denied)
            return Outcome(error=denied.status)
        except StatusError as error:
            observed(0, rejected=True)
            self._count(hook, attributes, error)
            return Outcome(error=error)
        observed(200, rejected=False)
        return Outcome(value)

    def _observe(
        self, hook: Webhook, operation: str, elapsed: Callable[[], float], code: int, *, rejected: bool
    ) -> None:
        self._surroundings.metrics.called(
            hook.name, self._phase, operation, code=code, rejected=rejected, seconds=elapsed()
        )

    def _count(self, hook: Webhook, attributes: Attributes, why: CallFailed | Denied | StatusError) -> None:
        metrics, about = self._surroundings.metrics, (hook.name, self._phase, attributes.operation)
        match why:
            case CallFailed():
                metrics.rejected(*about, error="calling_webhook_error", code=why.code)
            case Denied():
                metrics.rejected(*about, error="no_error", code=why.status.code)
            case _:
                metrics.rejected(*about, error="apiserver_internal_error", code=0)


class Denied(Exception):
    """A webhook has refused the request; `status` is what its caller is told."""

    def __init__(self, hook: Webhook, verdict: Verdict) -> None:
        super().__init__(hook.name)
        self.status = denial(hook.name, verdict.status)


def annotate(context: RequestContext, key: str, value: str) -> None:
    """Add an audit annotation. Those that are no qualified names are left out; what is there stays."""
    if key.count("/") != 1 or qualified_name_errors(key):
        _LOG.warning("an audit annotation of a webhook is left out, its key is no qualified name: %s", key)
        return
    context.annotations.setdefault(key, value)


def publish(hook: Webhook, verdict: Verdict, context: RequestContext) -> None:
    """Pass on what the webhook has to say besides its verdict (WIRE-H48)."""
    for key, value in verdict.annotations.items():
        annotate(context, f"{hook.name}/{key}", value)
    for text in verdict.warnings:
        context.warn(text)


def _failed_conditions(hook: Webhook, values: Mapping[str, Any], check: cel.Function | None) -> str | None:
    """None if the webhook does not want to be asked; else the errors, '' if there are none."""
    activation = conditions_environment().activation({**values, "namespaceObject": None}, check)
    try:
        return Run(activation, {}).check_match_conditions(hook.conditions)
    except OutOfBudget:
        return OUT_OF_BUDGET
