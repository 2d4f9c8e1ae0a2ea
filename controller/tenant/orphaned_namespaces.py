"""Deletes the Namespaces of Tenants that no longer exist: the safety net behind the finalizer.

A Tenant can be deleted without its finalizer: removed by hand, never set while no controller ran, or released before
the new Namespace was observed. A Namespace that we created is deleted once a read from the cluster confirms that no
HelmRelease of the recorded uid exists, and once it has no Tenants in it.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Protocol

from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Key, Object
from controller.runtime.apply import ClusterWriter
from controller.tenant.namespace_ownership import may_be_deleted, read_record
from registry.cluster.interface import HELMRELEASES, NAMESPACES, ClusterClient, is_terminating
from registry.names import release_name
from registry.tenant.tree import TenantTree

_logger = logging.getLogger(__name__)


class RecordedNamespaces(Protocol):
    def recorded(self, tenant: Key) -> Sequence[Object]:
        """The Namespaces whose record names this Tenant."""
        ...


class OrphanedNamespaceCleanup:
    """Methods raise the cluster's StatusError, and NotLeading."""

    def __init__(
        self, *, writer: ClusterWriter, cluster: ClusterClient, tree: TenantTree, namespaces: RecordedNamespaces
    ) -> None:
        self._writer = writer
        self._cluster = cluster
        self._tree = tree
        self._namespaces = namespaces

    async def run(self, key: Key) -> None:
        """Delete the orphaned Namespaces whose record names the Tenant `key`."""
        for namespace in self._namespaces.recorded(key):
            record = read_record(namespace)
            if record is None or is_terminating(namespace) or not may_be_deleted(namespace):
                continue
            tenant = self._tree.get(key)
            if (tenant is not None and tenant.uid == record.uid) or await self._exists(key, record.uid):
                continue
            name = namespace["metadata"]["name"]
            if self._tree.children(name):
                _logger.warning("namespace %s of the deleted tenant %s/%s stays: it has child tenants", name, *key)
                continue
            _logger.info("deleting namespace %s: its tenant %s/%s is gone", name, *key)
            await self._writer.delete(NAMESPACES, namespace)

    async def _exists(self, key: Key, uid: str) -> bool:
        try:
            release = await self._cluster.get(HELMRELEASES, key.namespace, release_name(key.name))
        except StatusError as e:
            # any other 404 means that HelmReleases are not served at all; it says nothing about this one
            if e.code == 404 and e.reason == "NotFound" and (e.details or {}).get("name"):
                return False
            raise
        return bool(release["metadata"].get("uid") == uid)
