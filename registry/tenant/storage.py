"""The Backend of Tenants, which are stored as HelmReleases in the cluster."""

from __future__ import annotations

from collections.abc import Callable

from apiserver.meta.resource import Object
from apiserver.storage.watch_cache import WatchCache
from registry.application.release_backend import ReleaseBackend
from registry.application.release_cache import ReleaseCache
from registry.application.release_errors import ApplicationNames
from registry.cluster.interface import ClusterClient
from registry.tenant.convert import NotATenant, tenant_key, to_release, to_tenant
from registry.tenant.convert_errors import TENANT_NAMES
from registry.tenant.release_settings import ReleaseSettings
from registry.tenant.watch_feed import TenantFeed


class TenantBackend(ReleaseBackend):
    def __init__(
        self,
        *,
        cluster: ClusterClient,
        cache: WatchCache,
        feed: TenantFeed,
        releases: ReleaseCache,
        settings: Callable[[], ReleaseSettings],
    ) -> None:
        conversion = TenantConversion(settings)
        super().__init__(cluster=cluster, cache=cache, feed=feed, releases=releases, conversion=conversion)


class TenantConversion:
    """The ReleaseConversion of Tenants."""

    def __init__(self, settings: Callable[[], ReleaseSettings]) -> None:
        self._settings = settings

    @property
    def names(self) -> ApplicationNames:
        return TENANT_NAMES

    def stores(self, release: Object) -> bool:
        try:
            tenant_key(release)
        except NotATenant:
            return False
        return True

    def to_object(self, release: Object) -> Object:
        return to_tenant(release)

    def to_new_release(self, obj: Object) -> Object:
        return to_release(obj, None, self._settings())

    def to_changed_release(self, obj: Object, current: Object) -> Object:
        return to_release(obj, current, self._settings())
