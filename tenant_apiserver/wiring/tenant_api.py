"""The Tenant API, put together: informer -> feed -> watch cache -> store, tree and admission; and TenantNamespaces."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from admission.chain import Chain, DurationObserver, Plugin
from admission.namespace_source import ClusterNamespaces, NamespaceSource
from admission.tenant.plugins import tenant_plugins
from apiserver import rest
from apiserver.authorization.authorizer import Authorizer
from apiserver.storage.event_history import HistoryLimits
from apiserver.storage.watch_cache import WatchCache
from controller.platform.settings import SettingsSource
from registry.cluster.informer import Informer
from registry.cluster.interface import HELMRELEASES, NAMESPACES, ClusterClient
from registry.generic.store import ReadOnlyStatus, Store
from registry.names import RELEASE_SELECTOR
from registry.tenant.release_cache import ReleaseCache, trim_release
from registry.tenant.storage import ReleaseBackend
from registry.tenant.strategy import TenantStrategy
from registry.tenant.tree import TenantTree
from registry.tenant.watch_feed import TenantFeed
from registry.tenantnamespace.convert import PLURAL, tenant_namespace_resource
from registry.tenantnamespace.storage import TenantNamespaces
from registry.tenantnamespace.watch_feed import TenantNamespaceFeed
from tenant_apiserver.wiring.visibility import VisibilitySources, by_rbac, by_reviews


@dataclass(frozen=True, kw_only=True)
class TenantApi:
    """What serves Tenants and TenantNamespaces, and the informers that must run for it."""

    storages: Mapping[str, rest.Storage]
    admission: Chain
    namespace_storages: Mapping[str, rest.Storage]
    cache: WatchCache
    namespace_cache: WatchCache
    tree: TenantTree
    releases: Informer
    namespaces: Informer
    namespace_source: NamespaceSource
    visibility: VisibilitySources

    @property
    def informers(self) -> tuple[Informer, ...]:
        return self.releases, self.namespaces, *self.visibility.informers

    @property
    def caches(self) -> tuple[WatchCache, ...]:
        return self.cache, self.namespace_cache


def tenant_api(
    *,
    cluster: ClusterClient,
    settings: SettingsSource,
    root_host: str,
    observe: DurationObserver,
    cluster_admission: Callable[[NamespaceSource], Sequence[Plugin]],
    history: HistoryLimits | None = None,
    reviews: Authorizer | None = None,
    finalizer: bool = False,
) -> TenantApi:
    """The Tenant API over a host; nothing runs yet. `root_host` is the root's domain where the settings have none.

    The plugins of `cluster_admission` come behind those of Tenants. Who may see what is told by the host's RBAC, or by
    `reviews`.
    `finalizer` tells whether there is a controller that new Tenants are to wait for when they are deleted.
    """
    strategy, limits = TenantStrategy(), history or HistoryLimits()
    namespace_cache = WatchCache(tenant_namespace_resource(), history=limits)
    if reviews is None:
        visibility = by_rbac(cluster)
    else:
        visibility = by_reviews(
            reviews,
            places=lambda: [namespace.key.name for namespace in namespace_cache],
            version=lambda: namespace_cache.rv,
        )
    cache = WatchCache(strategy.resource, history=limits)
    tree = TenantTree(root_host=settings.current.publishing.host or root_host)
    settings.subscribe(lambda: tree.change_root_host(settings.current.publishing.host or root_host))
    cache.subscribe(tree.on_event)
    releases = Informer(cluster, HELMRELEASES, label_selector=RELEASE_SELECTOR, transform=trim_release)
    feed = TenantFeed(resource=strategy.resource, cache=cache, retry=releases.retry_now)
    releases.add_handler(feed)
    namespaces = Informer(cluster, NAMESPACES)
    store = Store(
        backend=ReleaseBackend(
            cluster=cluster,
            cache=cache,
            feed=feed,
            releases=ReleaseCache(releases.store),
            settings=lambda: replace(settings.current.release.to_release_settings(), finalizer=finalizer),
        ),
        strategy=strategy,
        visibility=visibility.tenants,
    )
    namespace_feed = TenantNamespaceFeed(namespace_cache)
    namespaces.add_handler(namespace_feed)
    tenant_namespaces = TenantNamespaces(cache=namespace_cache, feed=namespace_feed, visibility=visibility.namespaces)
    source = ClusterNamespaces(cluster=cluster, lister=namespaces.store, synced=namespaces.synced)
    plugins = tenant_plugins(tree=tree, cache=cache, namespaces=source)
    return TenantApi(
        storages={"tenants": store, "tenants/status": ReadOnlyStatus(store)},
        admission=Chain((*plugins, *cluster_admission(source)), observe=observe),
        namespace_storages={PLURAL: tenant_namespaces},
        cache=cache,
        namespace_cache=namespace_cache,
        visibility=visibility,
        tree=tree,
        releases=releases,
        namespaces=namespaces,
        namespace_source=source,
    )
