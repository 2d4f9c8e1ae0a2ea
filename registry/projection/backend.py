"""The Backend of projections that clients write: each is one object of the cluster, of the same name.

Reads come from the watch cache that the informer feeds. A write starts from the object as the cluster has it, and is
conditional on its resourceVersion. An object that the projection does not show is never read, changed or adopted.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from apiserver import rest
from apiserver.meta import errors
from apiserver.meta.resource import Key, Object
from apiserver.request.context import RequestContext
from apiserver.request.options import DeleteOptions
from apiserver.storage.watch_cache import WatchCache
from registry.application.release_backend import FIELD_MANAGER
from registry.cluster.interface import ClusterClient, ClusterResource
from registry.cluster.object_store import version_of
from registry.generic.deletion import delete_body
from registry.generic.run_to_end import run_to_end
from registry.generic.translated_errors import translated_errors
from registry.projection.errors import not_permitted, translate
from registry.projection.feed import ProjectionFeed
from registry.projection.storage import CheckReadable


class Conversion(Protocol):
    """Converts the objects of the cluster. Pure; keys stay the same."""

    def shows(self, stored: Object) -> bool: ...

    def to_object(self, stored: Object) -> Object: ...

    def to_new(self, obj: Object) -> Object:
        """The object of the cluster for a new object."""
        ...

    def to_changed(self, obj: Object, current: Object) -> Object:
        """A copy of `current` with the changes of the object; equal to it if there are none."""
        ...


@dataclass(frozen=True, kw_only=True)
class ProjectionParts:
    """`stored` is the kind of the objects in the cluster; `check` is called before reads. `missing` is the message of
    errors while the cluster does not serve that kind."""

    cluster: ClusterClient
    stored: ClusterResource
    feed: ProjectionFeed
    conversion: Conversion
    check: CheckReadable
    missing: str = ""


class ProjectionBackend:
    """Raises kube-apiserver's errors as errors about the projection, and ClusterUnreachable without a response."""

    def __init__(self, parts: ProjectionParts) -> None:
        self._cluster = parts.cluster
        self._stored = parts.stored
        self._feed = parts.feed
        self._conversion = parts.conversion
        self._check = parts.check
        self._missing = parts.missing

    @property
    def cache(self) -> WatchCache:
        return self._feed.cache

    def before_read(self, context: RequestContext) -> None:
        self._check(context)

    @property
    def is_only_writer(self) -> bool:
        return False

    async def read(self, key: Key, *, live: bool) -> Object | None:
        if not live:
            # an empty cache that is not filled says nothing, and the caller then reads from the cluster
            found = await self.cache.get(key) if self.cache.ready else None
            return found.object() if found is not None else None
        stored = await self._shown(key)
        return self._conversion.to_object(stored) if stored is not None else None

    async def confirm_absent(self, key: Key) -> bool:
        stored = await self._shown(key)
        if stored is None:
            return True
        self.cache.expect_version(key, version_of(stored))
        return False

    async def create(self, obj: Object, *, dry_run: bool, context: RequestContext) -> Object:
        return await run_to_end(self._create(obj, dry_run))

    async def update(self, key: Key, new: Object, current: Object, *, dry_run: bool, context: RequestContext) -> Object:
        return await run_to_end(self._update(key, new, current, dry_run))

    async def delete(
        self, key: Key, current: Object, options: DeleteOptions, *, context: RequestContext
    ) -> rest.DeletionResult:
        return await run_to_end(self._delete(key, current, options))

    async def _create(self, obj: Object, dry_run: bool) -> Object:
        key = Key(obj["metadata"]["namespace"], obj["metadata"]["name"])
        if self._feed.is_refused:
            # the cluster may permit to create what the server cannot read, and so cannot show afterwards
            raise not_permitted(self.cache.resource)
        sent = self._conversion.to_new(obj)
        try:
            with self._translated_errors(key):
                stored = await self._cluster.create(self._stored, sent, dry_run=dry_run, field_manager=FIELD_MANAGER)
        except errors.AlreadyExists as error:
            await self._reject_foreign(key, error)
            raise
        return self._written(stored, dry_run)

    async def _reject_foreign(self, key: Key, error: errors.AlreadyExists) -> None:
        """Raises Conflict if the name is that of an object that is not shown: a client that got AlreadyExists for an
        object that it cannot GET would retry forever."""
        existing = await self._shown(key)
        if existing is not None:
            self.cache.expect_version(key, version_of(existing))
            return
        kind = self.cache.resource.kind
        why = f"the name is in use by a {self._stored.kind} that is no {kind}; choose another name"
        raise errors.Conflict(self.cache.resource.group_resource, key.name, why) from error

    async def _update(self, key: Key, new: Object, current: Object, dry_run: bool) -> Object:
        base = await self._shown(key)
        if base is None:
            raise self._not_found(key)
        if base["metadata"]["resourceVersion"] != current["metadata"]["resourceVersion"]:
            raise errors.Conflict(self.cache.resource.group_resource, key.name)
        changed = self._conversion.to_changed(new, base)
        if changed == base:
            return current
        with self._translated_errors(key):
            stored = await self._cluster.update(self._stored, changed, dry_run=dry_run, field_manager=FIELD_MANAGER)
        return self._written(stored, dry_run)

    async def _delete(self, key: Key, current: Object, options: DeleteOptions) -> rest.DeletionResult:
        """The preconditions make sure that the object is still shown: its version is that of the projection."""
        try:
            with self._translated_errors(key):
                answer = await self._cluster.delete(
                    self._stored, key.namespace, key.name, options=delete_body(current, options)
                )
        except errors.NotFound:
            self.cache.expect_deletion(key, current["metadata"]["uid"])
            raise
        removed = answer.get("kind") == "Status" or not answer["metadata"].get("deletionTimestamp")
        if not removed:
            return rest.DeletionResult(object=self._written(answer, options.dry_run), removed=False)
        if not options.dry_run:
            self.cache.expect_deletion(key, current["metadata"]["uid"])
        return rest.DeletionResult(object=current, removed=True)

    def _written(self, stored: Object, dry_run: bool) -> Object:
        """The result of a write. This replica's next read waits until the cache has it."""
        obj = self._conversion.to_object(stored)
        metadata = stored["metadata"]
        if dry_run:
            return obj
        self._feed.cluster_answered()
        key = Key(metadata["namespace"], metadata["name"])
        if metadata.get("deletionTimestamp") and not metadata.get("finalizers"):
            self.cache.expect_deletion(key, metadata["uid"])
        elif self._conversion.shows(stored):
            self.cache.expect_version(key, version_of(stored))
        return obj

    async def _shown(self, key: Key) -> Object | None:
        """Reads the object from the cluster. None if it does not exist or is not shown."""
        try:
            with self._translated_errors(key):
                stored = await self._cluster.get(self._stored, key.namespace, key.name)
        except errors.NotFound:
            return None
        self._feed.cluster_answered()
        return stored if self._conversion.shows(stored) else None

    def _not_found(self, key: Key) -> errors.NotFound:
        return errors.NotFound(self.cache.resource.group_resource, key.name)

    def _translated_errors(self, key: Key) -> AbstractContextManager[None]:
        shown, stored = self.cache.resource, self._stored
        return translated_errors(partial(translate, key=key, shown=shown, stored=stored, missing=self._missing))
