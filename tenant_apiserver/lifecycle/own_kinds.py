"""The kinds that this version serves on any cluster, as its API is built. Nothing is read from the cluster."""

from __future__ import annotations

from collections.abc import Mapping

from apiserver.authorization.authorizer import AccessAttributes, Authorizer, Decision
from apiserver.metrics import Metrics
from controller.platform.settings import PlatformSettings, ReloadableSettings
from tenant_apiserver.process import admission_observer, projection_groups, tenant_groups
from tenant_apiserver.wiring.applications.api import ApplicationApiConfig
from tenant_apiserver.wiring.policies import DiscoverableCluster
from tenant_apiserver.wiring.projections import ProjectionApi
from tenant_apiserver.wiring.tenant_api import TenantApiConfig, tenant_api


class _Nobody(Authorizer):
    async def authorize(self, attributes: AccessAttributes) -> Decision:
        return Decision(allowed=False)


def own_kinds(cluster: DiscoverableCluster) -> Mapping[str, frozenset[str]]:
    """The plural names by group, without those of ApplicationDefinitions."""
    metrics, settings = Metrics(), ReloadableSettings(PlatformSettings())
    observe = admission_observer(metrics)
    tenants = tenant_api(
        TenantApiConfig(
            cluster=cluster,
            settings=settings,
            root_host="example.org",
            authorizer=_Nobody(),
            observe=observe,
            cluster_admission=lambda namespaces: (),
            admission_informers=(),
        )
    )
    projections = ProjectionApi(
        ApplicationApiConfig(
            cluster=cluster,
            tenants=tenants,
            authorizer=_Nobody(),
            metrics=metrics,
            observe=observe,
            cluster_admission=lambda namespaces: (),
            admission_informers=(),
        )
    )
    kinds: dict[str, frozenset[str]] = {}
    for group in (*tenant_groups(tenants), *projection_groups(projections)):
        plurals = frozenset(name for name in group.storages if "/" not in name)
        kinds[group.group] = kinds.get(group.group, frozenset()) | plurals
    return kinds
