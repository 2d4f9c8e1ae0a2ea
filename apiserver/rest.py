"""What a storage may offer. The installer serves a verb if the storage has it, so a class line lists its verbs."""

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
"""(object, old object) -> validating admission, to be held around the write. On delete the object is None."""

UpdateFunc = Callable[[Object | None], Awaitable[Object]]
"""From the stored object (a copy that may be changed; None if there is none) to the wanted one."""


@dataclass(frozen=True, slots=True)
class DeletionResult:
    """`removed` is False while finalizers keep the object; `object` is its last (or current) state."""

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
        """A cursor over changes. Raises Expired if the start is no longer held."""
        ...


@runtime_checkable
class Creater(Protocol):
    async def create(self, context: RequestContext, obj: Object, validate: ValidateFunc, *, dry_run: bool) -> Object:
        """The stored object. Raises AlreadyExists, Invalid, and what `validate` raises."""
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
        """The stored object and whether it was created. `change` may be called again on a fresh read after a
        conflict, unless it returned an object with a resourceVersion of the caller's. A missing object is NotFound
        unless `validate_create` is given. Raises Conflict, Invalid, and what `change` and `validate` raise."""
        ...


@runtime_checkable
class GracefulDeleter(Protocol):
    async def delete(
        self, context: RequestContext, key: Key, options: DeleteOptions, validate: ValidateFunc
    ) -> DeletionResult:
        """Raises NotFound, Conflict (preconditions), and what `validate` raises."""
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
        """The deleted objects and the list's resourceVersion. Objects that are gone meanwhile are passed over."""
        ...
