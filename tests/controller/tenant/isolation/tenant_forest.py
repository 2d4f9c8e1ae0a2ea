"""A tree of tenants with the labels of their Namespaces and their policies, as the controller writes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property

from apiserver.meta.resource import Object
from controller.platform.settings import PLATFORM_NAMESPACES
from controller.tenant.isolation.cilium import render_cilium_policies
from controller.tenant.isolation.model import ApiServerEndpoint, ClusterNetworks, IsolatedTenant, PeerNamespaces
from controller.tenant.isolation.network_policies import render_network_policies
from controller.tenant.namespace_step import InheritedSettings, render_namespace
from registry.tenant.inheritance import effective_services
from registry.tenant.summary import TenantSummary
from registry.tenant.tree import TenantTree
from tests.controller.tenant.isolation.policy_model import Pod

NETWORKS = ClusterNetworks(
    cluster=("10.244.0.0/16", "10.96.0.0/16", "192.0.2.0/24"),
    nodes=("192.0.2.0/24",),
    api_server=(ApiServerEndpoint("192.0.2.1", (6443,)), ApiServerEndpoint("203.0.113.1", (6443,))),
)
PEERS = PeerNamespaces(platform=PLATFORM_NAMESPACES)
ETCD = {"cozystack.io/service": "etcd", "app.kubernetes.io/instance": "etcd"}
INGRESS = {"cozystack.io/service": "ingress"}
VMINSERT = {"app.kubernetes.io/name": "vminsert"}
TO_ETCD = {"policy.cozystack.io/allow-to-etcd": "true"}
TO_API_SERVER = {"policy.cozystack.io/allow-to-apiserver": "true"}
SERVICE_PODS: Mapping[str, Mapping[str, str]] = {"etcd": ETCD, "ingress": INGRESS, "monitoring": VMINSERT}


def from_namespace(
    name: str, labels: Mapping[str, str] | None = None, *, namespace_labels: Mapping[str, str] | None = None
) -> Pod:
    """A Pod of a Namespace that belongs to no tenant."""
    return Pod(namespace=name, labels=labels or {}, namespace_labels=namespace_labels or {})


@dataclass(frozen=True)
class Forest:
    tree: TenantTree

    @classmethod
    def of(cls, tenants: Iterable[TenantSummary]) -> Forest:
        return cls(TenantTree(tenants, root_host="example.org"))

    @cached_property
    def tenants(self) -> Sequence[TenantSummary]:
        return sorted(self.tree, key=lambda each: each.namespace)

    def tenant(self, namespace: str) -> TenantSummary:
        found = self.tree.by_namespace(namespace)
        assert found is not None
        return found

    def isolated(self, tenant: TenantSummary) -> IsolatedTenant:
        ancestors = self.tree.ancestors(tenant)
        return IsolatedTenant(
            namespace=tenant.namespace,
            ancestors=[each.namespace for each in ancestors],
            services=effective_services(tenant, ancestors),
        )

    def pod(self, namespace: str, labels: Mapping[str, str] | None = None) -> Pod:
        return Pod(namespace=namespace, labels=labels or {}, namespace_labels=self._namespace_labels[namespace])

    def cilium(self, peers: PeerNamespaces = PEERS) -> Sequence[Object]:
        return [
            {"kind": "CiliumNetworkPolicy", **policy}
            for tenant in self.tenants
            for policy in render_cilium_policies(self.isolated(tenant), peers)
        ]

    def network_policies(self, peers: PeerNamespaces = PEERS, networks: ClusterNetworks = NETWORKS) -> Sequence[Object]:
        return [
            {"kind": "NetworkPolicy", **policy}
            for tenant in self.tenants
            for policy in render_network_policies(self.isolated(tenant), peers, networks)
        ]

    @cached_property
    def _namespace_labels(self) -> Mapping[str, Mapping[str, str]]:
        found = {}
        for tenant in self.tenants:
            ancestors = self.tree.ancestors(tenant)
            inherited = InheritedSettings(services=effective_services(tenant, ancestors))
            rendered = render_namespace(tenant, ancestors, inherited)["metadata"]["labels"]
            found[tenant.namespace] = {key: value for key, value in rendered.items() if value is not None}
        return found

    def related(self, one: str, other: str) -> bool:
        """True if one of two different tenants is an ancestor of the other."""
        return other in self._ancestors[one] or one in self._ancestors[other]

    @cached_property
    def _ancestors(self) -> Mapping[str, Set[str]]:
        """The workload namespaces above that of each tenant."""
        return {tenant.namespace: {each.namespace for each in self.tree.ancestors(tenant)} for tenant in self.tenants}
