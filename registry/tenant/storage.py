"""Tenants kept as HelmReleases at the host: the Backend behind the generic store.

Reads come from the watch cache that the informer feeds; writes go to the host and carry the version they start from.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

from apiserver import rest
from apiserver.encoding.offload import json_size, offload_if_large
from apiserver.meta import errors
from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Key, Object
from apiserver.request.context import RequestContext
from apiserver.request.options import DeleteOptions
from apiserver.storage.watch_cache import WatchCache
from registry.cluster.interface import HELMRELEASES, ClusterClient
from registry.names import release_name
from registry.tenant.convert import NotATenant, tenant_key, to_release, to_tenant
from registry.tenant.convert_errors import TENANTS, to_tenant_error
from registry.tenant.release_cache import ReleaseCache
from registry.tenant.release_settings import ReleaseSettings
from registry.tenant.watch_feed import TenantFeed

FIELD_MANAGER = "tenant-apiserver"
STALE_WARNING = "the host API cannot be reached at present: what is shown may be out of date"

T = TypeVar("T")


class ReleaseBackend:
    """Raises the host's refusals as errors of tenants, and ClusterUnreachable for everything that needs a host that
    cannot be reached."""

    def __init__(
        self,
        *,
        cluster: ClusterClient,
        cache: WatchCache,
        feed: TenantFeed,
        releases: ReleaseCache,
        settings: Callable[[], ReleaseSettings],
    ) -> None:
        self._cluster = cluster
        self._cache = cache
        self._feed = feed
        self._releases = releases
        self._settings = settings

    @property
    def cache(self) -> WatchCache:
        return self._cache

    def before_read(self, context: RequestContext) -> None:
        if self._feed.cluster_error is not None:
            context.warn(STALE_WARNING)

    async def read(self, key: Key, *, live: bool) -> Object | None:
        if not live:
            found = await self._cache.get(key)
            return found.object() if found is not None else None
        release = await self._live(key)
        return (
            await offload_if_large(partial(to_tenant, release), size=json_size(release))
            if release is not None
            else None
        )

    async def confirm_absent(self, key: Key) -> bool:
        release = await self._live(key)
        if release is None:
            return True
        self._cache.expect_version(_version(release))
        return False

    async def create(self, obj: Object, *, dry_run: bool, context: RequestContext) -> Object:
        return await _finish(self._create(obj, dry_run))

    async def update(self, key: Key, new: Object, current: Object, *, dry_run: bool, context: RequestContext) -> Object:
        return await _finish(self._update(key, new, current, dry_run))

    async def delete(
        self, key: Key, current: Object, options: DeleteOptions, *, context: RequestContext
    ) -> rest.DeletionResult:
        return await _finish(self._delete(key, current, options))

    async def _create(self, obj: Object, dry_run: bool) -> Object:
        release = await offload_if_large(partial(to_release, obj, None, self._settings()), size=json_size(obj))
        key = Key(obj["metadata"]["namespace"], obj["metadata"]["name"])
        try:
            with _errors_of(key):
                stored = await self._cluster.create(HELMRELEASES, release, dry_run=dry_run, field_manager=FIELD_MANAGER)
        except errors.AlreadyExists as e:
            await self._refuse_foreign(key, e)
            raise
        return await self._stored(key, stored, dry_run)

    async def _refuse_foreign(self, key: Key, error: errors.AlreadyExists) -> None:
        """A HelmRelease that holds no Tenant is never adopted (ATTACK-07): to say `already exists` of a Tenant that a
        GET does not find would send clients round in circles."""
        if await self.confirm_absent(key):
            why = f'a HelmRelease "{release_name(key.name)}" that holds no Tenant is in the way; rename or delete it'
            raise errors.Conflict(TENANTS, key.name, why) from error

    async def _update(self, key: Key, new: Object, current: Object, dry_run: bool) -> Object:
        version = current["metadata"]["resourceVersion"]
        base = self._releases.get(key, version)
        if base is None:
            base = await self._live(key)
        if base is None:
            raise errors.NotFound(TENANTS, key.name)
        if base["metadata"]["resourceVersion"] != version:
            raise errors.Conflict(TENANTS, key.name)
        release = await offload_if_large(partial(to_release, new, base, self._settings()), size=json_size(new, base))
        if release == base:
            return current
        with _errors_of(key):
            stored = await self._cluster.update(HELMRELEASES, release, dry_run=dry_run, field_manager=FIELD_MANAGER)
        return await self._stored(key, stored, dry_run)

    async def _delete(self, key: Key, current: Object, options: DeleteOptions) -> rest.DeletionResult:
        body = _delete_body(current, options)
        uid = current["metadata"]["uid"]
        try:
            with _errors_of(key):
                answer = await self._cluster.delete(HELMRELEASES, key.namespace, release_name(key.name), options=body)
        except errors.NotFound:
            self._cache.expect_deletion(key, uid)
            raise
        gone = answer.get("kind") == "Status" or not answer["metadata"].get("deletionTimestamp")
        if not gone:
            return rest.DeletionResult(object=await self._stored(key, answer, options.dry_run), removed=False)
        if not options.dry_run:
            self._cache.expect_deletion(key, uid)
        return rest.DeletionResult(object=current, removed=True)

    async def _stored(self, key: Key, release: Object, dry_run: bool) -> Object:
        """The Tenant that the host answered with; this replica's next read will have it."""
        tenant = await offload_if_large(partial(to_tenant, release), size=json_size(release))
        metadata = release["metadata"]
        if dry_run:
            return tenant
        self._feed.cluster_answered()
        self._releases.add(key, release)
        if metadata.get("deletionTimestamp") and not metadata.get("finalizers"):
            self._cache.expect_deletion(key, metadata["uid"])
        else:
            self._cache.expect_version(_version(release))
        return tenant

    async def _live(self, key: Key) -> Object | None:
        """The HelmRelease at the host, None if it does not exist or holds no Tenant."""
        try:
            with _errors_of(key):
                release = await self._cluster.get(HELMRELEASES, key.namespace, release_name(key.name))
            tenant_key(release)
        except (errors.NotFound, NotATenant):
            return None
        except StatusError as e:
            if e.code == 404:
                raise errors.ServiceUnavailable("the host API does not serve HelmReleases", retry_after=1) from e
            raise
        self._feed.cluster_answered()
        self._releases.add(key, release)
        return release


