"""Feeds PersistentVolumes with a claim from an informer into a watch cache."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter

from apiserver.cooperative import iterate_cooperatively
from apiserver.encoding.encoded_object import at_version
from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Key, Object
from apiserver.storage.watch_cache import CachedObject, WatchCache, encode
from registry.cluster.event_handlers import EventHandler
from registry.persistentvolume.convert import claim_namespace, to_visible_volume

_by_key = attrgetter("key")


class ClaimedVolumeFeed(EventHandler):
    """The event handler of the informer. A volume is in the cache under the namespace of its claim: one that loses its
    claim is deleted, and one that gets that of another namespace is deleted there and added here. `cluster_error` is
    the reason why the cluster cannot be watched, or None."""

    def __init__(self, cache: WatchCache) -> None:
        self._cache = cache
        self._namespaces: dict[str, str] = {}
        self.cluster_error: StatusError | None = None

    async def replace(self, items: Sequence[Object], rv: int) -> None:
        claimed: list[CachedObject] = []
        async for item in iterate_cooperatively(items):
            if claim_namespace(item):
                claimed.append(self._encoded(item))
        self._namespaces = {each.key.name: each.key.namespace for each in claimed}
        await self._cache.replace_cooperatively(sorted(claimed, key=_by_key), rv)

    def apply(self, type: str, obj: Object, rv: int) -> None:
        name = obj["metadata"]["name"]
        now = claim_namespace(obj) if type != "DELETED" else ""
        before = self._namespaces.pop(name, "")
        cached = self._cache.peek(Key(before, name)) if before else None
        if now:
            self._namespaces[name] = now
        if cached is None or before == now:
            if now:
                self._cache.apply("ADDED" if cached is None else "MODIFIED", self._encoded(obj))
            else:
                self._cache.advance(rv)
        elif not now:
            self._cache.apply("DELETED", at_version(self._cache.resource, cached, rv))
        else:
            others = [each for each in self._cache if each.key != cached.key]
            self._cache.replace(sorted([*others, self._encoded(obj)], key=_by_key), rv)

    def bookmark(self, rv: int) -> None:
        self._cache.advance(rv)

    def set_cluster_error(self, error: StatusError | None) -> None:
        self.cluster_error = error

    def _encoded(self, volume: Object) -> CachedObject:
        return encode(self._cache.resource, to_visible_volume(volume))
