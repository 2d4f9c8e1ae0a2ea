"""The Backend of applications, which are stored as HelmReleases in the cluster.

Reads come from the watch cache that the informer feeds. Updates are conditional on the resourceVersion they start from.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import partial
from typing import Protocol

from apiserver import rest
from apiserver.encoding.offload import json_size, offload_if_large
from apiserver.meta import errors
from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Key, Object
from apiserver.request.context import RequestContext
from apiserver.request.options import DeleteOptions
from apiserver.storage.watch_cache import WatchCache
from registry.application.identity import application_of
from registry.application.release_cache import ReleaseCache
from registry.application.release_errors import ApplicationNames
from registry.application.release_metadata import mark_unconfirmed
from registry.cluster.interface import (
    FORBIDDEN,
    HELMRELEASES,
    ClusterClient,
    ClusterUnreachable,
    NotServed,
    missing_right,
)
from registry.cluster.object_store import version_of
from registry.generic.deletion import delete_body
from registry.generic.run_to_end import run_to_end
from registry.generic.translated_errors import translated_errors

FIELD_MANAGER = "tenant-apiserver"
_UNREACHABLE = "kube-apiserver cannot be reached at present"
_FAILING = "kube-apiserver answers with an error at present"
MISSING_RELEASES = (
    "kube-apiserver does not serve HelmReleases, so Flux has to be installed, or at least its CustomResourceDefinition "
    "helmreleases.helm.toolkit.fluxcd.io"
)


def is_not_served(error: StatusError) -> bool:
    """True if the cluster cannot be watched because it does not serve the kind."""
    return isinstance(error, NotServed) or error.code == 404


def stale_warning(error: StatusError, missing: str, *, has_read: bool) -> str:
    """The warning of a read while the cluster cannot be watched because of `error`; `missing` says which kind it is
    that the cluster may not serve. Before anything `has_read`, there is no data that could be out of date."""
    why = missing if is_not_served(error) else _why_unread(error)
    return f"{why}: the response may be out of date" if has_read else why


def _why_unread(error: StatusError) -> str:
    if error.code == FORBIDDEN:
        return f"the server lacks the right to {missing_right(error) or 'read the objects'}"
    return _UNREACHABLE if isinstance(error, ClusterUnreachable) else _FAILING


class ReleaseConversion(Protocol):
    """Converts the HelmReleases of one kind. Pure."""

    @property
    def names(self) -> ApplicationNames: ...

    def stores(self, release: Object) -> bool:
        """True if `release` stores an application of this kind."""
        ...

    def to_object(self, release: Object) -> Object:
        """The application that `release` stores."""
        ...

    def to_new_release(self, obj: Object) -> Object:
        """The HelmRelease of a new application."""
        ...

    def to_changed_release(self, obj: Object, current: Object) -> Object:
        """A copy of the HelmRelease `current` with what differs between `obj` and the application that it stores; equal
        to it if nothing does."""
        ...


class ReleaseFeed(Protocol):
    """The part of the watch cache's event handler that the backend uses."""

    @property
    def cluster_error(self) -> StatusError | None: ...

    def cluster_answered(self) -> None: ...


