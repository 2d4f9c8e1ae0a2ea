"""A server of one kind over a watch cache, with the handlers get, list and watch."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from aiohttp import ClientResponse, web
from aiohttp.test_utils import TestClient

from apiserver import rest
from apiserver.meta import errors
from apiserver.meta.resource import Column, Key, Object, Resource
from apiserver.request.context import RequestContext
from apiserver.request.options import ListOptions, WatchOptions
from apiserver.storage.pagination import Page
from apiserver.storage.watch_cache import CachedObject, CacheWatcher, WatchCache, encode

THINGS = Resource(
    group="g.example.org",
    version="v1",
    kind="Thing",
    plural="things",
    singular="thing",
    namespaced=True,
    columns=(Column("Size", type="integer"),),
    cells=lambda obj: [obj["spec"]["size"]],
)
BASE = "/apis/g.example.org/v1"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PARTIAL = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
PARTIAL_LIST = PARTIAL.replace("Metadata;", "MetadataList;")


def thing(name: str, rv: int, *, namespace: str = "a", size: int = 1, padding: str = "") -> Object:
    metadata = {"name": name, "namespace": namespace, "uid": name, "resourceVersion": str(rv)}
    spec = {"size": size, "padding": padding} if padding else {"size": size}
    return {"apiVersion": "g.example.org/v1", "kind": "Thing", "metadata": metadata, "spec": spec}


def cached(name: str, rv: int, **settings: Any) -> CachedObject:
    return encode(THINGS, thing(name, rv, **settings))


class Things(rest.Getter, rest.Lister, rest.Watcher):
    resource = THINGS

    def __init__(self, cache: WatchCache) -> None:
        self._cache = cache

    async def get(self, context: RequestContext, key: Key, *, at_least: int = 0) -> CachedObject:
        found = await self._cache.get(key, at_least=at_least)
        if found is None:
            raise errors.NotFound(THINGS.group_resource, key.name)
        return found

    async def list(self, context: RequestContext, namespace: str, options: ListOptions) -> Page:
        return await self._cache.list(namespace, options)

    async def watch(self, context: RequestContext, namespace: str, options: WatchOptions) -> CacheWatcher:
        return await self._cache.watch(namespace, options)


@dataclass
class Server:
    """A server that serves `cache`, and its client."""

    client: TestClient[web.Request, web.Application]
    cache: WatchCache
    shutdown: asyncio.Event
    finished: asyncio.Queue[str]

    async def wait_until_answered(self) -> None:
        """Wait until a request has been answered completely or aborted."""
        async with asyncio.timeout(5):
            await self.finished.get()

    async def ask(self, path: str, accept: str = "", **headers: str) -> ClientResponse:
        return await self.client.get(
            f"{BASE}{path}",
            headers={"Accept": accept or "application/json", **headers},
            skip_auto_headers=["User-Agent", "Accept-Encoding"],
        )
