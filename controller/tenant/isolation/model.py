"""The values that the network policies of a Tenant are rendered from. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from registry.names import SYSTEM_LABEL
from registry.tenant.inheritance import NO_SERVICES, Services

ISOLATION = "tenant-isolation"
INGRESS = "tenant-ingress"
API_SERVER = "tenant-apiserver"
SERVICES = "tenant-services"
TO_ETCD = "tenant-to-etcd"

ALLOW_TO_API_SERVER = "policy.cozystack.io/allow-to-apiserver"
ALLOW_TO_ETCD = "policy.cozystack.io/allow-to-etcd"
SERVICE = "cozystack.io/service"
SYSTEM = SYSTEM_LABEL
APP_NAME = "app.kubernetes.io/name"
VIRT_HANDLER = {"kubevirt.io": "virt-handler"}
VIRT_HANDLER_NAMESPACE, VIRT_HANDLER_PORT = "cozy-kubevirt", 8443
DNS = {"k8s-app": "kube-dns"}
KUBE_SYSTEM = "kube-system"


@dataclass(frozen=True, slots=True, kw_only=True)
class IsolatedTenant:
    """`namespace` and `ancestors` are workload namespaces, the nearest ancestor first. `services` are the effective
    ones."""

    namespace: str
    ancestors: Sequence[str] = ()
    services: Services = NO_SERVICES

    def provides(self, service: str) -> bool:
        """True if the Tenant has this service itself."""
        return self.services.by_name()[service] == self.namespace


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerNamespaces:
    """Namespaces besides those of the tree: Pods of tenants reach those of `platform`; Pods in `allow_from` reach the
    Pods of tenants."""

    platform: Sequence[str] = ()
    allow_from: Sequence[str] = ()


@dataclass(frozen=True, slots=True, order=True)
class ApiServerEndpoint:
    """An address of kube-apiserver and its TCP ports."""

    address: str
    ports: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterNetworks:
    """Networks in CIDR notation. `cluster` contains Pods, Services and nodes; empty if it is not known, for the reason
    `unknown`. `nodes` are those of the nodes, which connect to Pods for probes, and from Gateways on the network of the
    host."""

    cluster: Sequence[str] = ()
    unknown: str = ""
    nodes: Sequence[str] = ()
    api_server: Sequence[ApiServerEndpoint] = ()
