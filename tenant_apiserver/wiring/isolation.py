"""Builds the step that isolates tenants, with the kinds that it watches."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address

from apiserver.meta.resource import Key
from controller.platform.settings import SettingsSource
from controller.runtime.apply import ClusterWriter
from controller.tenant.isolation.chart_policies import ChartPolicies
from controller.tenant.isolation.model import ApiServerEndpoint, ClusterNetworks, PeerNamespaces
from controller.tenant.isolation.networks import ConfiguredNetworks, DiscoveredNetworks, KnownNetworks
from controller.tenant.isolation.policy_kinds import PolicyKinds
from controller.tenant.isolation.policy_writer import PolicyWriter
from controller.tenant.isolation.step import IsolationStep, IsolationStepSettings
from controller.tenant.watches import TenantEnqueuer
from registry.cluster.informer_factory import InformerFactory
from registry.cluster.interface import ClusterClient
from registry.names import tenant_name

_LOOPBACK = "127.0.0.1"
_LOOPBACK_NETWORKS = ("127.0.0.0/8", "::1/128")


@dataclass(frozen=True, slots=True, kw_only=True)
class Isolation:
    """The step, and the kinds of the policies that it writes."""

    step: IsolationStep
    kinds: PolicyKinds


def isolation(
    *,
    cluster: ClusterClient,
    settings: SettingsSource,
    informers: InformerFactory,
    writer: ClusterWriter,
    enqueuer: TenantEnqueuer,
    own_networks: ClusterNetworks | None,
) -> Isolation:
    """Must be called before the informers run. With `own_networks`, the cluster is not asked for its networks."""

    def enqueue_tenant_of(release: Key) -> None:
        if name := tenant_name(release.name):
            enqueuer.add(Key(release.namespace, name))

    charts = ChartPolicies(on_change=enqueue_tenant_of)
    kinds = PolicyKinds(
        informers,
        on_change=enqueuer.enqueue_owner,
        on_served=enqueuer.enqueue_all,
        cilium_handlers=[charts.policies],
    )
    charts.follow(informers)
    discovered = DiscoveredNetworks(informers, on_change=enqueuer.enqueue_all)
    step = IsolationStep(
        writer=PolicyWriter(writer=writer, cluster=cluster),
        kinds=kinds,
        charts=charts,
        networks=KnownNetworks(own_networks) if own_networks is not None else discovered,
        settings=isolation_settings(settings),
    )
    return Isolation(step=step, kinds=kinds)


def isolation_settings(settings: SettingsSource) -> IsolationStepSettings:
    def peers() -> PeerNamespaces:
        section = settings.current.isolation
        return PeerNamespaces(platform=section.platform_namespaces, allow_from=section.allow_from)

    def networks() -> ConfiguredNetworks:
        section = settings.current.isolation
        return ConfiguredNetworks(cluster=section.cluster_cidrs, nodes=section.node_cidrs)

    return IsolationStepSettings(
        chart=lambda: settings.current.tenants.chart,
        mode=lambda: settings.current.tenants.isolation,
        peers=peers,
        networks=networks,
    )


def own_networks(address: str, port: int) -> ClusterNetworks:
    """The networks of the embedded cluster: it has no Pods and no Services, and its only node is this machine."""
    try:
        api_server = str(ip_address(address))
    except ValueError:
        api_server = _LOOPBACK
    return ClusterNetworks(
        cluster=_LOOPBACK_NETWORKS,
        nodes=_LOOPBACK_NETWORKS,
        api_server=[ApiServerEndpoint(api_server, (port,))],
    )
