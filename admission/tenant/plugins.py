"""The admission plugins of Tenants, in the order in which they must run."""

from __future__ import annotations

from collections.abc import Sequence

from admission.chain import Plugin, ValidatingPlugin
from admission.complete_caches import CompleteCaches
from admission.namespace_lifecycle import NamespaceLifecycle
from admission.namespace_source import NamespaceSource
from admission.tenant.deletion import TenantDeletion
from admission.tenant.disclosure import MASTERS_ONLY, Disclosure
from admission.tenant.host_policy import TenantHostPolicy
from admission.tenant.host_validation import TenantHosts
from admission.tenant.placement import TenantPlacement
from admission.tenant.quota import TenantQuota
from admission.tenant.quota_ledger import NamespaceUsage, no_usage
from admission.tenant.tree_lock import TreeCache, TreeFreshness, TreeGuard
from registry.tenant.tree import TenantTree


def tree_plugins(
    *,
    tree: TenantTree,
    namespaces: NamespaceSource,
    finalizes: bool = True,
    disclosure: Disclosure = MASTERS_ONLY,
    usage: NamespaceUsage = no_usage,
) -> tuple[ValidatingPlugin, ...]:
    """The plugins that judge by the tree. With `finalizes`, a controller deletes Tenants. `usage` returns what is used
    in a namespace."""
    return (
        TenantPlacement(tree=tree),
        TenantHosts(tree=tree, disclosure=disclosure),
        TenantQuota(tree=tree, disclosure=disclosure, usage=usage),
        TenantDeletion(tree=tree, namespaces=namespaces, finalizes=finalizes, disclosure=disclosure),
    )


def tenant_plugins(
    *,
    cache: TreeCache,
    namespaces: NamespaceSource,
    caches: CompleteCaches,
    judging: Sequence[Plugin],
    alone: bool,
    owners: Sequence[Plugin] = (),
    notices: Sequence[Plugin] = (),
) -> tuple[Plugin, ...]:
    """`cache` is the watch cache that feeds the tree of the `judging` plugins, and `caches` are all caches that a
    plugin of the chain reads. A process that is not `alone` needs claims, too. `owners` are the plugins for owners and
    deletion with children; they and the host policy run before the others of Tenants, so that an untrusted write is
    rejected without waiting for the lock. `notices` only warn about what is admitted."""
    return (
        caches,
        NamespaceLifecycle(namespaces=namespaces),
        *owners,
        TenantHostPolicy(),
        TreeGuard(cache=cache, caches=caches) if alone else TreeFreshness(cache=cache),
        *judging,
        *notices,
    )
