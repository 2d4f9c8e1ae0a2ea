"""The storage interface behind the generic store."""

from __future__ import annotations

from typing import Protocol

from apiserver import rest
from apiserver.meta.resource import Key, Object
from apiserver.request.context import RequestContext
from apiserver.request.options import DeleteOptions
from apiserver.storage.watch_cache import WatchCache


class Backend(Protocol):
    """The storage of one resource, with a watch cache over it."""

    @property
    def cache(self) -> WatchCache: ...

    @property
    def is_only_writer(self) -> bool:
        """True if nobody else writes to the storage, so that the cache does not lag behind it."""
        ...

    def before_read(self, context: RequestContext) -> None:
        """Adds a warning to the response if the cache may be out of date."""
        ...

    async def read(self, key: Key, *, live: bool) -> Object | None:
        """Returns a copy of the object from the cache, or with `live` from the storage itself."""
        ...

    async def create(self, obj: Object, *, dry_run: bool, context: RequestContext) -> Object:
        """Returns the object as stored. Raises AlreadyExists."""
        ...

    async def update(self, key: Key, new: Object, current: Object, *, dry_run: bool, context: RequestContext) -> Object:
        """Returns the object as stored. Raises Conflict if the stored one is no longer `current`, NotFound if it is
        deleted."""
        ...

    async def delete(
        self, key: Key, current: Object, options: DeleteOptions, *, context: RequestContext
    ) -> rest.DeletionResult:
        """Raises Conflict if the stored object is no longer `current`, NotFound if it is deleted."""
        ...

    async def confirm_absent(self, key: Key) -> bool:
        """Checks in the storage that an object missing from the cache does not exist. After False, the next read from
        the cache finds it."""
        ...
