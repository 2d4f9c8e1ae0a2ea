"""Lists and watches of Namespaces for those who may not list all: the namespaces of tenants that they may see.

The index and the rule are those of TenantNamespaces: a namespace is visible to users who may `get` it, or all Tenants
in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from apiserver.authorization.authorizer import Authorizer
from apiserver.meta.resource import Key
from apiserver.request.context import Handler, RequestContext
from apiserver.storage.watch_cache import WatchCache
from registry.cluster.informer import Informer
from registry.cluster.interface import NAMESPACES, ClusterClient
from registry.tenantnamespace.convert import to_visible_namespace, visible_namespace_resource
from registry.tenantnamespace.storage import TenantNamespaces
from registry.tenantnamespace.watch_feed import TenantNamespaceFeed
from tenant_apiserver.process import Process, Task, run_after_listed
from tenant_apiserver.proxy.own_endpoint import own_endpoint
from tenant_apiserver.wiring.visibility import RbacSources, visibility_from


class NamespaceLists:
    """The handlers of refused LISTs and WATCHes of Namespaces. The caller runs `tasks`."""

    def __init__(self, cluster: ClusterClient, rbac: RbacSources, process: Process, authorizer: Authorizer) -> None:
        self._visibility = visibility_from(rbac)
        self._cache = WatchCache(visible_namespace_resource())
        process.metrics.track_cache(self._cache)
        feed = TenantNamespaceFeed(self._cache, to_visible_namespace)
        self._namespaces = Informer(cluster, NAMESPACES, store_objects=False, minimum_version=rbac.first_version)
        self._namespaces.add_handler(feed)
        storage = TenantNamespaces(cache=self._cache, feed=feed, visibility=self._visibility.namespaces)
        self._endpoint = own_endpoint(storage, process, authorizer)

    @property
    def informers(self) -> tuple[Informer, ...]:
        return (*self._visibility.informers, self._namespaces)

    @property
    def tasks(self) -> Mapping[str, Task]:
        """Namespaces are listed after the RBAC objects that decide who sees them."""
        rbac = self._visibility.informers
        return {
            **{f"informer-{each.resource.plural}": each.run for each in rbac},
            "informer-namespaces": partial(run_after_listed, rbac, self._namespaces),
        }

    async def handler(self, context: RequestContext) -> Handler | None:
        """None for other kinds, and for callers who see no namespace. Raises StatusError if that cannot be determined
        at present."""
        info = context.info
        if (info.group, info.version, info.resource) != ("", "v1", NAMESPACES.plural):
            return None
        if not await self._sees_any(context):
            return None
        return self._endpoint.handler(info)

    async def _sees_any(self, context: RequestContext) -> bool:
        visible = (await self._visibility.namespaces.for_user(context.user)).visible.namespaces
        if visible is None:
            return True
        return any(self._cache.peek(Key("", name)) is not None for name in visible)
