"""Prepares the deletion of Tenants without children, so that no other replica creates one meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any

from admission.complete_caches import CompleteCaches
from admission.tenant.claims.deletion_marks import DeletionMarks
from admission.tenant.claims.judge import Held
from admission.tenant.claims.own_events import OwnEvents
from admission.tenant.claims.parent_locks import ParentLocks
from admission.tenant.deletion import is_foreground
from apiserver.admission import Attributes
from apiserver.meta.errors import StatusError
from apiserver.storage.watch_cache import WatchCache
from registry.tenant.summary import TenantSummary
from registry.tenant.tree import TenantTree

_CATCH_UP_SECONDS = 3.0
_CLEAN_UP_SECONDS = 1.0


def needs_mark(tenant: TenantSummary, options: Mapping[str, Any]) -> bool:
    """False for a deletion that includes the children, and for one that is under way already: no child can be created
    then. `options` are DeleteOptions."""
    return not (is_foreground(tenant, options) or tenant.allow_cascade or tenant.terminating or tenant.is_root)


class TenantDeleter:
    def __init__(
        self,
        *,
        tree: TenantTree,
        cache: WatchCache,
        events: OwnEvents,
        marks: DeletionMarks,
        locks: ParentLocks,
        caches: CompleteCaches,
    ) -> None:
        self._tree = tree
        self._cache = cache
        self._events = events
        self._marks = marks
        self._locks = locks
        self._caches = caches
        self._cleaning: dict[str, asyncio.Task[None]] = {}

    async def require_unmarked(self, namespace: str) -> None:
        """Raises Held while the Tenant of a workload namespace is about to be deleted."""
        parent = self._tree.by_namespace(namespace)
        if parent is not None:
            await self._marks.require_unmarked(parent.key)

    async def prepare(
        self, tenant: TenantSummary, attributes: Attributes, refuse: Callable[[], Awaitable[None]]
    ) -> int:
        """Marks the Tenant if that is necessary, and returns the resourceVersion at which it may be deleted.

        `refuse` raises the error of admission for a Tenant with children, unless these go as well. The caller holds the
        lock for the deletion, and calls `clean_up` if it fails.
        """
        if not needs_mark(tenant, attributes.options):
            return tenant.rv
        if await self._has_children(tenant, refuse) or attributes.dry_run:
            return tenant.rv
        if self._is_marked_at(tenant, tenant.rv):
            return tenant.rv
        version, had_children = await self._mark(tenant)
        if had_children:
            try:
                await refuse()
            except StatusError:
                with suppress(StatusError):
                    await self._marks.remove(tenant.key, version)
                raise
        return version

    async def _mark(self, tenant: TenantSummary) -> tuple[int, bool]:
        """Marks the Tenant, and returns the resourceVersion of the mark and whether the Tenant had children then."""
        observed = self._events.observe(tenant.key, lambda: bool(self._tree.children(tenant.namespace)))
        try:
            version = await self._marks.mark(tenant.key, tenant.rv)
            had_children = await self._events.result(observed, version, seconds=_CATCH_UP_SECONDS)
            if had_children is None:
                raise Held
        except BaseException:
            # it may have been written all the same
            self._clean_up_later(tenant)
            raise
        finally:
            self._events.forget(observed)
        return version, had_children

    def clean_up(self, tenant: TenantSummary) -> None:
        """Removes the mark of a deletion that failed, unless the next attempt follows at once."""
        if self._marks.has_marked(tenant.key):
            self._clean_up_later(tenant)

    def _clean_up_later(self, tenant: TenantSummary) -> None:
        namespace = tenant.namespace
        if namespace in self._cleaning:
            return
        task = asyncio.ensure_future(self._clean_up(tenant))
        self._cleaning[namespace] = task
        task.add_done_callback(lambda _: self._cleaning.pop(namespace, None))

    async def _has_children(self, tenant: TenantSummary, refuse: Callable[[], Awaitable[None]]) -> bool:
        """Returns True for children that do not keep the Tenant from being deleted."""
        await self._caches.wait()
        if not self._tree.children(tenant.namespace):
            return False
        await refuse()
        return bool(self._tree.children(tenant.namespace))

    def _is_marked_at(self, tenant: TenantSummary, version: int) -> bool:
        """True if the Tenant has had a mark, of whichever replica, since a version that the cache has."""
        cached = self._cache.peek(tenant.key)
        return cached is not None and cached.rv == version and self._marks.is_marked(tenant.key)

    async def _clean_up(self, tenant: TenantSummary) -> None:
        await asyncio.sleep(_CLEAN_UP_SECONDS)
        async with self._locks.deleting(tenant.namespace):
            cached = self._cache.peek(tenant.key)
            if cached is None or not self._marks.has_marked(tenant.key):
                return
            # otherwise the next creation of a child removes the mark once it has expired
            with suppress(StatusError):
                await self._marks.remove(tenant.key, cached.rv)
