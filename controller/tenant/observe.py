"""The state of a Tenant and its surroundings as the reconciler observes it: one frozen value, read from the caches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from apiserver.meta.resource import Key, Object
from registry.cluster.object_store import ObjectLister
from registry.names import release_name
from registry.tenant.inheritance import NO_SERVICES, Services, effective_scheduling_class, effective_services
from registry.tenant.summary import TenantSummary
from registry.tenant.tree import (
    BaseTenantTree,
    EffectiveGateway,
    EffectiveHost,
    TenantTree,
    effective_gateway,
    effective_host,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedTenant:
    """`ancestors` are nearest first. `shares_host` is true if another Tenant has the same effective host,
    `shares_namespace` if an older Tenant has the same workload namespace."""

    tenant: TenantSummary
    release: Object
    ancestors: Sequence[TenantSummary]
    host: EffectiveHost | None
    gateway: EffectiveGateway
    shares_host: bool
    shares_namespace: bool
    namespace: Object | None
    parent_namespace: Object | None
    has_children: bool = False
    services: Services = NO_SERVICES
    scheduling_class: str = ""


class TenantObserver:
    def __init__(self, *, tree: TenantTree, releases: ObjectLister, namespaces: ObjectLister) -> None:
        """`releases` are HelmReleases by their own keys and with their status; `namespaces` have keys ('', name)."""
        self._tree = tree
        self._releases = releases
        self._namespaces = namespaces

    def observe(self, key: Key) -> ObservedTenant | None:
        """None if the Tenant does not exist."""
        tenant = self._tree.get(key)
        release = self._releases.get(Key(key.namespace, release_name(key.name)))
        if tenant is None or release is None:
            return None
        observed = observe_in(self._tree, tenant, release, self._namespaces)
        host = observed.host
        shares_host = host is not None and len(self._tree.tenants_with_host(host.value)) > 1
        return replace(observed, shares_host=True) if shares_host else observed


def observe_in(
    tree: BaseTenantTree, tenant: TenantSummary, release: Object, namespaces: ObjectLister
) -> ObservedTenant:
    """A Tenant of any tree, which need not be the current one. Hosts that Tenants share are not looked for."""
    owner, ancestors = tree.by_namespace(tenant.namespace), tree.ancestors(tenant)
    return ObservedTenant(
        tenant=tenant,
        release=release,
        ancestors=ancestors,
        host=effective_host(tree, tenant),
        gateway=effective_gateway(tree, tenant),
        shares_host=False,
        shares_namespace=owner is not None and owner.key != tenant.key,
        namespace=namespaces.get(Key("", tenant.namespace)),
        has_children=bool(tree.children(tenant.namespace)),
        parent_namespace=None if tenant.is_root else namespaces.get(Key("", tenant.key.namespace)),
        services=effective_services(tenant, ancestors),
        scheduling_class=effective_scheduling_class(tenant, ancestors),
    )
