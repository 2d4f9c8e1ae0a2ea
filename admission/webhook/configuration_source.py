"""Webhook configurations as an informer of the host tells them: compiled when they come, looked up by every write."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from admission.matching.compiled_configurations import Kept
from admission.webhook.accessor import Webhook, webhooks_of
from apiserver.meta.resource import Object


class HeldWebhooks:
    """`configurations` is a handler for the informer whose `synced` event is given."""

    def __init__(self, *, synced: asyncio.Event) -> None:
        self._synced = synced
        self._webhooks: tuple[Webhook, ...] | None = None
        self.configurations = Kept(webhooks_of, self._changed, content=_webhooks)

    @property
    def synced(self) -> bool:
        return self._synced.is_set()

    @property
    def webhooks(self) -> Sequence[Webhook]:
        """By the names of their configurations, and in the order of each (WIRE-H41)."""
        if self._webhooks is None:
            facts = self.configurations.facts
            self._webhooks = tuple(webhook for name in sorted(facts) for webhook in facts[name])
        return self._webhooks

    @property
    def problems(self) -> Mapping[str, Sequence[str]]:
        """What keeps webhooks from working as they are written, by the names of configuration and webhook."""
        found = {f"{each.configuration}/{each.name}": each.problems for each in self.webhooks}
        return {name: problems for name, problems in found.items() if problems}

    def _changed(self) -> None:
        self._webhooks = None


def _webhooks(configuration: Object) -> Any:
    return configuration.get("webhooks")
