"""A projection over the fake cluster, with an informer that runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

from apiserver.meta.resource import Key, Object, Resource
from apiserver.request.context import RequestContext, User
from apiserver.storage.event_history import CacheEvent
from apiserver.storage.visibility import EVERYTHING, Visibility, VisibilityChange, VisibleObjects
from apiserver.storage.watch_cache import WatchCache
from apiserver.storage.watcher import CacheWatcher
from registry.cluster.informer import Informer
from registry.cluster.interface import ClusterResource
from registry.projection.feed import ProjectionFeed
from tests.fake_cluster import FakeCluster

SELECTOR = "shown=true"
WIDGET = Resource(
    group="example.org", version="v1", kind="Widget", plural="widgets", singular="widget", namespaced=True
)
SOURCES = ClusterResource("", "v1", "configmaps", "ConfigMap")


def to_widget(obj: Object) -> Object:
    metadata = {field: obj["metadata"][field] for field in ("name", "namespace", "uid", "resourceVersion")}
    return {"metadata": metadata, "value": obj.get("value")}


def shows(obj: Object) -> bool:
    return bool((obj["metadata"].get("labels") or {}).get("shown") == "true")


def source(name: str, value: str = "", *, shown: bool = True, namespace: str = "one", **fields: Any) -> Object:
    labels = {"shown": "true"} if shown else {}
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-{name}", "labels": labels}
    return {"metadata": metadata, "value": value, **fields}


class FixedVisibility:
    """Everybody sees the same."""

    def __init__(self, visible: VisibleObjects = EVERYTHING) -> None:
        self.visible = visible

    async def for_user(self, user: User) -> Visibility:
        return self

    def change_since(self, rv: int, sent: tuple[float, float]) -> VisibilityChange | None:
        return VisibilityChange(self.visible, self.visible, self.visible, rv)

    def subscribe(self, callback: Callable[[VisibilityChange], None]) -> Callable[[], None]:
        return lambda: None


class ProjectionWorld:
    def __init__(self, cluster: FakeCluster | None = None) -> None:
        self.cluster = cluster or FakeCluster()
        self.cache = WatchCache(WIDGET)
        self.informer = Informer(self.cluster, SOURCES, label_selector=SELECTOR, store_objects=False)
        self.feed = ProjectionFeed(self.cache, shows=shows, convert=to_widget, retry=self.informer.retry_now)
        self.informer.add_handler(self.feed)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.informer.run())
        try:
            yield
        finally:
            task.cancel()

    async def settle(self) -> None:
        """Waits until the cache has everything that the cluster has."""
        assert await self.cache.reaches(self.cluster.rv, 5)

    def names(self) -> list[Key]:
        return [each.key for each in self.cache]


def request(verb: str = "get", user: str = "alice", warnings: list[str] | None = None) -> RequestContext:
    noted = warnings if warnings is not None else []
    context = SimpleNamespace(info=SimpleNamespace(verb=verb), user=User(name=user), warn=noted.append)
    return cast(RequestContext, context)


async def events_of(watch: CacheWatcher, number: int) -> list[tuple[str, str]]:
    """The types and names of the next events."""
    found: list[tuple[str, str]] = []
    async with asyncio.timeout(5):
        async for batch in watch:
            found += [(item.type, item.object.key.name) for item in batch if isinstance(item, CacheEvent)]
            if len(found) >= number:
                break
    return found
