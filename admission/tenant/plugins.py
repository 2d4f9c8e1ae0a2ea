"""The admission plugins of Tenants, in the order in which they must run."""

from __future__ import annotations

from admission.chain import Plugin
from admission.complete_caches import CompleteCaches
from admission.namespace_lifecycle import NamespaceLifecycle
from admission.namespace_source import NamespaceSource
from admission.tenant.deletion import TenantDeletion
from admission.tenant.host_policy import TenantHostPolicy
from admission.tenant.host_validation import TenantHosts
from admission.tenant.placement import TenantPlacement
from admission.tenant.quota import TenantQuota
from admission.tenant.tree_lock import TreeCache, TreeGuard
from registry.tenant.tree import TenantTree


def tenant_plugins(
    *, tree: TenantTree, cache: TreeCache, namespaces: NamespaceSource, caches: CompleteCaches
) -> tuple[Plugin, ...]:
    """`cache` is the watch cache that feeds `tree`, and `caches` are all caches that a plugin of the chain reads. The
    host policy runs before the others of Tenants, so that an untrusted write is rejected without waiting for the
    lock."""
    return (
        caches,
        NamespaceLifecycle(namespaces=namespaces),
        TenantHostPolicy(),
        TreeGuard(cache=cache, caches=caches),
        TenantPlacement(tree=tree),
        TenantHosts(tree=tree),
        TenantQuota(tree=tree),
        TenantDeletion(tree=tree, namespaces=namespaces),
    )
