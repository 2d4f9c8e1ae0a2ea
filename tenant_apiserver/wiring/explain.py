"""Builds the subresource `tenants/explain`."""

from __future__ import annotations

from dataclasses import dataclass

from admission.tenant.host_policy import host_change_denial
from apiserver import rest
from apiserver.authorization.authorizer import Authorizer
from apiserver.request.context import User
from apiserver.storage.visibility import VisibilitySource
from apiserver.storage.watch_cache import WatchCache
from registry.cluster.interface import ClusterClient
from registry.explain.sources import ExplainSources
from registry.explain.status_hosts import StatusHosts
from registry.explain.storage import Explainer, TenantExplain
from registry.tenant.tree import TenantTree
from registry.tenantgateway.types import TENANTGATEWAY_NAME


@dataclass(frozen=True, kw_only=True)
class ExplainedTenants:
    """The Tenants that are explained, and the `visibility` of them in lists."""

    getter: rest.Getter
    cache: WatchCache
    tree: TenantTree
    visibility: VisibilitySource


def tenant_explain(cluster: ClusterClient, tenants: ExplainedTenants, authorizer: Authorizer) -> TenantExplain:
    """Every replica answers, because all facts are in the cluster: in specs, and in statuses that the leader writes.
    Called before the cache is filled, and after the tree has subscribed to it."""
    hosts = StatusHosts(tenants.tree)
    tenants.cache.subscribe(hosts.on_event)
    sources = ExplainSources(
        tree=tenants.tree,
        tenants=tenants.cache,
        hosts=hosts,
        visibility=tenants.visibility,
        gateway_name=TENANTGATEWAY_NAME,
        may_set_host=_may_set_host,
    )
    explainer = Explainer(cluster=cluster, authorizer=authorizer, sources=sources)
    return TenantExplain(tenants.getter, explainer, wait_for_own_writes=tenants.cache.wait_for_own_writes)


def _may_set_host(user: User) -> bool:
    return not host_change_denial("", "other", user.name, user.groups)
