"""The Tenant API, put together: informer -> feed -> watch cache -> store, tree and admission."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from admission.chain import Chain, Observer
from admission.namespaces import HostNamespaces
from admission.tenants import tenant_plugins
from apiserver import rest
from apiserver.history import HistoryLimits
from apiserver.watchcache import WatchCache
from controller.informer import Informer
from registry.generic.store import ReadOnlyStatus, Store
from registry.host import HELMRELEASES, NAMESPACES, Host
from registry.names import GROUP, RELEASE_SELECTOR
from registry.tenant.feed import TenantFeed
from registry.tenant.releases import Releases, slim
from registry.tenant.settings import ReleaseSettings
from registry.tenant.storage import ReleaseBackend
from registry.tenant.strategy import TenantStrategy
from registry.tenant.tree import TenantTree

VERSION = "v1alpha1"


@dataclass(frozen=True, kw_only=True)
class TenantApi:
    """What serves Tenants, and the informers that must run for it."""

    group: str
    version: str
    storages: Mapping[str, rest.Storage]
    admission: Chain
    cache: WatchCache
    tree: TenantTree
    releases: Informer
    namespaces: Informer

    @property
    def informers(self) -> tuple[Informer, ...]:
        return self.releases, self.namespaces


def tenant_api(
    *,
    host: Host,
    root_host: str,
    settings: ReleaseSettings,
    observe: Observer,
    history: HistoryLimits | None = None,
) -> TenantApi:
    """The Tenant API over a host; nothing runs yet."""
    strategy = TenantStrategy()
    cache = WatchCache(strategy.resource, history=history or HistoryLimits())
    tree = TenantTree(root_host=root_host)
    cache.subscribe(tree.on_event)
    releases = Informer(host, HELMRELEASES, label_selector=RELEASE_SELECTOR, slim=slim)
    feed = TenantFeed(resource=strategy.resource, cache=cache, retry=releases.retry_now)
    releases.add_handler(feed)
    namespaces = Informer(host, NAMESPACES)
    store = Store(
        backend=ReleaseBackend(host=host, cache=cache, feed=feed, releases=Releases(releases.store), settings=settings),
        strategy=strategy,
    )
    source = HostNamespaces(host=host, lister=namespaces.store, synced=namespaces.synced)
    plugins = tenant_plugins(tree=tree, cache=cache, namespaces=source, root_host=root_host)
    return TenantApi(
        group=GROUP,
        version=VERSION,
        storages={"tenants": store, "tenants/status": ReadOnlyStatus(store)},
        admission=Chain(plugins, observe=observe),
        cache=cache,
        tree=tree,
        releases=releases,
        namespaces=namespaces,
    )
