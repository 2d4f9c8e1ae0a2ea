"""Builds the API of the kinds that show objects of the cluster in another form: TenantModules, TenantSecrets,
SecurityGroups and Options."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial

from admission.chain import Chain
from admission.complete_caches import CompleteCaches
from admission.namespace_lifecycle import NamespaceLifecycle
from admission.namespace_source import ClusterNamespaces
from admission.owner_references import OwnerReferencesPermissionEnforcement
from apiserver import rest
from apiserver.meta.resource import Resource
from apiserver.storage.visibility import VisibilitySource
from apiserver.storage.watch_cache import WatchCache
from controller.tenant.isolation.policy_kinds import CILIUM_NAMES
from registry.application.release_backend import MISSING_RELEASES
from registry.cluster.informer import Informer, wait_until_answered
from registry.cluster.informer_factory import Availability, InformerFactory
from registry.cluster.interface import SECRETS, ClusterResource
from registry.generic.store import Store
from registry.generic.strategy import Strategy
from registry.option.types import option_resource
from registry.projection.backend import ProjectionBackend, ProjectionParts
from registry.projection.feed import ProjectionFeed
from registry.projection.readable import readable
from registry.projection.storage import ReadOnlyProjection
from registry.securitygroup.convert import GROUP_SELECTOR, POLICIES, GroupConversion
from registry.securitygroup.strategy import SecurityGroupStrategy
from registry.tenantmodule.convert import (
    is_module,
    tenant_module_resource,
    to_tenant_module,
)
from registry.tenantsecret.convert import SECRET_SELECTOR, SecretConversion, to_identity, trim_secret
from registry.tenantsecret.strategy import TenantSecretStrategy
from tenant_apiserver.wiring.applications.api import ApplicationApiConfig
from tenant_apiserver.wiring.options import OptionSources, options
from tenant_apiserver.wiring.owner_references import DiscoveredKinds
from tenant_apiserver.wiring.releases import MODULES

_KEEP_UP_SECONDS = 5.0
RESERVED_POLICIES = frozenset({*CILIUM_NAMES, "allow-internal-communication"})
"""Names of our policies of tenants and of the chart's: a group of such a name would take their place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedProjection:
    """A kind with its storage and admission chain."""

    storage: rest.Storage
    admission: Chain

    @property
    def resource(self) -> Resource:
        return self.storage.resource


_SECRETS_COMPONENT = "the component tenantsecrets gives the right"
_SECRETS_OFF = f"TenantSecrets are off: the account may not read Secrets; {_SECRETS_COMPONENT}"


