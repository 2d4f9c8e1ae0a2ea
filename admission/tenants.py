"""The plugins of Tenants, in the order in which they have to run."""

from __future__ import annotations

from admission.chain import Plugin
from admission.deletion import TenantDeletion
from admission.hostpolicy import TenantHostPolicy
from admission.hosts import TenantHosts
from admission.namespacelifecycle import NamespaceLifecycle
from admission.namespaces import NamespaceSource
from admission.placement import TenantPlacement
from admission.quota import TenantQuota
from admission.treeguard import Cache, TreeGuard
from registry.tenant.tree import TenantTree


def tenant_plugins(*, tree: TenantTree, cache: Cache, namespaces: NamespaceSource) -> tuple[Plugin, ...]:
    """`cache` is the watch cache that feeds `tree`. Who is not trusted is refused before anything waits for a lock."""
    return (
        NamespaceLifecycle(namespaces=namespaces),
        TenantHostPolicy(),
        TreeGuard(cache=cache),
        TenantPlacement(tree=tree),
        TenantHosts(tree=tree),
        TenantQuota(tree=tree),
        TenantDeletion(tree=tree, namespaces=namespaces),
    )
