"""Feeds the HelmReleases of one informer into the watch caches of all kinds, each change to the kind that its labels
name. Kinds come and go while it runs."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from sys import intern
from typing import NamedTuple

from apiserver.cooperative import iterate_cooperatively
from apiserver.encoding.encoded_object import CachedObject, encode
from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Key, Object
from apiserver.storage.watch_cache import WatchCache
from registry.application.convert import ApplicationConversion, application_key, selectable_labels
from registry.application.identity import application_of
from registry.cluster.event_handlers import EventHandler
from registry.cluster.object_store import ObjectLister, key_of
from registry.names import APPLICATION_KIND_LABEL, APPLICATION_NAME_LABEL

_logger = logging.getLogger(__name__)


class ApplicationFeed:
    """The applications of one kind. Only a ReleaseRouter calls it, besides the backend."""

    def __init__(self, *, cache: WatchCache, conversion: ApplicationConversion, router: ReleaseRouter) -> None:
        self.cache = cache
        self.conversion = conversion
        self._router = router

    @property
    def cluster_error(self) -> StatusError | None:
        """The error with which the watch failed, None while it works."""
        return self._router.cluster_error

    def cluster_answered(self) -> None:
        """Reports a successful call, so that the informer reconnects immediately and the cache gets the written
        object."""
        self._router.cluster_answered()

    def apply(self, release: Object, rv: int, *, deleted: bool) -> None:
        """A change of a HelmRelease; `deleted` if it is gone, or belongs to another kind now."""
        key = application_key(release, self.conversion.definition)
        cached = self.cache.peek(key) if key is not None else None
        if not deleted and self.conversion.stores(release):
            if cached is None or cached.rv < rv:
                self.cache.apply("ADDED" if cached is None else "MODIFIED", self.encode(release))
        elif cached is not None:
            self.cache.apply("DELETED", self.encode(release))
        self.cache.advance(rv)

    def encode(self, release: Object) -> CachedObject:
        try:
            application = self.conversion.to_object(release)
            return encode(self.cache.resource, application, labels=selectable_labels(release, application))
        except Exception:
            # what cannot be converted must stay visible, or clients would treat it as deleted
            _logger.exception("HelmRelease %s/%s cannot be converted: only its name is shown", *key_of(release))
            return encode(self.cache.resource, _name_only(self.conversion, release), labels={})

    def encode_if_stored(self, release: Object) -> CachedObject | None:
        return self.encode(release) if self.conversion.stores(release) else None


class UnservedReleases(NamedTuple):
    """HelmReleases whose labels name a kind, but that are none of its objects. `prefix` is that of the kind, None if no
    definition describes it."""

    kind: str
    releases: int
    prefix: str | None

    def __str__(self) -> str:
        noun = "HelmRelease is" if self.releases == 1 else "HelmReleases are"
        labelled = f"{self.releases} {noun} not served, labelled {APPLICATION_KIND_LABEL}={self.kind}"
        if self.prefix is None:
            return f"{labelled}: no definition that is served describes this kind"
        return f"{labelled}: an object of the kind is called {self.prefix}<{APPLICATION_NAME_LABEL}>"


class ReleaseRouter(EventHandler):
    """The event handler of the informer, whose `store` has the same objects. `retry` ends the informer's pause."""

    def __init__(self, *, store: ObjectLister, retry: Callable[[], None] = lambda: None) -> None:
        self._store = store
        self._retry = retry
        self._feeds: dict[str, ApplicationFeed] = {}
        self._kinds: dict[Key, str] = {}
        self._counts: Counter[str] = Counter()
        self._rv = 0
        # the HelmReleases that have changed while feeds are filled
        self._filling: dict[ApplicationFeed, set[Key]] = {}
        self.cluster_error: StatusError | None = None
        self.observe: Callable[[Object, bool], None] = _ignore
        """Called with each HelmRelease of an application that is listed or changes, and True if it is deleted."""

    def unserved(self) -> Iterator[UnservedReleases]:
        """The HelmReleases that no kind serves, by the kinds that their labels name."""
        for kind, count in sorted(self._counts.items()):
            feed = self._feeds.get(kind)
            served = len(feed.cache) if feed is not None else 0
            if count > served:
                prefix = feed.conversion.definition.prefix if feed is not None else None
                yield UnservedReleases(kind, count - served, prefix)

    async def add(self, feed: ApplicationFeed) -> None:
        """Fills the cache of a kind with what the informer has, and feeds it from then on. A feed of the same kind gets
        no more changes."""
        kind = feed.conversion.definition.kind
        changed: set[Key] = set()
        self._filling[feed] = changed
        try:
            found: dict[Key, CachedObject] = {}
            async for key in iterate_cooperatively([key for key, each in self._kinds.items() if each == kind]):
                self._fill(feed, key, found)
            while changed:
                self._fill(feed, changed.pop(), found)
        finally:
            del self._filling[feed]
        # nothing is awaited from here on, so that no change is missed
        self._feeds[kind] = feed
        if self._rv:
            feed.cache.replace([each for _, each in sorted(found.items(), key=_by_application)], self._rv)

    def _fill(self, feed: ApplicationFeed, key: Key, found: dict[Key, CachedObject]) -> None:
        release = self._store.get(key)
        encoded = feed.encode_if_stored(release) if release is not None else None
        if encoded is not None:
            found[key] = encoded
        else:
            found.pop(key, None)

    def remove(self, feed: ApplicationFeed) -> None:
        kind = feed.conversion.definition.kind
        if self._feeds.get(kind) is feed:
            del self._feeds[kind]

    async def replace(self, items: Sequence[Object], rv: int) -> None:
        previous = self._kinds
        kinds: dict[Key, str] = {}
        found: dict[ApplicationFeed, list[CachedObject]] = {feed: [] for feed in self._feeds.values()}
        async for release in iterate_cooperatively(items):
            kind = _kind_of(release)
            if kind is None:
                continue
            self.observe(release, False)
            kinds[key_of(release)] = kind
            feed = self._feeds.get(kind)
            encoded = feed.encode_if_stored(release) if feed is not None else None
            if feed is not None and encoded is not None and feed in found:
                found[feed].append(encoded)
        self._kinds, self._counts, self._rv = kinds, Counter(kinds.values()), rv
        for changed in self._filling.values():
            changed.update(previous, kinds)
        for feed, objects in found.items():
            await feed.cache.replace_cooperatively(sorted(objects, key=lambda each: each.key), rv)
        for feed in tuple(self._feeds.values()):
            if feed not in found:
                self._refill(feed, rv)

    def _refill(self, feed: ApplicationFeed, rv: int) -> None:
        """Fills a feed that was added while a new list was processed."""
        found: dict[Key, CachedObject] = {}
        for key, kind in self._kinds.items():
            if kind == feed.conversion.definition.kind:
                self._fill(feed, key, found)
        feed.cache.replace([each for _, each in sorted(found.items(), key=_by_application)], rv)

    def apply(self, type: str, obj: Object, rv: int) -> None:
        key = key_of(obj)
        before = self._kinds.get(key)
        kind = _kind_of(obj) if type != "DELETED" else None
        self._count(key, before, kind)
        self.observe(obj, type == "DELETED")
        self._rv = rv
        for changed in self._filling.values():
            changed.add(key)
        for name, feed in self._feeds.items():
            if name in (kind, before):
                feed.apply(obj, rv, deleted=name != kind)
            else:
                feed.cache.advance(rv)

    def _count(self, key: Key, before: str | None, kind: str | None) -> None:
        if kind is None:
            self._kinds.pop(key, None)
        else:
            self._kinds[key] = kind
        if before != kind:
            self._counts += Counter([kind] if kind is not None else [])
            self._counts -= Counter([before] if before is not None else [])

    def bookmark(self, rv: int) -> None:
        self._rv = rv
        for feed in self._feeds.values():
            feed.cache.advance(rv)

    def set_cluster_error(self, error: StatusError | None) -> None:
        self.cluster_error = error

    def cluster_answered(self) -> None:
        if self.cluster_error is not None:
            self._retry()


def _ignore(release: Object, deleted: bool) -> None:
    pass


def _name_only(conversion: ApplicationConversion, release: Object) -> Object:
    identity = ("uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "generation")
    metadata = {field: value for field in identity if (value := release["metadata"].get(field))}
    key = key_of(release)
    name = conversion.names.name_of(key.name) or key.name
    return {"metadata": {"name": name, "namespace": key.namespace, **metadata}, "spec": {}, "status": {}}


def _kind_of(release: Object) -> str | None:
    found = application_of(release)
    return intern(found.kind) if found is not None else None


def _by_application(item: tuple[Key, CachedObject]) -> Key:
    return item[1].key
