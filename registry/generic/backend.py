"""What the generic store asks of the place where a kind's objects are kept."""

from __future__ import annotations

from typing import Protocol

from apiserver import rest
from apiserver.meta.resource import Key, Object
from apiserver.request.context import RequestContext
from apiserver.request.options import DeleteOptions
from apiserver.storage.watch_cache import WatchCache


class Backend(Protocol):
    """Where a kind's objects are kept."""

    @property
    def cache(self) -> WatchCache: ...

    def before_read(self, context: RequestContext) -> None:
        """Warn the caller where the cache may be out of date."""
        ...

    async def read(self, key: Key, *, live: bool) -> Object | None:
        """The object, of which the caller may change the copy; `live` asks the place of truth itself."""
        ...

    async def create(self, obj: Object, *, dry_run: bool, context: RequestContext) -> Object:
        """The object as stored. Raises AlreadyExists."""
        ...

    async def update(self, key: Key, new: Object, current: Object, *, dry_run: bool, context: RequestContext) -> Object:
        """The object as stored. Raises Conflict if the stored one is no longer `current`, NotFound if it is gone."""
        ...

    async def delete(
        self, key: Key, current: Object, options: DeleteOptions, *, context: RequestContext
    ) -> rest.Deleted:
        """Raises Conflict if the stored object is no longer `current`, NotFound if it is gone."""
        ...

    async def confirm_absent(self, key: Key) -> bool:
        """Whether an object that the cache lacks does not exist; False promises that the cache will have it."""
        ...
