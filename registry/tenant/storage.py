"""The Backend of Tenants, which are stored as HelmReleases in the cluster.

Reads come from the watch cache that the informer feeds. Updates are conditional on the resourceVersion they start from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from apiserver import rest
from apiserver.encoding.offload import json_size, offload_if_large
from apiserver.meta import errors
from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Key, Object
from apiserver.request.context import RequestContext
from apiserver.request.options import DeleteOptions
from apiserver.storage.watch_cache import WatchCache
from registry.cluster.interface import HELMRELEASES, ClusterClient
from registry.generic.run_to_end import run_to_end
from registry.names import release_name
from registry.tenant.convert import NotATenant, tenant_key, to_release, to_tenant
from registry.tenant.convert_errors import TENANTS, to_tenant_error
from registry.tenant.release_cache import ReleaseCache
from registry.tenant.release_settings import ReleaseSettings
from registry.tenant.watch_feed import TenantFeed

FIELD_MANAGER = "tenant-apiserver"
STALE_WARNING = "kube-apiserver cannot be reached at present: the response may be out of date"


class ReleaseBackend:
    """Raises kube-apiserver's errors as errors about the Tenant, and ClusterUnreachable without a response."""

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
        release = await self._read_release(key)
        return (
            await offload_if_large(partial(to_tenant, release), size=json_size(release))
            if release is not None
            else None
        )

    async def confirm_absent(self, key: Key) -> bool:
        release = await self._read_release(key)
        if release is None:
            return True
        self._cache.expect_version(_version(release))
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
        release = await offload_if_large(partial(to_release, obj, None, self._settings()), size=json_size(obj))
        key = Key(obj["metadata"]["namespace"], obj["metadata"]["name"])
        try:
            with _translated_errors(key):
                stored = await self._cluster.create(HELMRELEASES, release, dry_run=dry_run, field_manager=FIELD_MANAGER)
        except errors.AlreadyExists as e:
            await self._reject_foreign_release(key, e)
            raise
        return await self._stored(key, stored, dry_run)

    async def _reject_foreign_release(self, key: Key, error: errors.AlreadyExists) -> None:
        """Raises Conflict if the existing HelmRelease does not store a Tenant. It is never adopted (ATTACK-07), and a
        client that got AlreadyExists for a Tenant that it cannot GET would retry forever."""
        if await self.confirm_absent(key):
            why = f'a HelmRelease "{release_name(key.name)}" that does not store a Tenant exists; rename or delete it'
            raise errors.Conflict(TENANTS, key.name, why) from error

    async def _update(self, key: Key, new: Object, current: Object, dry_run: bool) -> Object:
        version = current["metadata"]["resourceVersion"]
        base = self._releases.get(key, version)
        if base is None:
            base = await self._read_release(key)
        if base is None:
            raise errors.NotFound(TENANTS, key.name)
        if base["metadata"]["resourceVersion"] != version:
            raise errors.Conflict(TENANTS, key.name)
        release = await offload_if_large(partial(to_release, new, base, self._settings()), size=json_size(new, base))
        if release == base:
            return current
        with _translated_errors(key):
            stored = await self._cluster.update(HELMRELEASES, release, dry_run=dry_run, field_manager=FIELD_MANAGER)
        return await self._stored(key, stored, dry_run)

    async def _delete(self, key: Key, current: Object, options: DeleteOptions) -> rest.DeletionResult:
        body = _delete_body(current, options)
        uid = current["metadata"]["uid"]
        try:
            with _translated_errors(key):
                answer = await self._cluster.delete(HELMRELEASES, key.namespace, release_name(key.name), options=body)
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
        """Returns the Tenant of a write's response, and makes this replica's next read wait until the cache has it."""
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

    async def _read_release(self, key: Key) -> Object | None:
        """Reads the HelmRelease from the cluster. None if it does not exist or does not store a Tenant."""
        try:
            with _translated_errors(key):
                release = await self._cluster.get(HELMRELEASES, key.namespace, release_name(key.name))
            tenant_key(release)
        except (errors.NotFound, NotATenant):
            return None
        except StatusError as e:
            if e.code == 404:
                raise errors.ServiceUnavailable("kube-apiserver does not serve HelmReleases", retry_after=1) from e
            raise
        self._feed.cluster_answered()
        self._releases.add(key, release)
        return release


@contextmanager
def _translated_errors(key: Key) -> Iterator[None]:
    """Translates errors about the HelmRelease into errors about the Tenant. A NotFound is therefore always about this
    object, while any other response with code 404 stays a plain StatusError (WIRE-I24)."""
    try:
        yield
    except StatusError as e:
        error = to_tenant_error(e, key)
        if error is e:
            raise
        raise error from e


def _delete_body(current: Object, options: DeleteOptions) -> dict[str, Any]:
    """DeleteOptions with preconditions on the state that admission has seen (WIRE-D89, API-2)."""
    metadata = current["metadata"]
    body: dict[str, Any] = {
        "preconditions": {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]},
    }
    optional = {
        "propagationPolicy": options.propagation_policy,
        "orphanDependents": options.orphan_dependents,
        "gracePeriodSeconds": options.grace_period_seconds,
        "dryRun": ["All"] if options.dry_run else None,
    }
    return body | {field: value for field, value in optional.items() if value is not None}


def _version(release: Object) -> int:
    return int(release["metadata"]["resourceVersion"])
