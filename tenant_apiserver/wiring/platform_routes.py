"""Builds the controller that writes the routes of the platform's services."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from controller.platform.setting_types import duration_seconds
from controller.platform.settings import SettingsSource
from controller.publishing.guard import PublishingGuard
from controller.publishing.routes.decision import Moment
from controller.publishing.routes.reconciler import PlatformRouteReconciler, RouteListener
from controller.publishing.services import SERVICES
from controller.runtime.apply import ClusterWriter
from controller.runtime.manager import Controller
from controller.runtime.workqueue import WorkQueue
from controller.runtime.workqueue_metrics import WorkQueueMetrics
from controller.tenantgateway.consent.references import slim_route
from controller.tenantgateway.model import RouteKind
from controller.tenantgateway.names import GATEWAY_API_GROUP
from controller.tenantgateway.watched_kinds import HTTPROUTE_VERSIONS, TLSROUTE_VERSIONS
from registry.cluster.informer_factory import Availability, InformerFactory
from registry.cluster.interface import ClusterClient, ClusterResource

NAME = "platform-routes"
_KINDS: Sequence[tuple[RouteKind, Sequence[str]]] = (
    ("HTTPRoute", HTTPROUTE_VERSIONS),
    ("TLSRoute", TLSROUTE_VERSIONS),
)


def platform_route_controller(
    *,
    guard: PublishingGuard,
    cluster: ClusterClient,
    settings: SettingsSource,
    informers: InformerFactory,
    writer: ClusterWriter,
    queues: WorkQueueMetrics,
    now: Callable[[], float] = time.time,
) -> Controller[str]:
    """Must be called before the informers run. It decides on what the guard knows of the cluster; its keys are the
    names of the services."""
    queue = WorkQueue[str](metrics=queues.for_queue(NAME))
    queues.track(NAME, queue)
    kinds = {kind: _watch(informers, kind, versions, queue) for kind, versions in _KINDS}

    def enqueue_all() -> None:
        for name in SERVICES:
            queue.add(name)

    def moment() -> Moment:
        return Moment(now(), duration_seconds(settings.current.gateway.rollback_timeout))

    guard.subscribe(enqueue_all)
    settings.subscribe(enqueue_all)
    reconciler = PlatformRouteReconciler(
        writer=writer,
        cluster=cluster,
        facts=guard.facts,
        resource=lambda kind: _served(kinds, kind),
        moment=moment,
        add_after=queue.add_after,
    )
    return Controller(name=NAME, queue=queue, reconciler=reconciler, initial_keys=lambda: tuple(SERVICES), workers=2)


def _watch(informers: InformerFactory, kind: RouteKind, versions: Sequence[str], queue: WorkQueue[str]) -> Availability:
    available = informers.watch_availability(GATEWAY_API_GROUP, kind, versions)

    def follow(found: ClusterResource) -> None:
        informers.get(found, transform=slim_route).add_handler(RouteListener(kind, queue.add))

    available.subscribe(follow)
    return available


def _served(kinds: Mapping[RouteKind, Availability], kind: RouteKind) -> ClusterResource | None:
    return kinds[kind].resource
