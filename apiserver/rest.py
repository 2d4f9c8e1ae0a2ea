"""The interfaces of storages, one per verb. The installer serves the verbs whose interfaces a storage class extends."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from apiserver.meta.resource import Key, Object, Resource
from apiserver.request.context import RequestContext
from apiserver.storage.pagination import Page

if TYPE_CHECKING:
    from apiserver.request.options import DeleteOptions, ListOptions, WatchOptions
    from apiserver.storage.watch_cache import CachedObject, CacheWatcher

ValidateFunc = Callable[[Object | None, Object | None], AbstractAsyncContextManager[None]]
"""(object, old object) -> validating admission, a context manager around the write. On delete the object is None."""

UpdateFunc = Callable[[Object | None], Awaitable[Object]]
"""Computes the new object from the stored one (a copy that may be changed; None if the object does not exist)."""


@dataclass(frozen=True, slots=True)
class DeletionResult:
    """`object` is the last state of the object if it was removed, and its current state while finalizers keep it."""

    object: Object
    removed: bool


class Storage(Protocol):
    @property
    def resource(self) -> Resource: ...


@runtime_checkable
class Getter(Protocol):
    async def get(self, context: RequestContext, key: Key, *, at_least: int = 0) -> CachedObject:
        """The object, not older than resourceVersion `at_least`. Raises NotFound, TooLargeResourceVersion."""
        ...


@runtime_checkable
class Lister(Protocol):
    async def list(self, context: RequestContext, namespace: str, options: ListOptions) -> Page:
        """Objects of a namespace ('' for all), sorted by key. Raises Expired, BadRequest, TooLargeResourceVersion."""
        ...


@runtime_checkable
class Watcher(Protocol):
    async def watch(self, context: RequestContext, namespace: str, options: WatchOptions) -> CacheWatcher:
        """A watch of a namespace ('' for all). Raises Expired if the history does not reach back to its start."""
        ...


@runtime_checkable
class Creater(Protocol):
    async def create(self, context: RequestContext, obj: Object, validate: ValidateFunc, *, dry_run: bool) -> Object:
        """The stored object. Raises AlreadyExists, Invalid, and the errors of `validate`."""
        ...


@runtime_checkable
class Updater(Protocol):
    async def update(
        self,
        context: RequestContext,
        key: Key,
        change: UpdateFunc,
        validate: ValidateFunc,
        *,
        dry_run: bool,
        validate_create: ValidateFunc | None = None,
    ) -> tuple[Object, bool]:
        """The stored object, and whether it was created. After a conflict, `change` is called again with a fresh
        object, unless the object that it returned has the client's resourceVersion. A missing object is NotFound,
        unless `validate_create` is passed. Raises Conflict, Invalid, and the errors of `change` and `validate`."""
        ...


@runtime_checkable
class GracefulDeleter(Protocol):
    async def delete(
        self, context: RequestContext, key: Key, options: DeleteOptions, validate: ValidateFunc
    ) -> DeletionResult:
        """Raises NotFound, Conflict (for preconditions), and the errors of `validate`."""
        ...


@runtime_checkable
class CollectionDeleter(Protocol):
    async def delete_collection(
        self,
        context: RequestContext,
        namespace: str,
        listing: ListOptions,
        options: DeleteOptions,
        validate: ValidateFunc,
    ) -> tuple[Sequence[Object], int]:
        """The deleted objects, and the resourceVersion of the list. Objects that were deleted meanwhile are skipped."""
        ...
