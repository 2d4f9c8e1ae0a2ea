"""Builds the Tenant API: informers fill watch caches through feeds; stores, the tree and admission use the caches."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from admission.chain import Chain, DurationObserver, Plugin, ValidatingPlugin
from admission.complete_caches import CompleteCaches
from admission.namespace_source import ClusterNamespaces, NamespaceSource
from admission.tenant.cascade_notice import CascadeNotice
from admission.tenant.disclosure import Disclosure
from admission.tenant.plugins import tenant_plugins, tree_plugins
from admission.tenant.quota_ledger import NamespaceUsage
from admission.tenant.room_for_own_objects import RoomForOwnObjects
from admission.tenant.unserved_flags import UnservedFlags
from apiserver import rest
from apiserver.authorization.authorizer import Authorizer
from apiserver.meta.resource import Key
from apiserver.storage.event_history import HistoryLimits
from apiserver.storage.watch_cache import WatchCache
from controller.platform.settings import SettingsSource
from registry.application.release_backend import ReleaseBackend
from registry.application.release_cache import ReleaseCache
from registry.cluster.informer import Informer
from registry.cluster.interface import NAMESPACES, RESOURCEQUOTAS, ClusterResource, is_terminating
from registry.cluster.shared_events import SharedEvents
from registry.explain.diff.storage import TenantDiffs
from registry.generic.backend import Backend
from registry.generic.store import ReadOnlyStatus, Store
from registry.tenant.pool_quotas import POOL_NAME, KeptUntilGone, PoolQuotas
from registry.tenant.storage import TenantBackend
from registry.tenant.strategy import TenantStrategy
from registry.tenant.tree import TenantTree
from registry.tenant.watch_feed import TenantFeed
from registry.tenantnamespace.convert import PLURAL, tenant_namespace_resource
from registry.tenantnamespace.storage import TenantNamespaces
from registry.tenantnamespace.watch_feed import TenantNamespaceFeed
from tenant_apiserver.wiring.claims import Claims, Replica, ReplicaState, claiming_backend
from tenant_apiserver.wiring.explain import ExplainedTenants, tenant_explain
from tenant_apiserver.wiring.owner_references import owner_plugins
from tenant_apiserver.wiring.planning import ControllersPlanner
from tenant_apiserver.wiring.platform_ratios import PlatformRatios, platform_ratios
from tenant_apiserver.wiring.policies import DiscoverableCluster
from tenant_apiserver.wiring.releases import TENANTS, watch_releases
from tenant_apiserver.wiring.visibility import VisibilitySources, by_rbac, by_reviews


@dataclass(frozen=True, kw_only=True)
class TenantApiConfig:
    """The parameters of `tenant_api`."""

    cluster: DiscoverableCluster
    settings: SettingsSource
    root_host: str
    """The domain of the root tenant if the settings have none."""
    authorizer: Authorizer
    """Decides about the requests, about the rights that some changes of Tenants need besides, and what refusals may
    tell."""
    observe: DurationObserver
    cluster_admission: Callable[[NamespaceSource], Sequence[Plugin]]
    """Returns the plugins that run after those of Tenants."""
    admission_informers: Sequence[Informer]
    """The informers whose caches the plugins of `cluster_admission` read."""
    history: HistoryLimits = field(default_factory=HistoryLimits)
    reviews: Authorizer | None = None
    """Decides about visibility; without it the cluster's RBAC objects do."""
    finalizer: bool = False
    """Gives new Tenants a finalizer, which a running controller must remove when they are deleted."""
    replica: Replica | None = None
    """Without it, no other process may serve Tenants of the cluster."""


