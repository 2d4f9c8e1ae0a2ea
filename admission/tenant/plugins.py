"""The admission plugins of Tenants, in the order in which they must run."""

from __future__ import annotations

from collections.abc import Sequence

from admission.chain import Plugin
from admission.complete_caches import CompleteCaches
from admission.namespace_lifecycle import NamespaceLifecycle
from admission.namespace_source import NamespaceSource
from admission.tenant.deletion import TenantDeletion
from admission.tenant.disclosure import MASTERS_ONLY, Disclosure
from admission.tenant.host_policy import TenantHostPolicy
from admission.tenant.host_validation import TenantHosts
from admission.tenant.placement import TenantPlacement
from admission.tenant.quota import TenantQuota
from admission.tenant.tree_lock import TreeCache, TreeGuard
from registry.tenant.tree import TenantTree


def tenant_plugins(
    *,
    tree: TenantTree,
    cache: TreeCache,
    namespaces: NamespaceSource,
    caches: CompleteCaches,
    owners: Sequence[Plugin] = (),
    finalizes: bool = True,
    disclosure: Disclosure = MASTERS_ONLY,
) -> tuple[Plugin, ...]:
    """`cache` is the watch cache that feeds `tree`, and `caches` are all caches that a plugin of the chain reads.
    `owners` are the plugins for owners and deletion with children; they and the host policy run before the others of
    Tenants, so that an untrusted write is rejected without waiting for the lock. With `finalizes`, a controller deletes
    Tenants."""
    return (
        caches,
        NamespaceLifecycle(namespaces=namespaces),
        *owners,
        TenantHostPolicy(),
        TreeGuard(cache=cache, caches=caches),
        TenantPlacement(tree=tree),
        TenantHosts(tree=tree, disclosure=disclosure),
        TenantQuota(tree=tree, disclosure=disclosure),
        TenantDeletion(tree=tree, namespaces=namespaces, finalizes=finalizes, disclosure=disclosure),
    )
