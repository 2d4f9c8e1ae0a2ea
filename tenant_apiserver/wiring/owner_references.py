"""Builds the plugins that guard the owners of Tenants, over discovery, the caches and the authorizer."""

from __future__ import annotations

import re
from collections.abc import Sequence

from admission.chain import Plugin
from admission.namespace_source import NamespaceSource
from admission.owner_references import OwnerReferencesPermissionEnforcement
from admission.plugin_rule import TENANTS
from admission.tenant.cascade_permission import TenantCascadePermission
from admission.tenant.existing_owners import NamespaceOwners, TenantNamespaceOwners, TenantOwners, TenantReader
from admission.tenant.stale_owners import Owners, StaleOwners
from apiserver.authorization.authorizer import Authorizer
from apiserver.meta.errors import StatusError
from apiserver.meta.resource import GroupKind
from apiserver.storage.visibility import VisibilitySource
from registry import names
from registry.cluster.interface import NAMESPACES, ClusterResource
from registry.tenantnamespace import convert as tenantnamespace
from tenant_apiserver.wiring.policies import DiscoverableCluster

# the text becomes a part of a path
_API_VERSION = re.compile(r"([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[a-z0-9]{1,63}")


class DiscoveredKinds:
    """The OwnerKinds of a cluster. Only owners that block their deletion are looked up, which few clients set, so
    nothing is cached."""

    def __init__(self, cluster: DiscoverableCluster) -> None:
        self._cluster = cluster

    async def resources(self, api_version: str, kind: str) -> Sequence[ClusterResource]:
        if not _API_VERSION.fullmatch(api_version):
            return ()
        try:
            found = await self._cluster.discover(api_version)
        except StatusError as error:
            if error.code == 404:
                return ()
            raise
        group, _, version = api_version.rpartition("/")
        return [
            ClusterResource(group, version, each["name"], kind, each["namespaced"])
            for each in found.get("resources") or ()
            if each["kind"] == kind and "/" not in each["name"]
        ]


def owner_plugins(
    *,
    cluster: DiscoverableCluster,
    authorizer: Authorizer,
    tenants: TenantReader,
    namespaces: NamespaceSource,
    visible_namespaces: VisibilitySource,
) -> Sequence[Plugin]:
    """Stale owners are dropped first, so that they need no right."""
    owners: dict[GroupKind, Owners] = {
        GroupKind(names.GROUP, names.KIND): TenantOwners(authorizer=authorizer, tenants=tenants),
        GroupKind("", NAMESPACES.kind): NamespaceOwners(authorizer=authorizer, namespaces=namespaces),
        GroupKind(tenantnamespace.GROUP, tenantnamespace.KIND): TenantNamespaceOwners(
            visibility=visible_namespaces, namespaces=namespaces
        ),
    }
    return (
        StaleOwners(owners=owners),
        OwnerReferencesPermissionEnforcement(resource=TENANTS, authorizer=authorizer, kinds=DiscoveredKinds(cluster)),
        TenantCascadePermission(authorizer=authorizer),
    )
