"""Marks Tenants that are about to be deleted, so that no replica creates a child in them.

The mark is an annotation of the HelmRelease: the identity of the replica and a number. At its event, a replica has seen
every child that was created before; children that are created after it are refused, or withdrawn at their own event.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count

from admission.tenant.claims.claim import EXPIRY_SECONDS
from admission.tenant.claims.judge import Held
from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Key
from apiserver.patch.media_types import MERGE_PATCH
from apiserver.storage.watch_cache import WatchCache
from registry.cluster.interface import HELMRELEASES, ClusterClient
from registry.names import DELETION_MARK_ANNOTATION, release_name
from registry.tenant.convert_errors import to_tenant_error

_CATCH_UP_SECONDS = 3.0
_FIELD_MANAGER = "tenant-apiserver"


class DeletionMarks:
    """`marks` are those that the `cache` contains, by Tenant. `clock` must advance while the process is suspended."""

    def __init__(
        self,
        *,
        cluster: ClusterClient,
        cache: WatchCache,
        marks: Mapping[Key, str],
        holder: str,
        clock: Callable[[], float],
    ) -> None:
        self._cluster = cluster
        self._cache = cache
        self._marks = marks
        self._prefix = f"{holder}-"
        self._clock = clock
        self._numbers = count(1)
        self._first_seen: dict[Key, tuple[str, float]] = {}

    def is_marked(self, key: Key) -> bool:
        return key in self._marks

    def has_marked(self, key: Key) -> bool:
        """True if the Tenant has a mark of this replica."""
        return self._marks.get(key, "").startswith(self._prefix)

    async def require_unmarked(self, key: Key) -> None:
        """Raises Held while the Tenant has a mark. One that is too old is removed: its holder was killed, or will find
        that the Tenant has changed."""
        mark = self._marks.get(key)
        if mark is None:
            self._first_seen.pop(key, None)
            return
        seen_mark, since = self._first_seen.get(key, ("", 0.0))
        if seen_mark != mark:
            self._first_seen[key] = mark, self._clock()
            raise Held
        if self._clock() - since < EXPIRY_SECONDS:
            raise Held
        cached = self._cache.peek(key)
        if cached is not None and not await self._cache.reaches(await self.remove(key, cached.rv), _CATCH_UP_SECONDS):
            raise Held

    async def mark(self, key: Key, version: int) -> int:
        """Marks the Tenant if it still has this resourceVersion, and returns the new one. Raises Conflict, NotFound."""
        return await self._patch(key, version, f"{self._prefix}{next(self._numbers)}")

    async def remove(self, key: Key, version: int) -> int:
        """Removes the mark if the Tenant still has this resourceVersion, and returns the new one. Raises Conflict,
        NotFound."""
        return await self._patch(key, version, None)

    async def _patch(self, key: Key, version: int, mark: str | None) -> int:
        metadata = {"resourceVersion": str(version), "annotations": {DELETION_MARK_ANNOTATION: mark}}
        try:
            patched = await self._cluster.patch(
                HELMRELEASES,
                key.namespace,
                release_name(key.name),
                {"metadata": metadata},
                content_type=MERGE_PATCH,
                field_manager=_FIELD_MANAGER,
            )
        except StatusError as e:
            raise to_tenant_error(e, key) from e
        return int(patched["metadata"]["resourceVersion"])
