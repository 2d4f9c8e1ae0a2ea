"""Builds the subresource `tenants/explain`."""

from __future__ import annotations

from admission.tenant.host_policy import host_change_denial
from apiserver import rest
from apiserver.authorization.authorizer import Authorizer
from apiserver.request.context import User
from apiserver.storage.watch_cache import WatchCache
from registry.cluster.interface import ClusterClient
from registry.explain.read import ExplainSources
from registry.explain.storage import Explainer, TenantExplain
from registry.tenant.tree import TenantTree
from registry.tenantgateway.types import TENANTGATEWAY_NAME


def tenant_explain(
    cluster: ClusterClient, tenants: rest.Getter, cache: WatchCache, tree: TenantTree, authorizer: Authorizer
) -> TenantExplain:
    """Every replica answers, because all facts are in the cluster: in specs, and in statuses that the leader writes."""
    sources = ExplainSources(tree=tree, tenants=cache, gateway_name=TENANTGATEWAY_NAME, may_set_host=_may_set_host)
    return TenantExplain(tenants, Explainer(cluster=cluster, authorizer=authorizer, sources=sources))


def _may_set_host(user: User) -> bool:
    return not host_change_denial("", "other", user.name, user.groups)