@dataclass(frozen=True, kw_only=True)
class TenantApi:
    """The storages of Tenants and TenantNamespaces, and the informers that must run for them."""

    storages: Mapping[str, rest.Storage]
    admission: Chain
    planner: ControllersPlanner
    """The controllers complete it."""
    namespace_storages: Mapping[str, rest.Storage]
    cache: WatchCache
    tree: TenantTree
    releases: Informer
    """Of all HelmReleases that concern anybody, also of those that `release_events` gives to others."""
    release_events: SharedEvents
    namespaces: Informer
    pool_quotas: PoolQuotas
    ratios: PlatformRatios
    platform_configmap: Informer
    """One of `informers`. The ConfigMap that `ratios` handles."""
    visibility: VisibilitySources
    informers: Sequence[Informer]
    """All informers, with those of `releases` and `namespaces`."""
    caches: Sequence[WatchCache]
    """All watch caches, with `cache`."""
    tasks: Mapping[str, Callable[[], Awaitable[None]]]
    """Tasks besides the informers, by name; the caller runs them."""
    may_be_withdrawn: Callable[[Key], bool]
    """Returns True for a Tenant that no controller may act on yet, because another one may exclude it."""

    @property
    def object_caches(self) -> Mapping[ClusterResource, Informer]:
        """The informers whose objects controllers observe and write."""
        return {each.resource: each for each in (self.releases, self.namespaces)}


def tenant_api(config: TenantApiConfig) -> TenantApi:
    """Builds the Tenant API over a cluster; the caller runs its informers."""
    strategy = TenantStrategy()
    watched = _watched(config, strategy)
    quotas, pool_quotas = _pool_quotas(config.cluster, watched)
    ratio_source, ratios = platform_ratios(config.cluster, config.settings, watched.tree)
    stored = _release_backend(config, watched)
    tree_rules = tree_plugins(
        tree=watched.tree,
        namespaces=watched.namespace_source,
        finalizes=config.finalizer,
        disclosure=_disclosure(config),
        usage=pool_quotas.used,
    )
    claims = _claims(config, watched, stored, tree_rules, usage=pool_quotas.used)
    backend: Backend = claims.backend if claims is not None else stored
    planner = ControllersPlanner()
    admission = Chain(_plugins(config, watched, stored, tree_rules), observe=config.observe)
    store = Store(backend=backend, strategy=strategy, visibility=watched.visibility.tenants, shown=strategy.shown)
    return TenantApi(
        storages={
            "tenants": store,
            "tenants/status": ReadOnlyStatus(store),
            "tenants/diff": _diffs(config, watched, store, admission, planner),
            "tenants/explain": tenant_explain(config.cluster, _explained(watched, store), config.authorizer),
        },
        admission=admission,
        planner=planner,
        namespace_storages={PLURAL: watched.tenant_namespaces},
        cache=watched.cache,
        tree=watched.tree,
        releases=watched.releases,
        release_events=watched.release_events,
        namespaces=watched.namespaces,
        pool_quotas=pool_quotas,
        ratios=ratios,
        platform_configmap=ratio_source,
        visibility=watched.visibility,
        informers=(watched.releases, watched.namespaces, quotas, ratio_source, *watched.visibility.informers),
        caches=(watched.cache, watched.namespace_cache),
        tasks=claims.tasks if claims is not None else {},
        may_be_withdrawn=claims.may_be_withdrawn if claims is not None else lambda key: False,
    )


def _diffs(
    config: TenantApiConfig, watched: _Watched, store: Store, admission: Chain, planner: ControllersPlanner
) -> TenantDiffs:
    return TenantDiffs(
        store,
        cluster=config.cluster,
        authorizer=config.authorizer,
        admission=admission,
        planner=planner,
        visibility=watched.visibility.tenants,
        wait_for_own_writes=watched.cache.wait_for_own_writes,
    )


def _explained(watched: _Watched, store: Store) -> ExplainedTenants:
    return ExplainedTenants(getter=store, cache=watched.cache, tree=watched.tree, visibility=watched.visibility.tenants)


def _disclosure(config: TenantApiConfig) -> Disclosure:
    settings = config.settings
    return Disclosure(config.authorizer, tells_amounts=lambda: settings.current.tenants.quota_messages == "amounts")


def _plugins(
    config: TenantApiConfig, watched: _Watched, stored: TenantBackend, tree_rules: Sequence[ValidatingPlugin]
) -> Sequence[Plugin]:
    informers = (watched.releases, watched.namespaces, *config.admission_informers)
    plugins = tenant_plugins(
        cache=watched.cache,
        namespaces=watched.namespace_source,
        caches=CompleteCaches([each.complete for each in informers]),
        judging=tree_rules,
        alone=config.replica is None,
        owners=owner_plugins(
            cluster=config.cluster,
            authorizer=config.authorizer,
            tenants=stored,
            namespaces=watched.namespace_source,
            visible_namespaces=watched.visibility.namespaces,
        ),
        notices=[
            # without our controllers those of the cluster install what tenants ask for, and nothing is known of them
            UnservedFlags(has_charts=lambda: not config.finalizer or config.settings.current.tenants.chart == "flux"),
            CascadeNotice(),
            RoomForOwnObjects(tree=watched.tree),
        ],
    )
    return *plugins, *config.cluster_admission(watched.namespace_source)


