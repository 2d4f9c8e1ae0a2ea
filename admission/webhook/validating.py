"""ValidatingAdmissionWebhook: all webhooks that a request concerns are asked at once (WIRE-H41)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from admission.matching.match_rules import Target
from admission.matching.request_match import Lookup
from admission.webhook.accessor import Webhook
from admission.webhook.admission_review import Verdict
from admission.webhook.configuration_source import HeldWebhooks
from admission.webhook.dispatcher import Denied, Dispatch, Outcome, Surroundings, annotate, publish
from apiserver.admission import Attributes

_FAILED_OPEN = "failed-open.validating.webhook.admission.k8s.io/round_0_index_"


class ValidatingWebhooks:
    """A Validating plugin: behind all others."""

    name = "ValidatingAdmissionWebhook"

    def __init__(self, held: HeldWebhooks, surroundings: Surroundings) -> None:
        self._dispatch = Dispatch(held, surroundings, phase="validating")

    def handles(self, attributes: Attributes) -> bool:
        return self._dispatch.handles(attributes)

    async def validate(self, attributes: Attributes) -> None:
        """Raises the first refusal in the order of the webhooks, whichever came first: the same one every time."""
        self._dispatch.require_synced()
        hooks = self._dispatch.held.webhooks
        if not hooks:
            return
        lookup = self._dispatch.lookup(attributes)
        concerned = [(hook, target) for hook in hooks if (target := await self._dispatch.target(hook, lookup))]
        if not concerned:
            return
        started = time.monotonic()
        answered = await self._ask(concerned, lookup)
        attributes.context.webhook_seconds += time.monotonic() - started
        self._report(concerned, answered, attributes)

    async def _ask(
        self, concerned: Sequence[tuple[Webhook, Target]], lookup: Lookup
    ) -> Sequence[tuple[Verdict | None, Outcome[None]]]:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._answer(hook, lookup, target)) for hook, target in concerned]
        return [task.result() for task in tasks]

    async def _answer(self, hook: Webhook, lookup: Lookup, target: Target) -> tuple[Verdict | None, Outcome[None]]:
        said: Verdict | None = None

        async def ask() -> None:
            nonlocal said
            said = await self._dispatch.ask(hook, lookup, target)
            if not said.allowed:
                raise Denied(hook, said)

        outcome = await self._dispatch.outcome(hook, lookup.attributes, ask())
        return said, outcome

    def _report(
        self,
        concerned: Sequence[tuple[Webhook, Target]],
        answered: Sequence[tuple[Verdict | None, Outcome[None]]],
        attributes: Attributes,
    ) -> None:
        for index, ((hook, _), (verdict, outcome)) in enumerate(zip(concerned, answered, strict=True)):
            if verdict is not None:
                publish(hook, verdict, attributes.context)
            if outcome.failed_open:
                annotate(attributes.context, f"{_FAILED_OPEN}{index}", hook.name)
        for _, outcome in answered:
            if outcome.error is not None:
                raise outcome.error
