"""The network policies that Helm installed with Cozystack's chart of a tenant, by the release that they are part of."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial

from apiserver.meta.resource import Key
from controller.tenant.helm_ownership import release_of
from controller.tenant.isolation.served_kind import ServedKind
from registry.cluster.event_handlers import ProjectionStore
from registry.cluster.informer_factory import InformerFactory
from registry.cluster.interface import ClusterResource
from registry.multimap import Multimap

CLUSTERWIDE_POLICIES = ClusterResource(
    "cilium.io", "v2", "ciliumclusterwidenetworkpolicies", "CiliumClusterwideNetworkPolicy", namespaced=False
)
_INTERNAL = "CiliumNetworkPolicy allow-internal-communication"


class ChartPolicies:
    """`on_change` is called with a release that has one policy more or less."""

    def __init__(self, *, on_change: Callable[[Key], None]) -> None:
        self._on_change = on_change
        self._names: Multimap[Key, str] = Multimap()
        self.policies = self._store("CiliumNetworkPolicy")
        self._clusterwide = self._store(CLUSTERWIDE_POLICIES.kind)

    def follow(self, informers: InformerFactory) -> None:
        """Watches the cluster-wide policies; `policies` is a handler of the others."""
        ServedKind(informers, CLUSTERWIDE_POLICIES, [self._clusterwide], on_change=lambda: None)

    def names(self, release: Key) -> Collection[str]:
        """The policies of a release as "kind name"."""
        return self._names[release]

    def isolates(self, release: Key, namespace: str) -> bool:
        """True if the chart has installed the policies that isolate the tenant's Namespace."""
        return {_INTERNAL, f"{CLUSTERWIDE_POLICIES.kind} {namespace}-egress"} <= {*self.names(release)}

    def _store(self, kind: str) -> ProjectionStore[Key]:
        return ProjectionStore(project=release_of, on_change=partial(self._changed, kind))

    def _changed(self, kind: str, key: Key, before: Key | None, after: Key | None) -> None:
        name = f"{kind} {key.name}"
        if before is not None:
            self._names.discard(before, name)
        if after is not None:
            self._names.add(after, name)
        for release in {before, after}:
            if release is not None:
                self._on_change(release)