@dataclass(frozen=True, kw_only=True)
class _Watched:
    """The informers of HelmReleases and Namespaces, and the caches and indexes that they fill."""

    cache: WatchCache
    namespace_cache: WatchCache
    tree: TenantTree
    feed: TenantFeed
    releases: Informer
    release_events: SharedEvents
    namespaces: Informer
    namespace_source: NamespaceSource
    tenant_namespaces: TenantNamespaces
    visibility: VisibilitySources


def _watched(config: TenantApiConfig, strategy: TenantStrategy) -> _Watched:
    cluster, settings, limits = config.cluster, config.settings, config.history
    namespace_cache = WatchCache(tenant_namespace_resource(), history=limits)
    cache = WatchCache(strategy.resource, history=limits)
    tree = _tenant_tree(cache, settings, config.root_host)
    visibility = _visibility(config, namespace_cache, tree)
    found = watch_releases(cluster, minimum_version=visibility.first_version)
    releases = found.informer
    feed = TenantFeed(resource=strategy.resource, cache=cache, retry=releases.retry_now)
    found.events.subscribe(TENANTS, feed)
    namespaces = Informer(cluster, NAMESPACES, minimum_version=visibility.first_version)
    namespace_feed = TenantNamespaceFeed(namespace_cache)
    namespaces.add_handler(namespace_feed)
    return _Watched(
        cache=cache,
        namespace_cache=namespace_cache,
        tree=tree,
        feed=feed,
        releases=releases,
        release_events=found.events,
        namespaces=namespaces,
        namespace_source=ClusterNamespaces(cluster=cluster, lister=namespaces.store),
        tenant_namespaces=TenantNamespaces(
            cache=namespace_cache, feed=namespace_feed, visibility=visibility.namespaces
        ),
        visibility=visibility,
    )


def _pool_quotas(cluster: DiscoverableCluster, watched: _Watched) -> tuple[Informer, PoolQuotas]:
    def is_being_deleted(namespace: str) -> bool:
        tenant, found = watched.tree.by_namespace(namespace), watched.namespaces.store.get(Key("", namespace))
        return (tenant is not None and tenant.terminating) or (found is not None and is_terminating(found))

    handler = PoolQuotas(keeps=is_being_deleted)
    watched.namespaces.add_handler(KeptUntilGone(handler))
    informer = Informer(cluster, RESOURCEQUOTAS, field_selector=f"metadata.name={POOL_NAME}", store_objects=False)
    informer.add_handler(handler)
    return informer, handler


def _claims(
    config: TenantApiConfig,
    watched: _Watched,
    stored: ReleaseBackend,
    plugins: Sequence[ValidatingPlugin],
    *,
    usage: NamespaceUsage,
) -> Claims | None:
    """None if no other process serves Tenants."""
    if config.replica is None:
        return None
    state = ReplicaState(
        cluster=config.cluster,
        cache=watched.cache,
        tree=watched.tree,
        feed=watched.feed,
        caches=CompleteCaches([watched.releases.complete]),
        usage=usage,
    )
    return claiming_backend(stored, state, config.replica, plugins=plugins)


def _release_backend(config: TenantApiConfig, watched: _Watched) -> TenantBackend:
    return TenantBackend(
        cluster=config.cluster,
        cache=watched.cache,
        feed=watched.feed,
        releases=ReleaseCache(watched.releases.store),
        settings=lambda: replace(config.settings.current.release_settings(), finalizer=config.finalizer),
    )


def _visibility(config: TenantApiConfig, namespaces: WatchCache, tree: TenantTree) -> VisibilitySources:
    if config.reviews is None:
        return by_rbac(config.cluster, alone=config.replica is None)

    def own_tenants(visible: frozenset[str]) -> Iterator[Key]:
        found = (tree.by_namespace(namespace) for namespace in visible)
        return (tenant.key for tenant in found if tenant is not None)

    return by_reviews(
        config.reviews,
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
