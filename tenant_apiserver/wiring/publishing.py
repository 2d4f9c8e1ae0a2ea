"""Builds the publishing guard, with the kinds that it watches."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from prometheus_client import CollectorRegistry

from apiserver.meta.resource import Key, Object
from apiserver.storage.event_history import CacheEvent
from controller.platform.settings import SettingsSource
from controller.publishing.guard import PublishingGuard
from controller.publishing.metrics import PublishingMetrics
from controller.tenant.root import ROOT
from controller.tenantgateway.consent.references import slim_route
from controller.tenantgateway.names import GATEWAY_API_GROUP
from controller.tenantgateway.watched_kinds import HTTPROUTE_VERSIONS, TLSROUTE_VERSIONS
from registry.cluster.event_handlers import EventHandler
from registry.cluster.informer_factory import InformerFactory
from registry.cluster.interface import INGRESSES, SERVICES, ClusterResource
from registry.names import workload_namespace
from registry.tenantgateway.types import TENANTGATEWAYS
from tenant_apiserver.wiring.tenant_api import TenantApi


def publishing_guard(
    *, tenants: TenantApi, settings: SettingsSource, informers: InformerFactory, registry: CollectorRegistry
) -> PublishingGuard:
    """Must be called before the informers run. Any of the kinds may be served later, or never."""
    guard = PublishingGuard(settings=settings, tree=tenants.tree)
    PublishingMetrics(registry, guard.verdicts)
    informers.get(SERVICES, store_objects=False).add_handler(guard.services)
    informers.get(TENANTGATEWAYS, store_objects=False).add_handler(guard.tenantgateways)
    routes: Sequence[tuple[str, Sequence[str], EventHandler]] = (
        ("HTTPRoute", HTTPROUTE_VERSIONS, guard.httproutes),
        ("TLSRoute", TLSROUTE_VERSIONS, guard.tlsroutes),
    )
    for kind, versions, handler in routes:
        _when_served(informers, GATEWAY_API_GROUP, kind, versions, handler, transform=slim_route)
    _when_served(informers, INGRESSES.group, INGRESSES.kind, [INGRESSES.version], guard.ingresses, store_objects=False)
    return guard


def enqueue_publisher(guard: PublishingGuard, tenants: TenantApi, enqueue: Callable[[Key], None]) -> None:
    """Enqueues the Tenant that reports the verdicts when they may have changed: the publishing one, or else the
    root."""

    def on_change() -> None:
        tenant = guard.tenant
        enqueue(tenant.key if tenant is not None else ROOT)

    def on_event(event: CacheEvent) -> None:
        if event.type != "MODIFIED" and workload_namespace(*event.object.key) in guard.named_namespaces:
            enqueue(ROOT)
            guard.publisher_changed()

    guard.subscribe(on_change)
    tenants.cache.subscribe(on_event)


def _when_served(
    informers: InformerFactory,
    group: str,
    kind: str,
    versions: Sequence[str],
    handler: EventHandler,
    *,
    store_objects: bool = True,
    transform: Callable[[Object], Object] = lambda obj: obj,
) -> None:
    plural = INGRESSES.plural if kind == INGRESSES.kind else ""

    def add_handler(found: ClusterResource) -> None:
        informers.get(found, store_objects=store_objects, transform=transform).add_handler(handler)

    informers.watch_availability(group, kind, versions, plural=plural).subscribe(add_handler)
