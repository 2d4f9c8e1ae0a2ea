"""Builds the Tenant API: informers fill watch caches through feeds; stores, the tree and admission use the caches."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from admission.chain import Chain, DurationObserver, Plugin, ValidatingPlugin
from admission.complete_caches import CompleteCaches
from admission.namespace_source import ClusterNamespaces, NamespaceSource
from admission.tenant.disclosure import Disclosure
from admission.tenant.plugins import tenant_plugins, tree_plugins
from apiserver import rest
from apiserver.authorization.authorizer import Authorizer
from apiserver.meta.resource import Key
from apiserver.storage.event_history import HistoryLimits
from apiserver.storage.watch_cache import WatchCache
from controller.platform.settings import SettingsSource
from registry.cluster.informer import Informer
from registry.cluster.interface import HELMRELEASES, NAMESPACES, ClusterClient
from registry.generic.backend import Backend
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
from tenant_apiserver.wiring.claims import Replica, TenantState, claiming_backend
from tenant_apiserver.wiring.owner_references import owner_plugins
from tenant_apiserver.wiring.policies import DiscoverableCluster
from tenant_apiserver.wiring.visibility import VisibilitySources, by_rbac, by_reviews


@dataclass(frozen=True, kw_only=True)
class TenantApi:
    """The storages of Tenants and TenantNamespaces, and the informers that must run for them."""

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
    tasks: Mapping[str, Callable[[], Awaitable[None]]]
    """Tasks besides the informers, by name; the caller runs them."""

    @property
    def informers(self) -> tuple[Informer, ...]:
        return self.releases, self.namespaces, *self.visibility.informers

    @property
    def caches(self) -> tuple[WatchCache, ...]:
        return self.cache, self.namespace_cache


def tenant_api(
    *,
    cluster: DiscoverableCluster,
    settings: SettingsSource,
    root_host: str,
    authorizer: Authorizer,
    observe: DurationObserver,
    cluster_admission: Callable[[NamespaceSource], Sequence[Plugin]],
    admission_informers: Sequence[Informer],
    history: HistoryLimits | None = None,
    reviews: Authorizer | None = None,
    finalizer: bool = False,
    replica: Replica | None = None,
) -> TenantApi:
    """Builds the Tenant API over a cluster; the caller runs its informers.

    `root_host` is the domain of the root tenant if the settings have none. `authorizer` decides about the requests,
    about the rights that some changes of Tenants need besides, and what refusals may tell. The plugins of
    `cluster_admission` run after those of Tenants, and read the caches of `admission_informers`. `reviews` decides
    about visibility; without it the cluster's RBAC objects do. With `finalizer`, new Tenants get a finalizer, which a
    running controller must remove when they are deleted. Without `replica`, no other process may serve Tenants of the
    cluster.
    """
    strategy, limits = TenantStrategy(), history or HistoryLimits()
    namespace_cache = WatchCache(tenant_namespace_resource(), history=limits)
    cache = WatchCache(strategy.resource, history=limits)
    tree = _tenant_tree(cache, settings, root_host)
    visibility = _visibility(cluster, reviews, namespace_cache, tree)
    releases = Informer(cluster, HELMRELEASES, label_selector=RELEASE_SELECTOR, transform=trim_release)
    feed = TenantFeed(resource=strategy.resource, cache=cache, retry=releases.retry_now)
    releases.add_handler(feed)
    namespaces = Informer(cluster, NAMESPACES)
    namespace_feed = TenantNamespaceFeed(namespace_cache)
    namespaces.add_handler(namespace_feed)
    tenant_namespaces = TenantNamespaces(cache=namespace_cache, feed=namespace_feed, visibility=visibility.namespaces)
    source = ClusterNamespaces(cluster=cluster, lister=namespaces.store)
    caches = CompleteCaches([each.complete for each in (releases, namespaces, *admission_informers)])
    stored = _release_backend(cluster, cache, feed, releases, settings, finalizer=finalizer)
    owners = owner_plugins(
        cluster=cluster,
        authorizer=authorizer,
        tenants=stored,
        namespaces=source,
        visible_namespaces=visibility.namespaces,
    )
    disclosure = Disclosure(authorizer, tells_amounts=lambda: settings.current.tenants.quota_messages == "amounts")
    judging = tree_plugins(tree=tree, namespaces=source, finalizes=finalizer, disclosure=disclosure)
    plugins = tenant_plugins(
        cache=cache, namespaces=source, caches=caches, judging=judging, alone=replica is None, owners=owners
    )
    state = TenantState(cluster=cluster, cache=cache, tree=tree, feed=feed, caches=CompleteCaches([releases.complete]))
    backend, tasks = _shared_backend(stored, state, replica, judging)
    store = Store(backend=backend, strategy=strategy, visibility=visibility.tenants)
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
        tasks=tasks,
    )


def _shared_backend(
    stored: Backend, state: TenantState, replica: Replica | None, plugins: Sequence[ValidatingPlugin]
) -> tuple[Backend, Mapping[str, Callable[[], Awaitable[None]]]]:
    """The Backend of the store, and the tasks that it needs."""
    if replica is None:
        return stored, {}
    backend, record = claiming_backend(stored, state, replica, plugins=plugins)
    return backend, {"claims": record}


def _release_backend(
    cluster: ClusterClient,
    cache: WatchCache,
    feed: TenantFeed,
    releases: Informer,
    settings: SettingsSource,
    *,
    finalizer: bool,
) -> ReleaseBackend:
    return ReleaseBackend(
        cluster=cluster,
        cache=cache,
        feed=feed,
        releases=ReleaseCache(releases.store),
        settings=lambda: replace(settings.current.release.to_release_settings(), finalizer=finalizer),
    )


def _visibility(
    cluster: ClusterClient, reviews: Authorizer | None, namespaces: WatchCache, tree: TenantTree
) -> VisibilitySources:
    if reviews is None:
        return by_rbac(cluster)

    def own_tenants(visible: frozenset[str]) -> Iterator[Key]:
        found = (tree.by_namespace(namespace) for namespace in visible)
        return (tenant.key for tenant in found if tenant is not None)

    return by_reviews(
        reviews,
        namespaces=lambda: [each.key.name for each in namespaces],
        own_tenants=own_tenants,
        version=lambda: namespaces.rv,
    )


def _tenant_tree(cache: WatchCache, settings: SettingsSource, root_host: str) -> TenantTree:
    """The tree of the cached Tenants; its root has the domain of the current settings, or else `root_host`."""
    tree = TenantTree(root_host=settings.current.publishing.host or root_host)
    settings.subscribe(lambda: tree.change_root_host(settings.current.publishing.host or root_host))
    cache.subscribe(tree.on_event)
    return tree
