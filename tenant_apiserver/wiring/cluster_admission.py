"""What the host's administrators say of writes, put together: webhooks, policies, webhooks again."""

from __future__ import annotations

from collections.abc import Sequence

from prometheus_client import CollectorRegistry

from admission.chain import Plugin
from admission.matching.match_rules import EquivalentResources, single_version
from admission.namespace_source import NamespaceSource
from apiserver.authorization.authorizer import Authorizer
from registry.cluster.informer import Informer
from tenant_apiserver.wiring.policies import ClusterPolicies, DiscoverableCluster
from tenant_apiserver.wiring.webhooks import ClusterWebhooks


class ClusterAdmission:
    """`informers` and `policies.params` are to be run, and `close` is to be called in the end."""

    def __init__(self, cluster: DiscoverableCluster, registry: CollectorRegistry) -> None:
        self.policies = ClusterPolicies(cluster)
        self.webhooks = ClusterWebhooks(cluster, registry)

    @property
    def informers(self) -> Sequence[Informer]:
        return *self.policies.informers, *self.webhooks.informers

    def plugins(
        self, *, namespaces: NamespaceSource, authorizer: Authorizer, equivalents: EquivalentResources = single_version
    ) -> Sequence[Plugin]:
        """To be put behind all others of a chain, where mutating plugins come first (WIRE-H1)."""
        mutating, validating = self.webhooks.plugins(
            namespaces=namespaces, authorizer=authorizer, equivalents=equivalents
        )
        policies = self.policies.plugin(namespaces=namespaces, authorizer=authorizer, equivalents=equivalents)
        return mutating, policies, validating

    async def close(self) -> None:
        await self.webhooks.close()
