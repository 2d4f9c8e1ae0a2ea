"""The host's webhook configurations, followed for admission, and the client that calls what they name."""

from __future__ import annotations

from collections.abc import Sequence

from prometheus_client import CollectorRegistry

from admission.matching.match_rules import Equivalents
from admission.namespace_source import NamespaceSource
from admission.webhook.client import WebhookClient
from admission.webhook.configuration_source import HeldWebhooks
from admission.webhook.dispatcher import Surroundings
from admission.webhook.metrics import WebhookMetrics
from admission.webhook.mutating import MutatingWebhooks
from admission.webhook.validating import ValidatingWebhooks
from apiserver.authorization.authorizer import Authorizer
from registry.cluster.connection import environment_proxy
from registry.cluster.informer import Informer
from registry.cluster.interface import MUTATINGWEBHOOKCONFIGURATIONS, VALIDATINGWEBHOOKCONFIGURATIONS, ClusterClient


class ClusterWebhooks:
    """`informers` are to be run, and `close` is to be called in the end; made on the event loop."""

    def __init__(self, cluster: ClusterClient, registry: CollectorRegistry) -> None:
        mutating = Informer(cluster, MUTATINGWEBHOOKCONFIGURATIONS, keep=False)
        validating = Informer(cluster, VALIDATINGWEBHOOKCONFIGURATIONS, keep=False)
        self.informers: Sequence[Informer] = (mutating, validating)
        self._mutating = HeldWebhooks(synced=mutating.synced)
        self._validating = HeldWebhooks(synced=validating.synced)
        mutating.add_handler(self._mutating.configurations)
        validating.add_handler(self._validating.configurations)
        self._client = WebhookClient(cluster, proxy=environment_proxy)
        self._metrics = WebhookMetrics(registry)

    def plugins(
        self, *, namespaces: NamespaceSource, authorizer: Authorizer, equivalents: Equivalents
    ) -> tuple[MutatingWebhooks, ValidatingWebhooks]:
        surroundings = Surroundings(
            caller=self._client,
            namespaces=namespaces,
            authorizer=authorizer,
            metrics=self._metrics,
            equivalents=equivalents,
        )
        return MutatingWebhooks(self._mutating, surroundings), ValidatingWebhooks(self._validating, surroundings)

    def describe(self) -> str:
        """Webhooks with conditions that do not compile, for readyz; empty if all do. Their texts are not for all."""
        problems = {**self._mutating.problems, **self._validating.problems}
        broken = [f"{name} ({len(found)})" for name, found in problems.items()]
        return f"matchConditions that do not compile in: {', '.join(broken)}" if broken else ""

    async def close(self) -> None:
        await self._client.close()
