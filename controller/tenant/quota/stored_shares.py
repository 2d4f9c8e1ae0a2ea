"""The shares of all namespaces in pools of quota as the cluster has stored them, not as an informer has seen them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from apiserver.meta.resource import Object
from registry.cluster.interface import RESOURCEQUOTAS, ClusterClient
from registry.cluster.object_store import key_of
from registry.tenant.pool_quotas import POOL_NAME, WITNESS_NAME, PoolQuotas, Shares, joined, shares_of
from registry.tenant.quota_pools import NOTHING, Share

_SECONDS = 1.0


class StoredShares:
    """One list serves the writes of a second, so that a change of a pool of n namespaces does not cost n lists.

    With our own writes noted, a list shows at least what the namespaces may use later: their use stays below their
    limits, and nobody else raises these. Only the next list shows the amount that a namespace releases, because the
    quota controller may still put the former limit into effect. It is read once an informer has seen a release.
    """

    def __init__(self, cluster: ClusterClient, quotas: PoolQuotas, witnesses: PoolQuotas) -> None:
        self._cluster = cluster
        self._quotas = quotas
        self._witnesses = witnesses
        self._found: dict[str, Shares] | None = None
        self._read_at = 0.0
        self._changes = 0
        quotas.subscribe(self._on_change)
        witnesses.subscribe(self._on_change)

    async def read(self) -> Mapping[str, Shares]:
        """The greater amounts of the two ResourceQuotas of each namespace. Raises the cluster's StatusError."""
        now = asyncio.get_running_loop().time()
        if self._found is not None and now - self._read_at < _SECONDS:
            return self._found
        found: dict[str, Shares] = {}
        changes = self._changes

        def visit(quota: Object) -> None:
            namespace = key_of(quota).namespace
            found[namespace] = joined(found.get(namespace, {}), shares_of(quota))

        # a limit is lowered in `tenant-pool` first, so that one that is moved meanwhile is seen at least once
        for name in (WITNESS_NAME, POOL_NAME):
            await self._cluster.each_list_item(RESOURCEQUOTAS, visit=visit, field_selector=f"metadata.name={name}")
        for namespace, shares in self._quotas.kept().items():
            found.setdefault(namespace, shares)
        # a list can be older than a change that has been seen meanwhile: no further event would tell
        self._found, self._read_at = found if self._changes == changes else None, now
        return found

    def note(self, namespace: str, limits: Mapping[str, int]) -> None:
        """Limits, by canonical key, that are about to be written."""
        if self._found is not None:
            known = self._found.get(namespace, {})
            noted = {key: _noted(known.get(key, NOTHING), hard) for key, hard in limits.items()}
            self._found[namespace] = {**known, **noted}

    def _on_change(self, namespace: str, before: Shares, after: Shares) -> None:
        self._changes += 1
        known = (self._found or {}).get(namespace, {})
        now = joined(self._quotas.of(namespace), self._witnesses.of(namespace))
        if any(share.ceiling > now.get(key, NOTHING).ceiling for key, share in known.items()):
            self._found = None


def _noted(share: Share, hard: int) -> Share:
    return Share(share.used, hard, max(share.admitted or 0, share.hard or 0))
