"""MutatingAdmissionWebhook: one webhook after another, each on what the ones before it made of the object
(WIRE-H41)."""

from __future__ import annotations

import time
from collections.abc import Sequence

from admission.matching.go_json import go_json
from admission.matching.match_rules import Target
from admission.matching.request_match import Lookup
from admission.webhook.accessor import Webhook
from admission.webhook.apply_patch import operations_of, patched
from admission.webhook.configuration_source import HeldWebhooks
from admission.webhook.dispatcher import Denied, Dispatch, Surroundings, annotate, publish
from apiserver.admission import Attributes
from apiserver.json.values import equal
from apiserver.meta.errors import InternalError
from apiserver.meta.resource import Object

_MUTATION = "mutation.webhook.admission.k8s.io/"
_FAILED_OPEN = f"failed-open.{_MUTATION}"


class MutatingWebhooks:
    """A Mutating plugin: behind NamespaceLifecycle. It is asked about deletions, too, and may refuse them."""

    name = "MutatingAdmissionWebhook"

    def __init__(self, held: HeldWebhooks, surroundings: Surroundings) -> None:
        self._dispatch = Dispatch(held, surroundings, phase="admit")

    def handles(self, attributes: Attributes) -> bool:
        return self._dispatch.handles(attributes)

    async def admit(self, attributes: Attributes) -> Object | None:
        """Raises the refusal of the first webhook that refuses."""
        self._dispatch.require_synced()
        hooks = self._dispatch.held.webhooks
        if not hooks:
            return attributes.object
        run = _Run(self._dispatch, hooks, attributes)
        await run.round(0)
        if run.changed:
            await run.round(1)
        return run.object


class _Run:
    """One request through all webhooks. Those that want it are asked once more when a later one changed the object."""

    def __init__(self, dispatch: Dispatch, hooks: Sequence[Webhook], attributes: Attributes) -> None:
        self._dispatch = dispatch
        self._hooks = hooks
        self._lookup = dispatch.lookup(attributes)
        self._asked: set[int] = set()
        self._again: set[int] = set()
        self.changed = False

    @property
    def object(self) -> Object | None:
        return self._lookup.attributes.object

    async def round(self, number: int) -> None:
        """Raises StatusError."""
        for index, hook in enumerate(self._hooks):
            target = await self._dispatch.target(hook, self._lookup)
            if target is None or (number > 0 and index not in self._again):
                continue
            changed = await self._call(hook, target, f"round_{number}_index_{index}")
            if changed:
                self.changed = True
                self._again |= self._asked
                self._asked.clear()
            if hook.reinvoked:
                self._asked.add(index)

    async def _call(self, hook: Webhook, target: Target, place: str) -> bool:
        """Whether the webhook changed the object."""
        attributes, started = self._lookup.attributes, time.monotonic()
        outcome = await self._dispatch.outcome(hook, attributes, self._ask(hook, self._lookup, target))
        attributes.context.webhook_seconds += time.monotonic() - started
        mutated = outcome.value is not None and not equal(outcome.value, attributes.object)
        told = {"configuration": hook.configuration, "webhook": hook.name, "mutated": mutated}
        annotate(attributes.context, f"{_MUTATION}{place}", go_json(told))
        if outcome.failed_open:
            annotate(attributes.context, f"{_FAILED_OPEN}{place}", hook.name)
        if outcome.error is not None:
            raise outcome.error
        if outcome.value is not None:
            self._lookup = self._lookup.with_object(outcome.value)
        return mutated

    async def _ask(self, hook: Webhook, lookup: Lookup, target: Target) -> Object | None:
        """The object after the webhook's patch, None without one."""
        verdict = await self._dispatch.ask(hook, lookup, target)
        publish(hook, verdict, lookup.attributes.context)
        if not verdict.allowed:
            raise Denied(hook, verdict)
        operations = operations_of(verdict)
        if not operations:
            return None
        attributes = lookup.attributes
        if attributes.object is None:
            raise InternalError(
                f'admission webhook "{hook.name}" attempted to modify the object, '
                "which is not supported for this operation"
            )
        return patched(attributes.object, operations, target, attributes.resource)
