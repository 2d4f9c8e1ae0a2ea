"""Finds a write in the history of the cluster, and judges it by the tree of its own resourceVersion.

This is the tree that the replica that wrote it finds at its own event, so that all replicas come to the same verdict.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from admission.tenant.claims.claim import ProposedWrite
from admission.tenant.claims.own_events import Verdict, verdict_on
from apiserver.cooperative import Yielder
from apiserver.meta.resource import Key, Object
from registry.application.release_backend import FIELD_MANAGER
from registry.cluster.interface import HELMRELEASES, ClusterClient
from registry.names import DELETION_MARK_ANNOTATION, RELEASE_SELECTOR, UNCONFIRMED_ANNOTATION, release_name
from registry.tenant.convert import NotATenant, to_tenant
from registry.tenant.summary import TenantSummary, summarize
from registry.tenant.tree import TenantTree

_MAX_VERSIONS = 500
_PAGE = 500


@dataclass(frozen=True, slots=True)
class PastWrite:
    """A write, the Tenant as it was stored by it, and the verdict on it."""

    write: ProposedWrite
    stored: Object
    verdict: Verdict


class WriteHistory:
    """`tree` is the present one: its settings apply to those of the past, too."""

    def __init__(self, *, cluster: ClusterClient, tree: TenantTree) -> None:
        self._cluster = cluster
        self._tree = tree

    async def find(self, tenant: TenantSummary, mark: str) -> PastWrite | None:
        """The write of the mark; None if it cannot be found, or another program has written the mark, as a restore from
        a backup does. Raises StatusError: Expired if the cluster no longer has the history."""
        key, stored, previous = tenant.key, None, await self._release(tenant.key, tenant.rv)
        for _ in range(_MAX_VERSIONS):
            if previous is None or _annotation(previous, UNCONFIRMED_ANNOTATION) != mark:
                break
            stored, previous = previous, await self._release(key, _version(previous) - 1)
        else:
            return None
        if stored is None or not _is_marked_by_us(stored):
            return None
        try:
            return await self._judged(key, stored, previous)
        except NotATenant:
            return None

    async def _judged(self, key: Key, stored: Object, previous: Object | None) -> PastWrite:
        """Raises NotATenant."""
        same = previous is not None and previous["metadata"]["uid"] == stored["metadata"]["uid"]
        old = summarize(to_tenant(previous), key) if previous is not None and same else None
        found = to_tenant(stored)
        write = ProposedWrite(summarize(found, key), old)
        return PastWrite(write, found, await self._verdict(write))

    async def _verdict(self, write: ProposedWrite) -> Verdict:
        tree, deleted = TenantTree(root_host=self._tree.root_host, ratios=self._tree.ratios), set[Key]()
        yielder = Yielder()
        async for release in self._releases(write.new.rv):
            try:
                tenant = summarize(to_tenant(release))
            except NotATenant:
                continue
            tree.put(tenant)
            if _annotation(release, DELETION_MARK_ANNOTATION):
                deleted.add(tenant.key)
            await yielder.yield_if_due()
        return verdict_on(write, tree=tree, is_marked=deleted.__contains__)

    async def _release(self, key: Key, version: int) -> Object | None:
        """The HelmRelease of a Tenant at this resourceVersion of the cluster, None if it did not exist."""
        selector = f"metadata.name={release_name(key.name)}"
        listed = await self._cluster.list(
            HELMRELEASES, key.namespace, field_selector=selector, resource_version=str(version), limit=1
        )
        return next(iter(listed["items"]), None)

    async def _releases(self, version: int) -> AsyncIterator[Object]:
        """All HelmReleases of Tenants at this resourceVersion."""
        selection: dict[str, Any] = {"resource_version": str(version)}
        while True:
            page = await self._cluster.list(HELMRELEASES, label_selector=RELEASE_SELECTOR, limit=_PAGE, **selection)
            for each in page["items"]:
                yield each
            token = page["metadata"].get("continue")
            if not token:
                return
            selection = {"continue_token": token}


def _annotation(release: Object, name: str) -> str:
    value = (release["metadata"].get("annotations") or {}).get(name)
    return value if isinstance(value, str) else ""


def _is_marked_by_us(release: Object) -> bool:
    """True if managedFields attribute the mark to the field manager of Tenants."""
    for entry in release["metadata"].get("managedFields") or ():
        annotations = ((entry.get("fieldsV1") or {}).get("f:metadata") or {}).get("f:annotations") or {}
        if entry.get("manager") == FIELD_MANAGER and f"f:{UNCONFIRMED_ANNOTATION}" in annotations:
            return True
    return False


def _version(release: Object) -> int:
    return int(release["metadata"]["resourceVersion"])
