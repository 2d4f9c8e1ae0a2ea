"""Informers for the cluster's webhook configurations, and the client that calls the webhooks."""

from __future__ import annotations

from collections.abc import Sequence

from prometheus_client import CollectorRegistry

from admission.cel.evaluation_threads import EvaluationThreads
from admission.matching.match_rules import EquivalentResources
from admission.namespace_source import NamespaceSource
from admission.webhook.client import WebhookClient
from admission.webhook.configuration_source import WebhookSource
from admission.webhook.dispatcher import WebhookDependencies
from admission.webhook.metrics import WebhookMetrics
from admission.webhook.mutating import MutatingWebhooks
from admission.webhook.validating import ValidatingWebhooks
from apiserver.authorization.authorizer import Authorizer
from registry.cluster.connection import environment_proxy
from registry.cluster.informer import Informer
from registry.cluster.interface import MUTATINGWEBHOOKCONFIGURATIONS, VALIDATINGWEBHOOKCONFIGURATIONS, ClusterClient


class ClusterWebhooks:
    """Must be created on the event loop. The caller runs `informers` and calls `close` at the end."""

    def __init__(self, cluster: ClusterClient, registry: CollectorRegistry, threads: EvaluationThreads) -> None:
        self._threads = threads
        mutating = Informer(cluster, MUTATINGWEBHOOKCONFIGURATIONS, store_objects=False)
        validating = Informer(cluster, VALIDATINGWEBHOOKCONFIGURATIONS, store_objects=False)
        self.informers: Sequence[Informer] = (mutating, validating)
        self._mutating = WebhookSource()
        self._validating = WebhookSource()
        mutating.add_handler(self._mutating.configurations)
        validating.add_handler(self._validating.configurations)
        self._client = WebhookClient(cluster, proxy=environment_proxy)
        self._metrics = WebhookMetrics(registry)

    def plugins(
        self, *, namespaces: NamespaceSource, authorizer: Authorizer, equivalents: EquivalentResources
    ) -> tuple[MutatingWebhooks, ValidatingWebhooks]:
        webhook_dependencies = WebhookDependencies(
            caller=self._client,
            namespaces=namespaces,
            authorizer=authorizer,
            metrics=self._metrics,
            equivalents=equivalents,
            threads=self._threads,
        )
        return MutatingWebhooks(self._mutating, webhook_dependencies), ValidatingWebhooks(
            self._validating, webhook_dependencies
        )

    def describe(self) -> str:
        """Lists the webhooks whose matchConditions do not compile, without the expressions: readyz shows the text to
        every user who may get /metrics."""
        problems = {**self._mutating.problems, **self._validating.problems}
        broken = [f"{name} ({len(found)})" for name, found in problems.items()]
        return f"matchConditions that do not compile in: {', '.join(broken)}" if broken else ""

    async def close(self) -> None:
        await self._client.close()
