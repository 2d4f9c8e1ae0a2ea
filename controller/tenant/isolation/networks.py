"""The networks of the cluster, which NetworkPolicies must name because they know no entities: from the settings, or
else as far as Nodes, ServiceCIDRs and EndpointSlices tell."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from apiserver.meta.resource import Key
from controller.tenant.isolation import network_facts as facts
from controller.tenant.isolation.model import ClusterNetworks
from controller.tenant.isolation.network_facts import FoundNetworks, PodEvidence
from controller.tenant.isolation.served_kind import ServedKind
from registry.cluster.event_handlers import EventHandler, ProjectionStore
from registry.cluster.informer_factory import InformerFactory
from registry.cluster.interface import ENDPOINTSLICES, NODES, SERVICECIDRS, ClusterResource

# A Node is told the networks of its Pods a moment after it was created. Until then, those of the others are good.
_HOLD_SECONDS = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfiguredNetworks:
    """`cluster` are the networks of Pods, Services and nodes, `nodes` those of nodes; empty if they are not set."""

    cluster: Sequence[str] = ()
    nodes: Sequence[str] = ()


class NetworkSource(Protocol):
    async def wait_until_known(self, configured: ConfiguredNetworks) -> None:
        """Waits until `current` says all that can be found out."""
        ...

    def current(self, configured: ConfiguredNetworks) -> ClusterNetworks: ...


class KnownNetworks:
    """The networks of a cluster that knows them itself."""

    def __init__(self, networks: ClusterNetworks) -> None:
        self._networks = networks

    async def wait_until_known(self, configured: ConfiguredNetworks) -> None:
        pass

    def current(self, configured: ConfiguredNetworks) -> ClusterNetworks:
        known = self._networks
        return replace(known, cluster=configured.cluster or known.cluster, nodes=configured.nodes or known.nodes)


class NetworkDiscovery:
    """The networks that the cluster tells. Begins to watch when they are first asked for.

    `on_change` is called when `found` has changed. Networks that were known stay so for `_HOLD_SECONDS` after the
    cluster ceases to tell: each change is a write to every tenant.
    """

    def __init__(self, informers: InformerFactory, *, on_change: Callable[[], None]) -> None:
        self._informers = informers
        self._on_change = on_change
        self._nodes = ProjectionStore(project=facts.node_networks, on_change=self._node_changed)
        self._ranges = ProjectionStore(project=facts.service_networks, on_change=self._range_changed)
        self._pods = ProjectionStore(project=facts.pod_addresses, on_change=self._pods_changed)
        self._kinds: Sequence[ServedKind] = ()
        self._unjudged: set[Key] = set()
        self._outside: set[Key] = set()
        self._inside = False
        self._scheduled: asyncio.Handle | None = None
        self._loss: asyncio.TimerHandle | None = None
        self._found: FoundNetworks | None = None

    @property
    def found(self) -> FoundNetworks:
        """The networks that were found when `wait_until_known` last returned, or since."""
        return self._found or FoundNetworks()

    async def wait_until_known(self) -> None:
        if not self._kinds:
            handlers: Mapping[ClusterResource, EventHandler] = {
                NODES: self._nodes,
                SERVICECIDRS: self._ranges,
                ENDPOINTSLICES: self._pods,
            }
            self._kinds = [
                ServedKind(self._informers, kind, [handler], on_change=self._schedule)
                for kind, handler in handlers.items()
            ]
        for kind in self._kinds:
            await kind.wait_until_known()
        if self._found is None:
            self._found = self._find()

    def _node_changed(self, key: Key, before: object, after: object) -> None:
        self._unjudged.update(each for each, _ in self._pods.items())
        self._schedule()

    def _pods_changed(self, key: Key, before: object, after: object) -> None:
        self._unjudged.add(key)
        self._schedule()

    def _range_changed(self, key: Key, before: object, after: object) -> None:
        self._schedule()

    def _schedule(self) -> None:
        """One update follows the many changes of a list."""
        if self._found is not None and self._scheduled is None:
            self._scheduled = asyncio.get_running_loop().call_soon(self._update)

    def _update(self) -> None:
        self._scheduled = None
        found = self._find()
        if found.networks or not self.found.networks:
            self._set(found)
        elif self._loss is None:
            self._loss = asyncio.get_running_loop().call_later(_HOLD_SECONDS, lambda: self._set(self._find()))

    def _set(self, found: FoundNetworks) -> None:
        if self._loss is not None:
            self._loss.cancel()
            self._loss = None
        if found != self._found:
            self._found = found
            self._on_change()

    def _find(self) -> FoundNetworks:
        nodes = {key.name: each for key, each in self._nodes.items()}
        for key in self._unjudged:
            evidence = facts.judge_pods(self._pods.get(key) or (), nodes)
            # once seen, a Pod in these networks has shown that the plugin uses them
            self._inside = self._inside or evidence.inside
            (self._outside.add if evidence.outside else self._outside.discard)(key)
        self._unjudged.clear()
        services = {each for _, found in self._ranges.items() for each in found}
        return facts.find_networks(nodes.values(), services, PodEvidence(self._inside, bool(self._outside)))


class DiscoveredNetworks:
    """Follows the addresses of kube-apiserver, and without configured networks those that the cluster tells. Begins to
    watch when it is first asked, because Cilium's policies need none of them.

    `on_change` is called when `current` may have changed.
    """

    def __init__(self, informers: InformerFactory, *, on_change: Callable[[], None]) -> None:
        self._informers = informers
        self._on_change = on_change
        self._endpoints = ProjectionStore(project=facts.api_server_endpoints, on_change=self._changed)
        self._api_server: ServedKind | None = None
        self._discovery = NetworkDiscovery(informers, on_change=on_change)

    async def wait_until_known(self, configured: ConfiguredNetworks) -> None:
        if self._api_server is None:
            self._api_server = ServedKind(
                self._informers,
                ENDPOINTSLICES,
                [self._endpoints],
                on_change=self._on_change,
                name=facts.API_SERVER_SLICE,
            )
        await self._api_server.wait_until_known()
        if not configured.cluster:
            await self._discovery.wait_until_known()

    def current(self, configured: ConfiguredNetworks) -> ClusterNetworks:
        endpoints = {each for _, found in self._endpoints.items() for each in found}
        found = FoundNetworks() if configured.cluster else self._discovery.found
        return ClusterNetworks(
            cluster=configured.cluster or found.networks,
            unknown=found.unknown,
            nodes=configured.nodes,
            api_server=tuple(sorted(endpoints)),
        )

    def _changed(self, key: Key, before: object, after: object) -> None:
        self._on_change()
