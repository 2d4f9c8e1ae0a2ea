"""Feeds the objects of an informer, converted, into a watch cache."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from apiserver.cooperative import iterate_cooperatively
from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Object
from apiserver.storage.watch_cache import CachedObject, WatchCache, encode
from registry.cluster.event_handlers import EventHandler
from registry.cluster.object_store import key_of

# before that of every object
_FIRST_VERSION = 1


class ProjectionFeed(EventHandler):
    """The event handler of the informer.

    `shows` says which objects are shown; one that no longer is counts as deleted. `convert` is pure, and so is
    `convert_deleted`, which makes the object of a DELETED event from the last state. Keys stay the same.
    `cluster_error` is the reason why the cluster cannot be watched, or None.
    """

    def __init__(
        self,
        cache: WatchCache,
        *,
        shows: Callable[[Object], bool],
        convert: Callable[[Object], Object],
        convert_deleted: Callable[[Object], Object] | None = None,
        retry: Callable[[], None] = lambda: None,
        version: Callable[[], int] = lambda: _FIRST_VERSION,
    ) -> None:
        """`retry` ends the pause of the informer before its next attempt. `version` returns a recent resourceVersion of
        the cluster, for a cache without objects of its own."""
        self.cache = cache
        self._shows = shows
        self._convert = convert
        self._convert_deleted = convert_deleted or convert
        self._retry = retry
        self._version = version
        self._has_read = False
        self.cluster_error: StatusError | None = None

    async def replace(self, items: Sequence[Object], rv: int) -> None:
        self._has_read = True
        shown: list[CachedObject] = []
        async for item in iterate_cooperatively(items):
            if self._shows(item):
                shown.append(encode(self.cache.resource, self._convert(item)))
        await self.cache.replace_cooperatively(sorted(shown, key=lambda each: each.key), rv)

    def apply(self, type: str, obj: Object, rv: int) -> None:
        cached = self.cache.peek(key_of(obj))
        if type != "DELETED" and self._shows(obj):
            converted = encode(self.cache.resource, self._convert(obj))
            self.cache.apply("ADDED" if cached is None else "MODIFIED", converted)
        elif cached is not None:
            self.cache.apply("DELETED", encode(self.cache.resource, self._convert_deleted(obj)))
        self.cache.advance(rv)

    def bookmark(self, rv: int) -> None:
        self.cache.advance(rv)

    def set_cluster_error(self, error: StatusError | None) -> None:
        self.cluster_error = error
        if self.is_refused:
            self.show_nothing()

    @property
    def is_refused(self) -> bool:
        """True if the server may not read the objects."""
        return self.cluster_error is not None and self.cluster_error.code == 403

    def show_nothing(self) -> None:
        """Makes the cache ready before anything has been read, and keeps it at a recent version when it is called
        again: a watch resumes only from a version at which the rights of its user are known. Later reads arrive
        as events."""
        version = max(self._version(), _FIRST_VERSION)
        if not self.cache.ready:
            self.cache.replace([], version)
        elif not self._has_read:
            self.cache.advance(version)

    def cluster_answered(self) -> None:
        """Reports a successful call, so that the informer reconnects immediately."""
        if self.cluster_error is not None:
            self._retry()
