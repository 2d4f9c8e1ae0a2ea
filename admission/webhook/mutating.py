"""MutatingAdmissionWebhook calls webhooks one after another, each with the object that the previous one returned
(WIRE-H41)."""

from __future__ import annotations

import time
from collections.abc import Sequence

from admission.matching.go_json import go_json
from admission.matching.match_rules import Target
from admission.matching.request_match import RequestMatcher
from admission.webhook.accessor import Webhook
from admission.webhook.apply_patch import apply_patch, parse_patch_operations
from admission.webhook.configuration_source import WebhookSource
from admission.webhook.dispatcher import (
    Dispatcher,
    WebhookDenied,
    WebhookDependencies,
    add_audit_annotation,
    publish_warnings_and_annotations,
)
from apiserver.admission import Attributes
from apiserver.json.values import equal
from apiserver.meta.errors import InternalError
from apiserver.meta.resource import Object

_MUTATION = "mutation.webhook.admission.k8s.io/"
_FAILED_OPEN = f"failed-open.{_MUTATION}"


class MutatingWebhooks:
    """A mutating plugin that runs after NamespaceLifecycle. Webhooks may also reject deletions."""

    name = "MutatingAdmissionWebhook"

    def __init__(self, source: WebhookSource, dependencies: WebhookDependencies) -> None:
        self._dispatcher = Dispatcher(source, dependencies, webhook_type="admit")

    def handles(self, attributes: Attributes) -> bool:
        return self._dispatcher.handles(attributes)

    async def admit(self, attributes: Attributes) -> Object | None:
        """Raises the error of the first webhook that rejects the request."""
        hooks = self._dispatcher.source.webhooks
        if not hooks:
            return attributes.object
        run = _MutationRun(self._dispatcher, hooks, attributes)
        await run.call_webhooks(0)
        if run.changed:
            await run.call_webhooks(1)
        return run.object


class _MutationRun:
    """Calls all webhooks for one request; a webhook with reinvocationPolicy IfNeeded is called again if a later one
    changed the object."""

    def __init__(self, dispatcher: Dispatcher, hooks: Sequence[Webhook], attributes: Attributes) -> None:
        self._dispatcher = dispatcher
        self._hooks = hooks
        self._matcher = dispatcher.matcher(attributes)
        self._reinvocable: set[int] = set()
        self._to_reinvoke: set[int] = set()
        self.changed = False

    @property
    def object(self) -> Object | None:
        return self._matcher.attributes.object

    async def call_webhooks(self, round_number: int) -> None:
        """Calls the webhooks of a round in order; round 0 is the first. Raises StatusError."""
        for index, hook in enumerate(self._hooks):
            target = await self._dispatcher.target(hook, self._matcher)
            if target is None or (round_number > 0 and index not in self._to_reinvoke):
                continue
            changed = await self._call(hook, target, f"round_{round_number}_index_{index}")
            if changed:
                self.changed = True
                self._to_reinvoke |= self._reinvocable
                self._reinvocable.clear()
            if hook.reinvoked:
                self._reinvocable.add(index)

    async def _call(self, hook: Webhook, target: Target, annotation_suffix: str) -> bool:
        """Calls the webhook; returns whether it changed the object."""
        attributes, started = self._matcher.attributes, time.monotonic()
        work = self._patched_object(hook, self._matcher, target)
        outcome = await self._dispatcher.apply_failure_policy(hook, attributes, work)
        attributes.context.webhook_seconds += time.monotonic() - started
        mutated = outcome.value is not None and not equal(outcome.value, attributes.object)
        mutation = {"configuration": hook.configuration, "webhook": hook.name, "mutated": mutated}
        add_audit_annotation(attributes.context, f"{_MUTATION}{annotation_suffix}", go_json(mutation))
        if outcome.failed_open:
            add_audit_annotation(attributes.context, f"{_FAILED_OPEN}{annotation_suffix}", hook.name)
        if outcome.error is not None:
            raise outcome.error
        if outcome.value is not None:
            self._matcher = self._matcher.with_object(outcome.value)
        return mutated

    async def _patched_object(self, hook: Webhook, matcher: RequestMatcher, target: Target) -> Object | None:
        """Returns the patched object, or None if there is no patch."""
        response = await self._dispatcher.call(hook, matcher, target)
        publish_warnings_and_annotations(hook, response, matcher.attributes.context)
        if not response.allowed:
            raise WebhookDenied(hook, response)
        operations = parse_patch_operations(response)
        if not operations:
            return None
        attributes = matcher.attributes
        if attributes.object is None:
            raise InternalError(
                f'admission webhook "{hook.name}" attempted to modify the object, '
                "which is not supported for this operation"
            )
        return apply_patch(attributes.object, operations, target, attributes.resource)
