"""The read-only REST storage of TenantNamespaces. Those that are not visible to the caller do not exist for it."""

from __future__ import annotations

from apiserver import rest
from apiserver.meta import errors
from apiserver.meta.resource import Key, Resource
from apiserver.request.context import RequestContext
from apiserver.request.options import ListOptions, WatchOptions
from apiserver.storage.pagination import Page
from apiserver.storage.visibility import VisibilitySource
from apiserver.storage.watch_cache import CachedObject, CacheWatcher, WatchCache
from registry.application.release_backend import STALE_WARNING
from registry.tenantnamespace.watch_feed import TenantNamespaceFeed


class TenantNamespaces(rest.Getter, rest.Lister, rest.Watcher):
    def __init__(self, *, cache: WatchCache, feed: TenantNamespaceFeed, visibility: VisibilitySource) -> None:
        self._cache = cache
        self._feed = feed
        self._visibility = visibility

    @property
    def resource(self) -> Resource:
        return self._cache.resource

    async def get(self, context: RequestContext, key: Key, *, at_least: int = 0) -> CachedObject:
        errors.require_path_segment(key.name)
        self._warn(context)
        user_visibility = await self._visibility.for_user(context.user)
        found = await self._cache.get(key, at_least=at_least)
        # one code path for hidden and missing namespaces, so that clients cannot tell them apart (ATTACK-15)
        if found is None or not user_visibility.visible.includes_namespace(key.name):
            raise errors.NotFound(self.resource.group_resource, key.name)
        return found

    async def list(self, context: RequestContext, namespace: str, options: ListOptions) -> Page:
        self._warn(context)
        user_visibility = await self._visibility.for_user(context.user)
        return await self._cache.list("", options, visible=user_visibility.visible)

    async def watch(self, context: RequestContext, namespace: str, options: WatchOptions) -> CacheWatcher:
        self._warn(context)
        return await self._cache.watch("", options, visibility=await self._visibility.for_user(context.user))

    def _warn(self, context: RequestContext) -> None:
        if self._feed.cluster_error is not None:
            context.warn(STALE_WARNING)