class ReleaseBackend:
    """Raises kube-apiserver's errors as errors about the application, and ClusterUnreachable without a response."""

    def __init__(
        self,
        *,
        cluster: ClusterClient,
        cache: WatchCache,
        feed: ReleaseFeed,
        releases: ReleaseCache,
        conversion: ReleaseConversion,
    ) -> None:
        self._cluster = cluster
        self._cache = cache
        self._feed = feed
        self._releases = releases
        self._conversion = conversion

    @property
    def cache(self) -> WatchCache:
        return self._cache

    @property
    def _names(self) -> ApplicationNames:
        return self._conversion.names

    def before_read(self, context: RequestContext) -> None:
        if self._feed.cluster_error is not None:
            context.warn(stale_warning(self._feed.cluster_error, MISSING_RELEASES, has_read=self._cache.ready))

    @property
    def is_only_writer(self) -> bool:
        return False

    async def read(self, key: Key, *, live: bool) -> Object | None:
        if not live:
            found = await self._cache.get(key)
            return found.object() if found is not None else None
        release = await self._read_release(key)
        return await self._to_object(release) if release is not None else None

    async def confirm_absent(self, key: Key) -> bool:
        release = await self._read_release(key)
        if release is None:
            return True
        self._cache.expect_version(key, version_of(release))
        return False

    async def create(
        self, obj: Object, *, dry_run: bool, context: RequestContext | None = None, unconfirmed: str = ""
    ) -> Object:
        """`unconfirmed` is the id of a write that is to be judged again after it is stored."""
        return await run_to_end(self._create(obj, dry_run, unconfirmed))

    async def update(
        self,
        key: Key,
        new: Object,
        current: Object,
        *,
        dry_run: bool,
        context: RequestContext | None = None,
        unconfirmed: str = "",
    ) -> Object:
        """`unconfirmed` is as for `create`. Without a context, it is a change by this server."""
        return await run_to_end(self._update(key, new, current, dry_run, unconfirmed))

    async def delete(
        self, key: Key, current: Object, options: DeleteOptions, *, context: RequestContext
    ) -> rest.DeletionResult:
        return await run_to_end(self._delete(key, current, options))

    async def _create(self, obj: Object, dry_run: bool, unconfirmed: str) -> Object:
        release = await offload_if_large(partial(self._conversion.to_new_release, obj), size=json_size(obj))
        mark_unconfirmed(release, unconfirmed)
        key = Key(obj["metadata"]["namespace"], obj["metadata"]["name"])
        try:
            with self._translated_errors(key):
                stored = await self._cluster.create(HELMRELEASES, release, dry_run=dry_run, field_manager=FIELD_MANAGER)
        except errors.AlreadyExists as e:
            await self._reject_foreign_release(key, e)
            raise
        return await self._stored(key, stored, dry_run)

    async def _reject_foreign_release(self, key: Key, error: errors.AlreadyExists) -> None:
        """Raises Conflict if the existing HelmRelease does not store an application of this kind. It is never adopted
        (ATTACK-07), and a client that got AlreadyExists for an object that it cannot GET would retry forever."""
        release = await self._get_release(key)
        if release is not None and self._conversion.stores(release):
            self._cache.expect_version(key, version_of(release))
            return
        names, name = self._names, self._names.release_name(key.name)
        owner = application_of(release) if release is not None else None
        why = f'a HelmRelease "{name}" that does not store a {names.kind.kind} exists; rename or delete it'
        if owner is not None and owner.kind != names.kind.kind:
            why = f'its HelmRelease "{name}" stores {owner.kind} "{owner.name}" already; choose another name'
        raise errors.Conflict(names.resource, key.name, why) from error

    async def _update(self, key: Key, new: Object, current: Object, dry_run: bool, unconfirmed: str) -> Object:
        version = current["metadata"]["resourceVersion"]
        base = self._releases.get(self._names.release_key(key), version)
        if base is None:
            base = await self._read_release(key)
        if base is None:
            raise errors.NotFound(self._names.resource, key.name)
        if base["metadata"]["resourceVersion"] != version:
            raise errors.Conflict(self._names.resource, key.name)
        convert = partial(self._conversion.to_changed_release, new, base)
        release = await offload_if_large(convert, size=json_size(new, base))
        if release == base:
            return current
        mark_unconfirmed(release, unconfirmed)
        with self._translated_errors(key):
            stored = await self._cluster.update(HELMRELEASES, release, dry_run=dry_run, field_manager=FIELD_MANAGER)
        return await self._stored(key, stored, dry_run)

    async def _delete(self, key: Key, current: Object, options: DeleteOptions) -> rest.DeletionResult:
        body = delete_body(current, options)
        uid = current["metadata"]["uid"]
        name = self._names.release_name(key.name)
        try:
            with self._translated_errors(key):
                answer = await self._cluster.delete(HELMRELEASES, key.namespace, name, options=body)
        except errors.NotFound:
            self._cache.expect_deletion(key, uid)
            raise
        removed = answer.get("kind") == "Status" or not answer["metadata"].get("deletionTimestamp")
        if not removed:
            return rest.DeletionResult(object=await self._stored(key, answer, options.dry_run), removed=False)
        if not options.dry_run:
            self._cache.expect_deletion(key, uid)
        return rest.DeletionResult(object=current, removed=True)

    async def _stored(self, key: Key, release: Object, dry_run: bool) -> Object:
        """Returns the application of a write's response, and makes this replica's next read wait until the cache has
        it."""
        obj = await self._to_object(release)
        metadata = release["metadata"]
        if dry_run:
            return obj
        self._answered(key, release)
        if metadata.get("deletionTimestamp") and not metadata.get("finalizers"):
            self._cache.expect_deletion(key, metadata["uid"])
        else:
            self._cache.expect_version(key, version_of(release))
        return obj

    async def _read_release(self, key: Key) -> Object | None:
        """Reads the HelmRelease from the cluster. None if it does not exist or stores no application of this kind."""
        release = await self._get_release(key)
        if release is None or not self._conversion.stores(release):
            return None
        self._answered(key, release)
        return release

    async def _get_release(self, key: Key) -> Object | None:
        """Reads the HelmRelease of this name from the cluster, whatever it stores."""
        try:
            with self._translated_errors(key):
                name = self._names.release_name(key.name)
                return await self._cluster.get(HELMRELEASES, key.namespace, name)
        except errors.NotFound:
            return None
        except StatusError as e:
            if e.code == 404:
                raise errors.ServiceUnavailable(MISSING_RELEASES, retry_after=1) from e
            raise

    def _answered(self, key: Key, release: Object) -> None:
        self._feed.cluster_answered()
        self._releases.add(self._names.release_key(key), release)

    async def _to_object(self, release: Object) -> Object:
        return await offload_if_large(partial(self._conversion.to_object, release), size=json_size(release))

    def _translated_errors(self, key: Key) -> AbstractContextManager[None]:
        """Translates errors about the HelmRelease into errors about the application. A NotFound is therefore always
        about this object, while any other response with code 404 stays a plain StatusError (WIRE-I24)."""
        return translated_errors(partial(self._translate, key=key))

    def _translate(self, error: StatusError, *, key: Key) -> StatusError:
        if isinstance(error, NotServed):
            return errors.ServiceUnavailable(MISSING_RELEASES, retry_after=1)
        return self._names.translate(error, key)
