"""Lists and watches of PersistentVolumes by their claims, for those who may not list all: `kubectl get pv`.

A volume is visible to those who may `get` all PersistentVolumeClaims in the namespace of its claim. The proxy reads the
volumes with its own rights, which an overlay of their own gives it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from apiserver.authorization.authorizer import Authorizer
from apiserver.meta.errors import ServiceUnavailable
from apiserver.request.context import Handler, RequestContext
from apiserver.storage.watch_cache import WatchCache
from registry.cluster.informer import Informer
from registry.cluster.interface import PERSISTENTVOLUMES, ClusterClient
from registry.persistentvolume.convert import claimed_volume_resource
from registry.persistentvolume.watch_feed import ClaimedVolumeFeed
from registry.projection.readable import warns_if_stale
from registry.projection.storage import VisibleCollection
from registry.visibility.visible_objects import VisibilityCriterion
from tenant_apiserver.process import Process, Task, run_after_listed
from tenant_apiserver.proxy.own_endpoint import own_endpoint
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
        self._informer = Informer(cluster, PERSISTENTVOLUMES, store_objects=False, minimum_version=rbac.first_version)
        self._informer.add_handler(self._feed)
        check = warns_if_stale(self._feed, self._cache)
        storage = VisibleCollection(cache=self._cache, visibility=self._visibility, check=check)
        self._endpoint = own_endpoint(storage, process, authorizer)

    @property
    def informers(self) -> tuple[Informer, ...]:
        return (self._informer,)

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