class ProjectionApi:
    """The caller runs `run`."""

    def __init__(self, config: ApplicationApiConfig, *, disk_default: Callable[[], str] = str) -> None:
        """`disk_default` returns the size of a VMDisk that names none."""
        self._config = config
        self._namespaces = ClusterNamespaces(cluster=config.cluster, lister=config.tenants.namespaces.store)
        self._chain_end = tuple(config.cluster_admission(self._namespaces))
        self._informers: list[Informer] = []
        self._feeds: list[ProjectionFeed] = []
        self._checked: list[Callable[[], Awaitable[None]]] = []
        self._optional = InformerFactory(config.cluster, minimum_version=config.tenants.visibility.first_version)
        self._sources = OptionSources(config.cluster, config.tenants.release_events, disk_default=disk_default)
        self.served: Sequence[ServedProjection] = (
            self._tenant_modules(),
            self._tenant_secrets(),
            self._security_groups(),
            self._options(),
        )

    def _tenant_modules(self) -> ServedProjection:
        cache = self._cache(tenant_module_resource())
        feed = ProjectionFeed(cache, shows=is_module, convert=to_tenant_module, version=self._version)
        self._config.tenants.release_events.subscribe(MODULES, feed)
        self._feeds.append(feed)
        check = readable(feed, not_served=MISSING_RELEASES)
        storage = ReadOnlyProjection(cache=cache, visibility=self._visibility(cache.resource), check=check)
        return ServedProjection(storage=storage, admission=Chain(()))

    def _tenant_secrets(self) -> ServedProjection:
        """Only labelled Secrets are read and kept."""
        cluster = self._config.cluster
        strategy, conversion = TenantSecretStrategy(), SecretConversion()
        informer = Informer(
            cluster,
            SECRETS,
            label_selector=SECRET_SELECTOR,
            store_objects=False,
            transform=trim_secret,
            minimum_version=self._config.tenants.visibility.first_version,
        )
        informer.if_forbidden = _SECRETS_OFF
        feed = ProjectionFeed(
            self._cache(strategy.resource),
            shows=conversion.shows,
            convert=conversion.to_object,
            convert_deleted=to_identity,
            retry=informer.retry_now,
            version=self._version,
        )
        self._add(informer, feed)
        check = readable(feed, if_refused=_SECRETS_COMPONENT)
        parts = ProjectionParts(cluster=cluster, stored=SECRETS, feed=feed, conversion=conversion, check=check)
        return self._written(ProjectionBackend(parts), strategy)

    def _security_groups(self) -> ServedProjection:
        """Until the cluster serves CiliumNetworkPolicies, which may be never, there are none."""
        cluster = self._config.cluster
        strategy, conversion = SecurityGroupStrategy(reserved=RESERVED_POLICIES), GroupConversion()
        feed = ProjectionFeed(
            self._cache(strategy.resource),
            shows=conversion.shows,
            convert=conversion.to_object,
            retry=self._retry,
            version=self._version,
        )
        self._feeds.append(feed)
        available = self._optional.watch_availability(
            POLICIES.group, POLICIES.kind, [POLICIES.version], plural=POLICIES.plural
        )

        def follow(found: ClusterResource) -> None:
            informer = self._optional.get(found, label_selector=GROUP_SELECTOR, store_objects=False)
            informer.add_handler(feed)

        available.subscribe(follow, on_error=feed.set_cluster_error)
        self._checked.append(partial(_show_nothing_if_missing, available, feed))
        missing = "security groups need Cilium: kube-apiserver does not serve CiliumNetworkPolicies"
        check = readable(feed, lambda: missing if _is_missing(available) else "")
        parts = ProjectionParts(
            cluster=cluster, stored=POLICIES, feed=feed, conversion=conversion, check=check, missing=missing
        )
        return self._written(ProjectionBackend(parts), strategy)

    def _options(self) -> ServedProjection:
        """Their watch caches come and go with the namespaces that are asked for, so that no metric has them."""
        storage = options(
            self._sources,
            visibility=self._visibility(option_resource()),
            new_cache=lambda resource: WatchCache(resource, history=self._config.history),
        )
        return ServedProjection(storage=storage, admission=Chain(()))

    def _version(self) -> int:
        """Tenants are listed after the rights of users are known."""
        return self._config.tenants.cache.rv

    def _retry(self) -> None:
        for informer in self._optional.all:
            informer.retry_now()

    def _written(self, backend: ProjectionBackend, strategy: Strategy) -> ServedProjection:
        """A kind that clients write, judged by the policies and webhooks of the cluster as itself."""
        config, resource = self._config, strategy.resource
        complete = [each.complete for each in (config.tenants.namespaces, *config.admission_informers)]
        owners = OwnerReferencesPermissionEnforcement(
            resource=resource.group_resource, authorizer=config.authorizer, kinds=DiscoveredKinds(config.cluster)
        )
        first = (CompleteCaches(complete), NamespaceLifecycle(namespaces=self._namespaces), owners)
        return ServedProjection(
            storage=Store(backend=backend, strategy=strategy, visibility=self._visibility(resource)),
            admission=Chain((*first, *self._chain_end), observe=config.observe),
        )

    def _cache(self, resource: Resource) -> WatchCache:
        cache = WatchCache(resource, history=self._config.history)
        self._config.metrics.track_cache(cache)
        return cache

    def _visibility(self, resource: Resource) -> VisibilitySource:
        return self._config.tenants.visibility.resources(resource.group, resource.plural)

    def _add(self, informer: Informer, feed: ProjectionFeed) -> None:
        informer.add_handler(feed)
        self._informers.append(informer)
        self._feeds.append(feed)

    def describe(self) -> str:
        """For readiness: which kinds cannot be read. Raises RuntimeError until each has been read or refused."""
        unread = [feed for feed in self._feeds if not feed.cache.ready]
        waiting = [feed.cache.resource.plural for feed in unread if feed.cluster_error is None]
        if waiting:
            raise RuntimeError(f"{', '.join(waiting)} have not been read yet")
        failing = [feed for feed in self._feeds if feed in unread or feed.is_refused]
        return "; ".join(f"{feed.cache.resource.plural}: {feed.cluster_error}" for feed in failing)

    async def run(self) -> None:
        """Runs until cancelled. Visibility is read first, so that watches can resume from the first version."""
        await wait_until_answered(self._config.tenants.visibility.informers)
        async with asyncio.TaskGroup() as group:
            for informer in self._informers:
                group.create_task(informer.run(), name=f"informer-of-{informer.resource.plural}")
            group.create_task(self._optional.run(), name="informers-of-optional-kinds")
            group.create_task(self._sources.informers.run(), name="informers-of-options")
            group.create_task(_show_nothing_if_refused(self._feeds), name="refused-kinds")
            for wait in self._checked:
                group.create_task(_finish(wait))


async def _finish(wait: Callable[[], Awaitable[None]]) -> None:
    await wait()


def _is_missing(available: Availability) -> bool:
    return available.checked.is_set() and available.resource is None


async def _show_nothing_if_missing(available: Availability, feed: ProjectionFeed) -> None:
    await available.checked.wait()
    while available.resource is None:
        feed.show_nothing()
        await asyncio.sleep(_KEEP_UP_SECONDS)


async def _show_nothing_if_refused(feeds: Sequence[ProjectionFeed]) -> None:
    while True:
        await asyncio.sleep(_KEEP_UP_SECONDS)
        for feed in feeds:
            if feed.is_refused:
                feed.show_nothing()
