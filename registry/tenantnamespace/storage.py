"""The read-only REST storage of TenantNamespaces. Those that are not visible to the caller do not exist for it."""

from __future__ import annotations

from apiserver import rest
from apiserver.meta import errors
from apiserver.meta.resource import Key
from apiserver.request.context import RequestContext
from apiserver.storage.visibility import VisibilitySource
from apiserver.storage.watch_cache import CachedObject, WatchCache
from registry.projection.readable import warns_if_stale
from registry.projection.storage import VisibleCollection
from registry.tenantnamespace.watch_feed import TenantNamespaceFeed


class TenantNamespaces(VisibleCollection, rest.Getter):
    def __init__(self, *, cache: WatchCache, feed: TenantNamespaceFeed, visibility: VisibilitySource) -> None:
        super().__init__(cache=cache, visibility=visibility, check=warns_if_stale(feed, cache))

    async def get(self, context: RequestContext, key: Key, *, at_least: int = 0) -> CachedObject:
        errors.require_path_segment(key.name)
        self._check(context)
        user_visibility = await self._visibility.for_user(context.user)
        found = await self._cache.get(key, at_least=at_least)
        # one code path for hidden and missing namespaces, so that clients cannot tell them apart (ATTACK-15)
        if found is None or not user_visibility.visible.includes_namespace(key.name):
            raise errors.NotFound(self.resource.group_resource, key.name)
        return found
