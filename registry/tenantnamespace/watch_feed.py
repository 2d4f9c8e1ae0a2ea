"""Feeds Namespaces from an informer into the watch cache of TenantNamespaces."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from apiserver.cooperative import iterate_cooperatively
from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Key, Object
from apiserver.storage.watch_cache import CachedObject, WatchCache, encode
from registry.cluster.event_handlers import EventHandler
from registry.tenantnamespace.convert import is_tenant_namespace, to_tenant_namespace


class TenantNamespaceFeed(EventHandler):
    """The event handler of the informer. `convert` returns the form in which the Namespace of a tenant is served.
    `cluster_error` is the reason why the cluster cannot be watched, or None."""

    def __init__(self, cache: WatchCache, convert: Callable[[Object], Object] = to_tenant_namespace) -> None:
        self._cache = cache
        self._convert = convert
        self.cluster_error: StatusError | None = None

    async def replace(self, items: Sequence[Object], rv: int) -> None:
        shown: dict[str, CachedObject] = {}
        async for item in iterate_cooperatively(items):
            if is_tenant_namespace(item):
                shown[item["metadata"]["name"]] = encode(self._cache.resource, self._convert(item))
        await self._cache.replace_cooperatively([shown[name] for name in sorted(shown)], rv)

    def apply(self, type: str, obj: Object, rv: int) -> None:
        cached_before = self._cache.peek(Key("", obj["metadata"]["name"]))
        if type != "DELETED" and is_tenant_namespace(obj):
            converted = encode(self._cache.resource, self._convert(obj))
            self._cache.apply("ADDED" if cached_before is None else "MODIFIED", converted)
        elif cached_before is not None:
            # a Namespace that has lost the label counts as deleted
            last = cached_before.object()
            last["metadata"]["resourceVersion"] = str(rv)
            self._cache.apply("DELETED", encode(self._cache.resource, last))
        else:
            self._cache.advance(rv)

    def bookmark(self, rv: int) -> None:
        self._cache.advance(rv)

    def set_cluster_error(self, error: StatusError | None) -> None:
        self.cluster_error = error
