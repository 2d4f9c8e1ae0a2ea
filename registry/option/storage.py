"""The read-only REST storage of Options. Nothing is stored: a namespace gets its options when somebody asks for them.

Versions are times, in milliseconds since the epoch, so that a version of another process is never taken for one of
ours: a watch that resumes from before the options of its namespace were computed gets 410.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from apiserver import rest
from apiserver.encoding.encoded_object import CachedObject, encode
from apiserver.meta import errors
from apiserver.meta.resource import Key, Object, Resource
from apiserver.request.context import RequestContext
from apiserver.request.options import ListOptions, WatchOptions
from apiserver.storage.pagination import Page
from apiserver.storage.visibility import VisibilitySource
from apiserver.storage.watch_cache import CacheWatcher, WatchCache
from registry.option.items import Items

_MAX_NAMESPACES = 512
_NEWER_MS = 10_000
"""Options that are read again are complete up to a version that is at most this old: the rights of users are not known
at every earlier version, and a watch resumes only from one at which they are."""


@dataclass(frozen=True, kw_only=True)
class OptionSource:
    """`items` returns the choices in a namespace ('' for the whole cluster), and `is_known` is False while they are not
    known. The items of a namespaced source depend on the namespace."""

    namespaced: bool
    items: Callable[[str], Items]
    is_known: Callable[[], bool]


class Options(rest.Getter, rest.Lister, rest.Watcher):
    """Options by namespace: those of the namespaces that were asked for recently are kept, and so are watched ones."""

    def __init__(
        self,
        *,
        resource: Resource,
        sources: Mapping[str, OptionSource],
        visibility: VisibilitySource,
        new_cache: Callable[[Resource], WatchCache],
        now: Callable[[], float] = time.time,
    ) -> None:
        """`now` returns seconds since the epoch."""
        self._resource = resource
        self._sources = sources
        self._visibility = visibility
        self._new_cache = new_cache
        self._now = now
        self._caches: OrderedDict[str, WatchCache] = OrderedDict()

    @property
    def resource(self) -> Resource:
        return self._resource

    @property
    def namespaces(self) -> Sequence[str]:
        """Those whose options are kept."""
        return tuple(self._caches)

    async def get(self, context: RequestContext, key: Key, *, at_least: int = 0) -> CachedObject:
        errors.require_path_segment(key.name)
        source = self._sources.get(key.name)
        if source is None:
            raise errors.NotFound(self._resource.group_resource, key.name)
        found = await self._cache(key.namespace).get(key, at_least=at_least)
        if found is None:
            raise errors.ServiceUnavailable(f"the options for {key.name} are not known at present", retry_after=1)
        return found

    async def list(self, context: RequestContext, namespace: str, options: ListOptions) -> Page:
        user_visibility = await self._visibility.for_user(context.user)
        return await self._cache(namespace).list(namespace, options, visible=user_visibility.visible)

    async def watch(self, context: RequestContext, namespace: str, options: WatchOptions) -> CacheWatcher:
        visibility = await self._visibility.for_user(context.user)
        return await self._cache(namespace).watch(namespace, options, visibility=visibility)

    def changed(self, name: str, namespace: str = "") -> None:
        """A source has changed: in one namespace, or in all if it is not namespaced."""
        affected = [namespace] if self._sources[name].namespaced else list(self._caches)
        for each in affected:
            if (cache := self._caches.get(each)) is not None:
                self._refresh(cache, name, each)

    def known(self, name: str) -> None:
        """A source has become known."""
        for namespace, cache in self._caches.items():
            self._refresh(cache, name, namespace)

    def _cache(self, namespace: str) -> WatchCache:
        cache = self._caches.get(namespace)
        if cache is None:
            cache = self._new_cache(self._resource)
            version = self._version(cache)
            computed = [self._option(name, namespace, version) for name in sorted(self._sources)]
            cache.replace([each for each in computed if each is not None], version)
            self._caches[namespace] = cache
            self._evict()
        else:
            self._bring_up_to_date(cache, namespace)
        self._caches.move_to_end(namespace)
        return cache

    def _bring_up_to_date(self, cache: WatchCache, namespace: str) -> None:
        if len(cache) < len(self._sources):
            for name in self._sources:
                self._refresh(cache, name, namespace)
        version = self._version(cache)
        if version > cache.rv + _NEWER_MS:
            cache.advance(version)

    def _evict(self) -> None:
        unwatched = [namespace for namespace, cache in self._caches.items() if not cache.watchers]
        for namespace in unwatched[: max(0, len(self._caches) - _MAX_NAMESPACES)]:
            self._caches.pop(namespace).close()

    def _refresh(self, cache: WatchCache, name: str, namespace: str) -> None:
        version = self._version(cache)
        before, after = cache.peek(Key(namespace, name)), self._option(name, namespace, version)
        if after is None:
            if before is not None:
                cache.apply("DELETED", encode(self._resource, _with_version(before.object(), version)))
        elif before is None:
            cache.apply("ADDED", after)
        elif before.object()["spec"] != after.object()["spec"]:
            cache.apply("MODIFIED", after)

    def _option(self, name: str, namespace: str, version: int) -> CachedObject | None:
        source = self._sources[name]
        if not source.is_known():
            return None
        metadata: Object = {"name": name} | ({"namespace": namespace} if namespace else {})
        spec = {"items": list(source.items(namespace))}
        return encode(self._resource, _with_version({"metadata": metadata, "spec": spec}, version))

    def _version(self, cache: WatchCache) -> int:
        return max(int(self._now() * 1000), cache.rv + 1)


def _with_version(obj: Object, version: int) -> Object:
    return {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(version)}}
