"""A fake cluster of HelmReleases, with a backend and a watch feed of Tenants over it."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

from apiserver.meta import errors
from apiserver.meta.resource import GroupKind, GroupResource, Key, Object
from apiserver.request.context import RequestContext
from apiserver.request.options import DeleteOptions
from apiserver.storage.watch_cache import WatchCache
from registry.application.release_cache import ReleaseCache, trim_release
from registry.cluster.interface import HELMRELEASES, ClusterResource, ClusterUnreachable, NotServed
from registry.names import release_name
from registry.tenant.release_settings import ReleaseSettings
from registry.tenant.storage import TenantBackend
from registry.tenant.types import tenant_resource
from registry.tenant.watch_feed import TenantFeed
from tests.run_coroutine import run_coroutine

KEY = Key("tenant-root", "alice")
RELEASES = GroupResource(HELMRELEASES.group, HELMRELEASES.plural)


class FakeReleaseCluster:
    """A cluster with HelmReleases. `deliver` sends the pending events to a feed."""

    def __init__(self) -> None:
        self.rv = 10
        self.objects: dict[tuple[str, str], Object] = {}
        self.store: dict[Key, Object] = {}
        self.writes: list[str] = []
        self.events: list[tuple[str, Object, int]] = []
        self.unreachable = False
        self.serves_releases = True
        self.writing = asyncio.Event()
        self.may_finish = asyncio.Event()
        self.may_finish.set()

    async def get(self, res: ClusterResource, namespace: str, name: str) -> Object:
        self._reached()
        return copy.deepcopy(self._found(namespace, name))

    async def create(
        self, res: ClusterResource, obj: Object, *, namespace: str = "", dry_run: bool = False, field_manager: str = ""
    ) -> Object:
        await self._write(f"create {field_manager}{' dry' if dry_run else ''}")
        key = obj["metadata"]["namespace"], obj["metadata"]["name"]
        if key in self.objects:
            raise errors.AlreadyExists(RELEASES, key[1])
        stored = copy.deepcopy(obj)
        stored["metadata"] |= {"uid": f"u-{key[1]}", "generation": 1, "creationTimestamp": "2026-01-01T00:00:00Z"}
        return stored if dry_run else self._store("ADDED", stored)

    async def update(
        self,
        res: ClusterResource,
        obj: Object,
        *,
        subresource: str = "",
        dry_run: bool = False,
        field_manager: str = "",
    ) -> Object:
        await self._write("update dry" if dry_run else "update")
        stored_release = self._found(obj["metadata"]["namespace"], obj["metadata"]["name"])
        if stored_release["metadata"]["resourceVersion"] != obj["metadata"]["resourceVersion"]:
            raise errors.Conflict(RELEASES, obj["metadata"]["name"])
        stored = copy.deepcopy(obj) | {"status": stored_release.get("status", {})}
        return stored if dry_run else self._store("MODIFIED", stored)

    async def delete(
        self, res: ClusterResource, namespace: str, name: str, *, options: Mapping[str, Any] | None = None
    ) -> Object:
        assert options is not None
        await self._write(f"delete {sorted(options)}")
        stored_release = self._found(namespace, name)
        if options["preconditions"]["resourceVersion"] != stored_release["metadata"]["resourceVersion"]:
            raise errors.Conflict(GroupKind(HELMRELEASES.group, HELMRELEASES.kind), name, "Precondition failed")
        if stored_release["metadata"].get("finalizers"):
            stored_release["metadata"]["deletionTimestamp"] = "2026-01-02T00:00:00Z"
            return self._store("MODIFIED", stored_release)
        if "dryRun" not in options:
            del self.objects[namespace, name]
            self.rv += 1
            deleted = stored_release | {"metadata": stored_release["metadata"] | {"resourceVersion": str(self.rv)}}
            self.events.append(("DELETED", deleted, self.rv))
        return {"kind": "Status", "status": "Success"}

    def put(self, obj: Object) -> None:
        self._store("ADDED", copy.deepcopy(obj))

    def remove(self, key: Key) -> None:
        removed = self.objects.pop((key.namespace, release_name(key.name)))
        self.rv += 1
        removed["metadata"]["resourceVersion"] = str(self.rv)
        self.events.append(("DELETED", removed, self.rv))

    def deliver(self, feed: TenantFeed) -> None:
        for type_, obj, rv in self.events:
            key = Key(obj["metadata"]["namespace"], obj["metadata"]["name"])
            if type_ == "DELETED":
                self.store.pop(key, None)
            else:
                self.store[key] = trim_release(obj)
            feed.apply(type_, trim_release(obj), rv)
        self.events.clear()

    async def _write(self, what: str) -> None:
        self._reached()
        self.writes.append(what)
        self.writing.set()
        await self.may_finish.wait()

    def _reached(self) -> None:
        if not self.serves_releases:
            raise NotServed
        if self.unreachable:
            raise ClusterUnreachable

    def _found(self, namespace: str, name: str) -> Object:
        found = self.objects.get((namespace, name))
        if found is None:
            raise errors.from_status(errors.NotFound(RELEASES, name).status(), 404)
        return found

    def _store(self, type_: str, obj: Object) -> Object:
        self.rv += 1
        obj["metadata"]["resourceVersion"] = str(self.rv)
        self.objects[obj["metadata"]["namespace"], obj["metadata"]["name"]] = obj
        self.events.append((type_, copy.deepcopy(obj), self.rv))
        return copy.deepcopy(obj)


class World:
    def __init__(self) -> None:
        self.cluster = FakeReleaseCluster()
        resource = tenant_resource()
        self.cache = WatchCache(resource)
        self.retries = 0
        self.feed = TenantFeed(resource=resource, cache=self.cache, retry=self._retry)
        run_coroutine(self.feed.replace([], self.cluster.rv))
        self.backend = TenantBackend(
            cluster=cast(Any, self.cluster),
            cache=self.cache,
            feed=self.feed,
            releases=ReleaseCache(self.cluster.store),
            settings=ReleaseSettings,
        )

    def _retry(self) -> None:
        self.retries += 1

    async def create(self, obj: Object, *, dry_run: bool = False) -> Object:
        return await self.backend.create(obj, dry_run=dry_run, context=CONTEXT)

    async def update(self, new: Object, current: Object, *, dry_run: bool = False) -> Object:
        return await self.backend.update(KEY, new, current, dry_run=dry_run, context=CONTEXT)

    async def delete(self, current: Object, options: DeleteOptions = DeleteOptions()) -> Any:  # noqa: B008
        return await self.backend.delete(KEY, current, options, context=CONTEXT)


CONTEXT = cast(RequestContext, SimpleNamespace(info=SimpleNamespace(verb="update")))


def tenant(**spec: Any) -> Object:
    return {"metadata": {"name": "alice", "namespace": "tenant-root"}, "spec": spec}
