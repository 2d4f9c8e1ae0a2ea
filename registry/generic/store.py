"""The REST verbs over any Backend, as in kubernetes/apiserver's pkg/registry/generic.

Reads come from the backend's watch cache. An update starts from a stored object, runs the strategy and validating
admission, and is conditional on the resourceVersion of the stored object, so that no concurrent write is lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from apiserver import rest
from apiserver.encoding.offload import json_size, offload_if_large, run_in_thread
from apiserver.fieldmanager.field_manager import same_content
from apiserver.json.values import deep_copy
from apiserver.meta import errors
from apiserver.meta import object_meta as meta
from apiserver.meta.resource import Key, Object, Resource
from apiserver.request.context import RequestContext
from apiserver.request.options import EXACT, DeleteOptions, ListOptions, WatchOptions
from apiserver.storage.pagination import Page
from apiserver.storage.visibility import EVERYTHING, Visibility, VisibilitySource
from apiserver.storage.watch_cache import CachedObject, CacheWatcher
from registry.generic.backend import Backend
from registry.generic.deletion import precondition_mismatch
from registry.generic.key_lock import KeyLock
from registry.generic.strategy import Strategy

# Attempts of a write that is not conditional on a resourceVersion. Within the process, conflicting writes wait for each
# other, so only other replicas and new requests use up attempts.
_ATTEMPTS = 32
_NAME_ATTEMPTS = 8
_DELETE_WORKERS = 16
_IMMUTABLE_METADATA = ("creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation")

T = TypeVar("T")


class Store(
    rest.Getter,
    rest.Lister,
    rest.Watcher,
    rest.Creater,
    rest.Updater,
    rest.GracefulDeleter,
    rest.CollectionDeleter,
):
    def __init__(
        self,
        *,
        backend: Backend,
        strategy: Strategy,
        visibility: VisibilitySource | None = None,
        shown: Callable[[Object], Object] = lambda obj: obj,
    ) -> None:
        """`visibility` limits lists, watches and deletions of collections to the objects that a user may see.
        Without it, an authorized list returns everything.

        `shown` is pure, and returns a new object as clients will see it, for a kind whose objects are stored without
        defaults. Validating admission judges that, as it judges custom resources with their defaults in Kubernetes."""
        self._backend = backend
        self._strategy = strategy
        self._visibility = visibility
        self._shown = shown
        self._locks = KeyLock()

    @property
    def resource(self) -> Resource:
        return self._strategy.resource

    async def get(self, context: RequestContext, key: Key, *, at_least: int = 0) -> CachedObject:
        errors.require_path_segment(key.name)
        self._backend.before_read(context)
        found = await self._backend.cache.get(key, at_least=at_least)
        if found is None and not await self._backend.confirm_absent(key):
            found = await self._backend.cache.get(key, at_least=at_least)
        if found is None:
            raise self._not_found(key)
        return found

    async def list(self, context: RequestContext, namespace: str, options: ListOptions) -> Page:
        self._backend.before_read(context)
        user_visibility = await self._visibility_of(context)
        return await self._backend.cache.list(
            namespace, options, visible=user_visibility.visible if user_visibility is not None else EVERYTHING
        )

    async def watch(self, context: RequestContext, namespace: str, options: WatchOptions) -> CacheWatcher:
        self._backend.before_read(context)
        return await self._backend.cache.watch(namespace, options, visibility=await self._visibility_of(context))

    def _before_write(self, context: RequestContext) -> None:
        """A write waits for the first read of the cluster, and then fails: the client is told what keeps it."""
        if not self._backend.cache.ready:
            self._backend.before_read(context)

    async def _visibility_of(self, context: RequestContext) -> Visibility | None:
        return await self._visibility.for_user(context.user) if self._visibility is not None else None

    async def create(
        self, context: RequestContext, obj: Object, validate: rest.ValidateFunc, *, dry_run: bool
    ) -> Object:
        self._before_write(context)
        metadata = obj["metadata"]
        if metadata.get("name") or not metadata.get("generateName"):
            return await self._create(context, obj, validate, dry_run=dry_run)
        for _ in range(_NAME_ATTEMPTS):
            candidate = deep_copy(obj)
            candidate["metadata"]["name"] = meta.generate_name(metadata["generateName"])
            try:
                return await self._create(context, candidate, validate, dry_run=dry_run)
            except errors.AlreadyExists:
                continue
        raise errors.GenerateNameExhausted(self.resource.group_resource, candidate["metadata"]["name"])

    async def _create(
        self, context: RequestContext, obj: Object, validate: rest.ValidateFunc, *, dry_run: bool
    ) -> Object:
        judged = await self._offload(partial(self._prepare, obj), size=json_size(obj))
        self._warn(context, obj)
        async with validate(judged, None):
            return await self._backend.create(obj, dry_run=dry_run, context=context)

    def _prepare(self, obj: Object) -> Object:
        """Defaults and validates a new object in place, and returns what admission judges. Raises Invalid."""
        self._strategy.prepare_for_create(obj)
        metadata = obj["metadata"]
        metadata["uid"] = meta.new_uid()
        metadata["creationTimestamp"] = meta.now_rfc3339()
        problems = self._strategy.name_errors(obj) if metadata.get("name") else []
        problems = [*meta.validate_metadata(obj, self.resource), *problems, *self._strategy.validate(obj)]
        if problems:
            raise errors.Invalid(self.resource.group_kind, metadata.get("name", ""), problems)
        return self._shown(obj)

    async def _offload(self, work: Callable[[], T], *, size: int) -> T:
        """Runs work that contains a validation."""
        if self._strategy.is_slow():
            return await run_in_thread(work)
        return await offload_if_large(work, size=size)

    async def update(
        self,
        context: RequestContext,
        key: Key,
        change: rest.UpdateFunc,
        validate: rest.ValidateFunc,
        *,
        dry_run: bool,
        validate_create: rest.ValidateFunc | None = None,
    ) -> tuple[Object, bool]:
        self._before_write(context)

        async def attempt(live: bool) -> tuple[Object, bool]:
            read = await self._current(key, live=live)
            if read is not None:
                return await self._update(context, read, change, validate, dry_run), False
            if validate_create is None:
                raise self._not_found(key)
            new = await change(None)
            return await self.create(context, new, validate_create, dry_run=dry_run), True

        return await self._retry_on_conflict(key, attempt)

    async def _update(
        self,
        context: RequestContext,
        read: _Read,
        change: rest.UpdateFunc,
        validate: rest.ValidateFunc,
        dry_run: bool,
    ) -> Object:
        current = read.object
        size = json_size(current)
        async with AsyncExitStack() as admitted:
            async with self._judging(read):
                new = await change(await offload_if_large(partial(deep_copy, current), size=size))
                judged, same = await self._offload(partial(self._prepare_update, new, read), size=size + json_size(new))
                self._warn(context, new)
                await admitted.enter_async_context(validate(judged, current))
            if same:
                await self._require_stored(read)
                return current
            try:
                return await self._backend.update(read.key, new, current, dry_run=dry_run, context=context)
            except errors.Conflict as conflict:
                raise _StaleRead(conflict) from conflict

    @asynccontextmanager
    async def _judging(self, read: _Read) -> AsyncIterator[None]:
        """An error of the block is about the stored object, or the write is tried again with that (GuaranteedUpdate of
        kubernetes/apiserver)."""
        try:
            yield
        except errors.StatusError:
            await self._require_stored(read)
            raise

    async def _require_stored(self, read: _Read) -> None:
        """Raises _StaleRead if an object of the cache is no longer the stored one: another replica has changed it."""
        if read.live:
            return
        stored = await self._backend.read(read.key, live=True)
        version = read.object["metadata"]["resourceVersion"]
        if stored is None or stored["metadata"]["resourceVersion"] != version:
            raise _StaleRead(errors.Conflict(self.resource.group_resource, read.key.name))

    def _prepare_update(self, new: Object, read: _Read) -> tuple[Object, bool]:
        """Defaults and validates a changed object in place, and returns what admission judges, and whether it equals
        the stored one. Raises Invalid and Conflict."""
        current = read.object
        self._restore_metadata(new, read)
        self._strategy.prepare_for_update(new, current)
        problems = [
            *meta.validate_metadata(new, self.resource),
            *meta.validate_metadata_update(new, current),
            *self._strategy.validate_update(new, current),
        ]
        if problems:
            raise errors.Invalid(self.resource.group_kind, read.key.name, problems)
        return self._shown(new), same_content(new, current)

    def _restore_metadata(self, new: Object, read: _Read) -> None:
        """Restores metadata that a client may omit or must not change (WIRE-D47). Raises Conflict for a resourceVersion
        or uid that is not the stored one."""
        key = read.key
        metadata: dict[str, Any] = new["metadata"]
        stored: dict[str, Any] = read.object["metadata"]
        wanted = metadata.get("resourceVersion")
        if wanted and wanted != stored["resourceVersion"]:
            conflict = errors.Conflict(self.resource.group_resource, key.name)
            # another replica may have served the client a version that this cache does not have yet
            raise conflict if read.live else _StaleRead(conflict)
        uid = metadata.get("uid")
        if uid and uid != stored["uid"]:
            why = (
                f"StorageError: invalid object, Code: 4, Key: {'/'.join(part for part in key if part)}, "
                f"ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: {uid}, "
                f"UID in object meta: {stored['uid']}"
            )
            raise errors.Conflict(self.resource.group_resource, key.name, why)
        metadata["resourceVersion"] = stored["resourceVersion"]
        metadata["uid"] = stored["uid"]
        metadata.pop("selfLink", None)
        for field in _IMMUTABLE_METADATA:
            if field in stored:
                metadata[field] = stored[field]
            else:
                metadata.pop(field, None)

    async def delete(
        self, context: RequestContext, key: Key, options: DeleteOptions, validate: rest.ValidateFunc
    ) -> rest.DeletionResult:
        self._before_write(context)

        async def attempt(live: bool) -> rest.DeletionResult:
            read = await self._current(key, live=live)
            if read is None:
                raise self._not_found(key)
            if mismatch := precondition_mismatch(options.preconditions, read.object):
                conflict = errors.Conflict(self.resource.group_kind, key.name, mismatch)
                raise conflict if read.live else _StaleRead(conflict)
            async with AsyncExitStack() as admitted:
                async with self._judging(read):
                    await admitted.enter_async_context(validate(None, read.object))
                try:
                    return await self._backend.delete(key, read.object, options, context=context)
                except errors.Conflict as conflict:
                    raise _StaleRead(conflict) from conflict

        return await self._retry_on_conflict(key, attempt)

    async def _retry_on_conflict(self, key: Key, attempt: Callable[[bool], Awaitable[T]]) -> T:
        """Returns the result of the first `attempt` without a conflict. The argument of `attempt` is False for the
        first, which may read from the cache, and True for all others, which read from the storage."""
        errors.require_path_segment(key.name)
        for number in range(_ATTEMPTS):
            retry = number > 0
            try:
                async with self._locks.hold(key, contended=retry):
                    return await attempt(retry)
            except (_StaleRead, errors.AlreadyExists) as conflict:
                if number == _ATTEMPTS - 1:
                    raise _conflict_of(conflict) from conflict
        raise AssertionError("the last attempt returns or raises")

    async def delete_collection(
        self,
        context: RequestContext,
        namespace: str,
        listing: ListOptions,
        options: DeleteOptions,
        validate: rest.ValidateFunc,
    ) -> tuple[Sequence[Object], int]:
        page = await self.list(context, namespace, _paged(listing))
        slots = asyncio.Semaphore(_DELETE_WORKERS)

        async def delete(item: CachedObject) -> Object | None:
            async with slots:
                try:
                    return (await self.delete(context, item.key, options, validate)).object
                except errors.NotFound:
                    return None

        results = await asyncio.gather(*(delete(item) for item in page.items), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result
        return [result for result in results if isinstance(result, dict)], page.resource_version

    async def _current(self, key: Key, *, live: bool) -> _Read | None:
        """The stored object. If the cache does not have it, it is read from the storage."""
        found = await self._backend.read(key, live=live)
        if found is None and not live:
            found, live = await self._backend.read(key, live=True), True
        return _Read(key, found, live or self._backend.is_only_writer) if found is not None else None

    def _warn(self, context: RequestContext, obj: Object) -> None:
        for text in self._strategy.warnings(obj):
            context.warn(text)

    def _not_found(self, key: Key) -> errors.NotFound:
        return errors.NotFound(self.resource.group_resource, key.name)


@dataclass(frozen=True, slots=True)
class _Read:
    """`live` is False for an object of a cache that may lag behind the storage."""

    key: Key
    object: Object
    live: bool


class _StaleRead(Exception):
    """The stored object has changed since it was read."""

    def __init__(self, conflict: errors.Conflict) -> None:
        self.conflict = conflict


def _paged(listing: ListOptions) -> ListOptions:
    """The list of a collection to delete. kube-apiserver reads it in pages, and a page at a resourceVersion has exactly
    this version: objects that were created later are not deleted."""
    if not listing.resource_version or listing.resource_version_match or listing.continue_token:
        return listing
    return replace(listing, resource_version_match=EXACT)


def _conflict_of(error: _StaleRead | errors.AlreadyExists) -> errors.StatusError:
    return error.conflict if isinstance(error, _StaleRead) else error


class ReadOnlyStatus(rest.Getter):
    """The read-only `status` subresource of an object whose status only its reconciler writes."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @property
    def resource(self) -> Resource:
        return self._store.resource

    async def get(self, context: RequestContext, key: Key, *, at_least: int = 0) -> CachedObject:
        return await self._store.get(context, key, at_least=at_least)
