"""The read-only REST storages of what is watched: lists and watches have the objects that the caller may see."""

from __future__ import annotations

from collections.abc import Callable

from apiserver import rest
from apiserver.meta import errors
from apiserver.meta.resource import Key, Resource
from apiserver.request.context import RequestContext
from apiserver.request.options import ListOptions, WatchOptions
from apiserver.storage.pagination import Page
from apiserver.storage.visibility import VisibilitySource
from apiserver.storage.watch_cache import CachedObject, CacheWatcher, WatchCache

CheckReadable = Callable[[RequestContext], None]
"""Called before each read: adds a warning if what is read may be out of date, or raises ServiceUnavailable if nothing
can be read at present."""


class VisibleCollection(rest.Lister, rest.Watcher):
    """Lists and watches of a cache."""

    def __init__(self, *, cache: WatchCache, visibility: VisibilitySource, check: CheckReadable) -> None:
        self._cache = cache
        self._visibility = visibility
        self._check = check

    @property
    def resource(self) -> Resource:
        return self._cache.resource

    async def list(self, context: RequestContext, namespace: str, options: ListOptions) -> Page:
        self._check(context)
        user_visibility = await self._visibility.for_user(context.user)
        return await self._cache.list(namespace, options, visible=user_visibility.visible)

    async def watch(self, context: RequestContext, namespace: str, options: WatchOptions) -> CacheWatcher:
        self._check(context)
        return await self._cache.watch(namespace, options, visibility=await self._visibility.for_user(context.user))


class ReadOnlyProjection(VisibleCollection, rest.Getter):
    """A user who is authorized to get an object gets it."""

    async def get(self, context: RequestContext, key: Key, *, at_least: int = 0) -> CachedObject:
        errors.require_path_segment(key.name)
        self._check(context)
        found = await self._cache.get(key, at_least=at_least)
        if found is None:
            raise errors.NotFound(self.resource.group_resource, key.name)
        return found
