"""The policies of tenants in a fake cluster, and a hook by which the cluster does not serve or refuses kinds."""

from __future__ import annotations

from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Key, Object
from controller.platform.settings import PLATFORM_NAMESPACES
from controller.tenant.isolation.cilium import render_cilium_policies
from controller.tenant.isolation.model import IsolatedTenant, PeerNamespaces
from controller.tenant.isolation.policy_kinds import normalize_policy
from registry.cluster.interface import ClusterResource
from registry.tenant.inheritance import Services
from tests.controller.tenant.tenant_world import World

ROOT_SERVICES = Services(etcd="tenant-root", ingress="tenant-root", monitoring="tenant-root", seaweedfs="tenant-root")
ALPHA = IsolatedTenant(namespace="tenant-alpha", ancestors=("tenant-root",), services=ROOT_SERVICES)
NAMES = {"tenant-isolation", "tenant-ingress", "tenant-apiserver", "tenant-to-etcd"}
NETWORKS = {"isolation": {"clusterCIDRs": ["10.0.0.0/8"]}}


class Cluster:
    """A hook of the fake cluster: `missing` kinds are not served, writes to `refused` kinds are refused."""

    def __init__(self, world: World, *missing: ClusterResource) -> None:
        self.missing = set(missing)
        self.refused: set[ClusterResource] = set()
        self.forbidden: set[ClusterResource] = set()
        self.calls: list[tuple[str, ClusterResource, str]] = []
        world.cluster.before = self

    async def __call__(self, verb: str, res: ClusterResource, key: Key) -> None:
        if res in self.missing:
            raise StatusError(404, "NotFound", "the server could not find the requested resource")
        if res in self.forbidden:
            raise StatusError(403, "Forbidden", f"{res.plural} is forbidden")
        if res in self.refused and verb not in ("get", "list", "watch"):
            raise StatusError(403, "Forbidden", "admission webhook says no")
        self.calls.append((verb, res, key.namespace))


def names(world: World, res: ClusterResource, namespace: str = "tenant-alpha") -> set[str]:
    return {each["metadata"]["name"] for each in world.cluster.peek_all(res) if is_in(each, namespace)}


def is_in(policy: Object, namespace: str) -> bool:
    return bool(policy["metadata"]["namespace"] == namespace)


def rules(world: World, res: ClusterResource, namespace: str = "tenant-alpha") -> dict[str, object]:
    return {
        each["metadata"]["name"]: normalize_policy(each)
        for each in world.cluster.peek_all(res)
        if is_in(each, namespace)
    }


def expected(tenant: IsolatedTenant = ALPHA) -> dict[str, object]:
    rendered = render_cilium_policies(tenant, PeerNamespaces(platform=PLATFORM_NAMESPACES))
    return {each["metadata"]["name"]: normalize_policy(each) for each in rendered}
