"""The webhooks in force: compiled as the informer delivers configurations, read by every write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from admission.matching.compiled_configurations import CompiledConfigurations
from admission.webhook.accessor import Webhook, compile_webhooks
from apiserver.meta.resource import Object


class WebhookSource:
    """`configurations` is an event handler for an informer."""

    def __init__(self) -> None:
        self._webhooks: tuple[Webhook, ...] | None = None
        self.configurations = CompiledConfigurations(compile_webhooks, self._on_change, content=_webhooks)

    @property
    def webhooks(self) -> Sequence[Webhook]:
        """Sorted by the name of the configuration, then in the order of its list (WIRE-H41)."""
        if self._webhooks is None:
            compiled = self.configurations.compiled
            self._webhooks = tuple(webhook for name in sorted(compiled) for webhook in compiled[name])
        return self._webhooks

    @property
    def problems(self) -> Mapping[str, Sequence[str]]:
        """Compile errors, by `<configuration>/<webhook>`."""
        found = {f"{each.configuration}/{each.name}": each.problems for each in self.webhooks}
        return {name: problems for name, problems in found.items() if problems}

    def _on_change(self) -> None:
        self._webhooks = None


def _webhooks(configuration: Object) -> Any:
    return configuration.get("webhooks")
