"""Lists and watches of PersistentVolumes by their claims, for those who may not list all: `kubectl get pv`.

A volume is visible to those who may `get` all PersistentVolumeClaims in the namespace of its claim. The proxy reads the
volumes with its own rights, which an overlay of their own gives it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from admission.chain import Chain
from apiserver import rest
from apiserver.authorization.authorizer import Authorizer
from apiserver.endpoints.installer import install_group_version
from apiserver.meta.errors import ServiceUnavailable
from apiserver.meta.resource import Resource
from apiserver.request.context import Handler, RequestContext
from apiserver.request.options import ListOptions, WatchOptions
from apiserver.storage.pagination import Page
from apiserver.storage.visibility import VisibilitySource
from apiserver.storage.watch_cache import CacheWatcher, WatchCache
from registry.application.release_backend import STALE_WARNING
from registry.cluster.informer import Informer
from registry.cluster.interface import PERSISTENTVOLUMES, ClusterClient
from registry.persistentvolume.convert import claimed_volume_resource
from registry.persistentvolume.watch_feed import ClaimedVolumeFeed
from registry.visibility.visible_objects import VisibilityCriterion
from tenant_apiserver.process import Process, Task, run_after_listed
from tenant_apiserver.wiring.visibility import RbacSources

_CLAIMS: Final = VisibilityCriterion("", "persistentvolumeclaims")


class ClaimedVolumes:
    """An OwnKind. The caller runs `tasks`. Without the rights callers get 503, and the proxy serves the rest."""

    def __init__(self, cluster: ClusterClient, rbac: RbacSources, process: Process, authorizer: Authorizer) -> None:
        self._rbac_informers = rbac.informers
        self._visibility = rbac.new_source([_CLAIMS])
        self._cache = WatchCache(claimed_volume_resource())
        process.metrics.track_cache(self._cache)
        self._feed = ClaimedVolumeFeed(self._cache)
        self._informer = Informer(cluster, PERSISTENTVOLUMES, store_objects=False)
        self._informer.add_handler(self._feed)
        storage = _Storage(self._cache, self._feed, self._visibility)
        installed = install_group_version(
            group="",
            version="v1",
            storages={PERSISTENTVOLUMES.plural: storage},
            admission=Chain(()),
            authorizer=authorizer,
            metrics=process.metrics,
            shutdown=process.stages.shutdown,
        )
        self._endpoint = installed.endpoints[PERSISTENTVOLUMES.plural]

    @property
    def tasks(self) -> Mapping[str, Task]:
        """Volumes are listed after the RBAC objects that decide who sees them."""
        return {"informer-persistentvolumes": partial(run_after_listed, self._rbac_informers, self._informer)}

    async def handler(self, context: RequestContext) -> Handler | None:
        """None for other kinds, and for callers who may get the claims of no namespace. Raises ServiceUnavailable if
        the cluster does not let the proxy read the volumes."""
        info = context.info
        if (info.group, info.version, info.resource) != ("", "v1", PERSISTENTVOLUMES.plural):
            return None
        visible = (await self._visibility.for_user(context.user)).visible.namespaces
        if visible is not None and not visible:
            return None
        if not self._cache.ready and self._feed.cluster_error is not None:
            raise ServiceUnavailable(f"the cluster does not let the proxy {info.verb} {info.resource}")
        return self._endpoint.handler(info)


class _Storage(rest.Lister, rest.Watcher):
    def __init__(self, cache: WatchCache, feed: ClaimedVolumeFeed, visibility: VisibilitySource) -> None:
        self._cache = cache
        self._feed = feed
        self._visibility = visibility

    @property
    def resource(self) -> Resource:
        return self._cache.resource

    async def list(self, context: RequestContext, namespace: str, options: ListOptions) -> Page:
        self._warn(context)
        visibility = await self._visibility.for_user(context.user)
        return await self._cache.list("", options, visible=visibility.visible)

    async def watch(self, context: RequestContext, namespace: str, options: WatchOptions) -> CacheWatcher:
        self._warn(context)
        return await self._cache.watch("", options, visibility=await self._visibility.for_user(context.user))

    def _warn(self, context: RequestContext) -> None:
        if self._feed.cluster_error is not None:
            context.warn(STALE_WARNING)