@contextmanager
def _errors_of(key: Key) -> Iterator[None]:
    """Raises what the host says of the HelmRelease as errors of the Tenant: its NotFound is always about this very
    object, while any other 404 of the host stays a plain StatusError (WIRE-I24)."""
    try:
        yield
    except StatusError as e:
        error = to_tenant_error(e, key)
        if error is e:
            raise
        raise error from e


def _delete_body(current: Object, options: DeleteOptions) -> dict[str, Any]:
    """DeleteOptions that hold for the very state that admission judged (WIRE-D89, API-2)."""
    metadata = current["metadata"]
    body: dict[str, Any] = {
        "preconditions": {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]},
    }
    given = {
        "propagationPolicy": options.propagation_policy,
        "orphanDependents": options.orphan_dependents,
        "gracePeriodSeconds": options.grace_period_seconds,
        "dryRun": ["All"] if options.dry_run else None,
    }
    return body | {field: value for field, value in given.items() if value is not None}


def _version(release: Object) -> int:
    return int(release["metadata"]["resourceVersion"])


async def _finish(write: Coroutine[Any, Any, T]) -> T:
    """The result of a write that is not broken off half-way: a caller that is cancelled leaves once the write
    is done, so that what it holds around the write, such as admission's lock, is held until then."""
    task = asyncio.ensure_future(write)
    # nobody is left to tell if the caller is cancelled and the write fails: the exception counts as seen
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise
