"""Shows the platform's Package, Cozystack's ConfigMap and the tenants to the settings that depend on them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Object
from apiserver.storage.event_history import CacheEvent
from controller.platform.package import PACKAGE, PACKAGES
from controller.platform.sources import PlatformSources
from registry.cluster.event_handlers import NoOpEventHandler
from registry.cluster.informer_factory import Availability, InformerFactory
from registry.cluster.interface import ClusterClient, ClusterResource
from registry.names import workload_namespace
from tenant_apiserver.wiring.tenant_api import TenantApi

_SELECTOR = f"metadata.name={PACKAGE}"


class PackageWatch(NoOpEventHandler):
    """Watches the one Package, on every replica, for as long as the settings follow it. The cluster may begin to serve
    the kind at any time, or never."""

    def __init__(self, cluster: ClusterClient, sources: PlatformSources) -> None:
        self._sources = sources
        self._informers = InformerFactory(cluster)

    async def run(self) -> None:
        """Runs until cancelled."""
        await self._sources.follows_package.wait()
        available = self._informers.watch_availability(
            PACKAGES.group,
            PACKAGES.kind,
            [PACKAGES.version],
            plural=PACKAGES.plural,
            namespaced=False,
            field_selector=_SELECTOR,
        )
        available.subscribe(self._follow, on_error=self._show_check)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._informers.run(), name="informer-packages")
            group.create_task(self._wait_until_checked(available), name="check-packages")

    async def replace(self, items: Sequence[Object], rv: int) -> None:
        self._sources.show_package(next(iter(items), None))

    def apply(self, type: str, obj: Object, rv: int) -> None:
        self._sources.show_package(None if type == "DELETED" else obj)

    def set_cluster_error(self, error: StatusError | None) -> None:
        if error is not None:
            self._sources.show_error(error)

    def _show_check(self, error: StatusError | None) -> None:
        """Takes note of a check that failed, or that has found after one that failed that Packages are not served."""
        if error is None:
            self._sources.show_package(None)
        else:
            self._sources.show_error(error)

    async def _wait_until_checked(self, available: Availability) -> None:
        await available.checked.wait()
        if available.resource is None:
            self._sources.show_package(None)

    def _follow(self, found: ClusterResource) -> None:
        self._informers.get(found, field_selector=_SELECTOR, store_objects=False).add_handler(self)


def follow_cluster(tenants: TenantApi, sources: PlatformSources) -> None:
    """Shows the ConfigMap and the Tenants to `sources`. Must be called before the informers run."""
    tenants.platform_configmap.add_handler(_ConfigMapHandler(sources))
    tenants.ratios.subscribe_to_problems(sources.show_ratio_problem)
    _follow_tenants(tenants, sources)


def _follow_tenants(tenants: TenantApi, sources: PlatformSources) -> None:
    def is_tenant(namespace: str) -> bool:
        # until all Tenants are known, nothing can be said about one
        return not tenants.releases.synced.is_set() or tenants.tree.by_namespace(namespace) is not None

    def on_event(event: CacheEvent) -> None:
        if event.type != "MODIFIED":
            sources.tenant_changed(workload_namespace(*event.object.key))

    sources.judge_publisher(is_tenant)
    tenants.cache.subscribe(on_event)


class _ConfigMapHandler(NoOpEventHandler):
    """A handler of the informer of ConfigMap cozystack, which goes before the Package as it does for its charts."""

    def __init__(self, sources: PlatformSources) -> None:
        self._sources = sources

    async def replace(self, items: Sequence[Object], rv: int) -> None:
        self._sources.show_configmap(next(iter(items), None))

    def apply(self, type: str, obj: Object, rv: int) -> None:
        self._sources.show_configmap(None if type == "DELETED" else obj)
