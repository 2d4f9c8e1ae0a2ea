"""ValidatingAdmissionWebhook calls all matching webhooks in parallel (WIRE-H41)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from admission.matching.match_rules import Target
from admission.matching.request_match import RequestMatcher
from admission.webhook.accessor import Webhook
from admission.webhook.admission_review import AdmissionResponse
from admission.webhook.configuration_source import WebhookSource
from admission.webhook.dispatcher import (
    CallOutcome,
    Dispatcher,
    WebhookDenied,
    WebhookDependencies,
    add_audit_annotation,
    publish_warnings_and_annotations,
)
from apiserver.admission import Attributes

_FAILED_OPEN = "failed-open.validating.webhook.admission.k8s.io/round_0_index_"


class ValidatingWebhooks:
    """A validating plugin that runs after all others."""

    name = "ValidatingAdmissionWebhook"

    def __init__(self, source: WebhookSource, dependencies: WebhookDependencies) -> None:
        self._dispatcher = Dispatcher(source, dependencies, webhook_type="validating")

    def handles(self, attributes: Attributes) -> bool:
        return self._dispatcher.handles(attributes)

    async def validate(self, attributes: Attributes) -> None:
        """Raises the first error in the order of the webhooks, not of their responses, so that it is deterministic."""
        hooks = self._dispatcher.source.webhooks
        if not hooks:
            return
        matcher = self._dispatcher.matcher(attributes)
        matching = [(hook, target) for hook in hooks if (target := await self._dispatcher.target(hook, matcher))]
        if not matching:
            return
        started = time.monotonic()
        results = await self._call_all(matching, matcher)
        attributes.context.webhook_seconds += time.monotonic() - started
        self._report(matching, results, attributes)

    async def _call_all(
        self, matching: Sequence[tuple[Webhook, Target]], matcher: RequestMatcher
    ) -> Sequence[tuple[AdmissionResponse | None, CallOutcome[None]]]:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._call(hook, matcher, target)) for hook, target in matching]
        return [task.result() for task in tasks]

    async def _call(
        self, hook: Webhook, matcher: RequestMatcher, target: Target
    ) -> tuple[AdmissionResponse | None, CallOutcome[None]]:
        response: AdmissionResponse | None = None

        async def call() -> None:
            nonlocal response
            response = await self._dispatcher.call(hook, matcher, target)
            if not response.allowed:
                raise WebhookDenied(hook, response)

        outcome = await self._dispatcher.apply_failure_policy(hook, matcher.attributes, call())
        return response, outcome

    def _report(
        self,
        matching: Sequence[tuple[Webhook, Target]],
        results: Sequence[tuple[AdmissionResponse | None, CallOutcome[None]]],
        attributes: Attributes,
    ) -> None:
        for index, ((hook, _), (response, outcome)) in enumerate(zip(matching, results, strict=True)):
            if response is not None:
                publish_warnings_and_annotations(hook, response, attributes.context)
            if outcome.failed_open:
                add_audit_annotation(attributes.context, f"{_FAILED_OPEN}{index}", hook.name)
        for _, outcome in results:
            if outcome.error is not None:
                raise outcome.error
