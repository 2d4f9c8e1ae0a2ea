"""Builds the admission plugins for the cluster's own webhook configurations and ValidatingAdmissionPolicies."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from prometheus_client import CollectorRegistry

from admission.cel.evaluation_threads import EvaluationThreads
from admission.chain import Plugin
from admission.matching.match_rules import EquivalentResources, single_version
from admission.namespace_source import NamespaceSource
from apiserver.authorization.authorizer import Authorizer
from registry.cluster.informer import Informer
from tenant_apiserver.wiring.policies import ClusterPolicies, DiscoverableCluster
from tenant_apiserver.wiring.webhooks import ClusterWebhooks


class ClusterAdmission:
    """The caller runs `informers` and `policies.params`, and calls `close` at the end. `groups` are the API groups
    whose policies are compiled at once; None stands for all."""

    def __init__(
        self, cluster: DiscoverableCluster, registry: CollectorRegistry, *, groups: Collection[str] | None = None
    ) -> None:
        threads = EvaluationThreads()
        self.policies = ClusterPolicies(cluster, threads, groups)
        self.webhooks = ClusterWebhooks(cluster, registry, threads)

    @property
    def informers(self) -> Sequence[Informer]:
        return *self.policies.informers, *self.webhooks.informers

    def plugins(
        self, *, namespaces: NamespaceSource, authorizer: Authorizer, equivalents: EquivalentResources = single_version
    ) -> Sequence[Plugin]:
        """The plugins for the end of a chain: mutating webhooks, policies, validating webhooks (WIRE-H1)."""
        mutating, validating = self.webhooks.plugins(
            namespaces=namespaces, authorizer=authorizer, equivalents=equivalents
        )
        policies = self.policies.plugin(namespaces=namespaces, authorizer=authorizer, equivalents=equivalents)
        return mutating, policies, validating

    async def close(self) -> None:
        await self.webhooks.close()
