"""Builds the controller of TenantGateways, with the indexes that it reads and the informers that feed them."""

from __future__ import annotations

import asyncio
import sys
from datetime import UTC, datetime

from apiserver.meta.resource import Key
from apiserver.storage.watch_cache import Event
from controller.platform.settings import SettingsSource
from controller.runtime.apply import ClusterWriter
from controller.runtime.event_recorder import Recorder
from controller.runtime.manager import Controller
from controller.runtime.workqueue import WorkQueue
from controller.runtime.workqueue_metrics import WorkQueueMetrics
from controller.tenantgateway.attachment_reconciler import AttachmentReconciler
from controller.tenantgateway.ensure import ObjectEnsurer
from controller.tenantgateway.index import (
    Enqueue,
    EnqueueNamespace,
    NamespaceIndex,
    OwnedObjectIndex,
    RouteIndex,
    TenantGatewayIndex,
)
from controller.tenantgateway.reconciler import Stores, TenantGatewayReconciler
from controller.tenantgateway.route_status_writer import RouteStatusWriter
from controller.tenantgateway.status_writer import StatusWriter
from controller.tenantgateway.watched_kinds import WatchedKinds
from registry.cluster.event_handlers import RelistListener
from registry.cluster.informer import Informer
from registry.cluster.informer_factory import InformerFactory
from registry.names import workload_namespace
from registry.tenant.tree import TenantTree
from registry.tenantgateway.types import TENANTGATEWAYS
from tenant_apiserver.wiring.tenant_api import TenantApi

NAME = "tenantgateway"
ATTACHMENTS = "attached-namespaces"


class _Indexes:
    """The indexes of watched objects, which enqueue the TenantGateways and Namespaces that a change concerns."""

    def __init__(self, *, enqueue: Enqueue, enqueue_namespace: EnqueueNamespace) -> None:
        self.tenantgateways = TenantGatewayIndex(enqueue=enqueue, enqueue_namespace=enqueue_namespace)
        self.routes = RouteIndex(tenantgateways=self.tenantgateways, enqueue=enqueue)
        self.namespaces = NamespaceIndex(
            tenantgateways=self.tenantgateways, enqueue=enqueue, enqueue_namespace=enqueue_namespace
        )
        self.gateways, self.issuers, self.certificates = (
            OwnedObjectIndex(tenantgateways=self.tenantgateways, enqueue=enqueue) for _ in range(3)
        )

    def add_handlers(self, tenantgateways: Informer, namespaces: Informer, kinds: WatchedKinds) -> None:
        tenantgateways.add_handler(self.tenantgateways.handler)
        namespaces.add_handler(self.namespaces.handler, late=True)
        kinds.httproutes.add_handler(self.routes.httproutes)
        kinds.tlsroutes.add_handler(self.routes.tlsroutes)
        kinds.gateways.add_handler(self.gateways.handler)
        kinds.issuers.add_handler(self.issuers.handler)
        kinds.certificates.add_handler(self.certificates.handler)


class GatewayControllers:
    """The controllers of TenantGateways and of the Namespaces attached to them, as one Runnable."""

    name = NAME

    def __init__(
        self,
        *,
        tenants: TenantApi,
        settings: SettingsSource,
        informers: InformerFactory,
        writer: ClusterWriter,
        queues: WorkQueueMetrics,
        recorder: Recorder,
    ) -> None:
        queue, namespace_queue = _new_queues(queues)
        self._kinds = kinds = WatchedKinds(informers)
        self._tenantgateways = informers.get(TENANTGATEWAYS, store_objects=False)
        indexes = _Indexes(enqueue=queue.add, enqueue_namespace=namespace_queue.add)
        indexes.add_handlers(self._tenantgateways, tenants.namespaces, kinds)
        tenants.cache.subscribe(_TreeListener(indexes.tenantgateways, namespace_queue.add).on_event)

        def enqueue_all() -> None:
            for key in indexes.tenantgateways:
                queue.add(key)

        for kind in kinds.all:
            kind.add_handler(RelistListener(enqueue_all))
        settings.subscribe(enqueue_all)
        attachments = AttachmentReconciler(
            writer=writer,
            namespaces=tenants.namespaces.store,
            index=indexes.namespaces,
            tenantgateways=indexes.tenantgateways,
            depth=lambda namespace: _depth(tenants.tree, namespace),
            enqueue=queue.add,
        )
        reconciler = _new_reconciler(indexes, kinds, attachments, settings, writer, recorder)
        self._gateways = Controller(name=NAME, queue=queue, reconciler=reconciler, initial_keys=reconciler.initial_keys)
        self._attachments = Controller(
            name=ATTACHMENTS,
            queue=namespace_queue,
            reconciler=attachments,
            initial_keys=attachments.initial_keys,
            workers=2,
        )

    async def run(self) -> None:
        """Runs until cancelled."""
        # before TenantGateways are listed, all labels would seem unwanted and be removed
        await self._tenantgateways.synced.wait()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._attachments.run(), name=ATTACHMENTS)
            await self._kinds.wait_until_known()
            group.create_task(self._gateways.run(), name=NAME)


def _new_queues(metrics: WorkQueueMetrics) -> tuple[WorkQueue[Key], WorkQueue[str]]:
    """The queues of TenantGateways and of Namespaces."""
    queue = WorkQueue[Key](metrics=metrics.for_queue(NAME))
    namespace_queue = WorkQueue[str](metrics=metrics.for_queue(ATTACHMENTS))
    metrics.track(NAME, queue)
    metrics.track(ATTACHMENTS, namespace_queue)
    return queue, namespace_queue


def _new_reconciler(
    indexes: _Indexes,
    kinds: WatchedKinds,
    attachments: AttachmentReconciler,
    settings: SettingsSource,
    writer: ClusterWriter,
    recorder: Recorder,
) -> TenantGatewayReconciler:
    tenantgateways, routes = indexes.tenantgateways, indexes.routes
    return TenantGatewayReconciler(
        stores=Stores(
            tenantgateways=tenantgateways,
            routes=routes,
            namespaces=indexes.namespaces,
            kinds=kinds,
            attachments=attachments,
        ),
        ensurer=ObjectEnsurer(
            writer=writer, kinds=kinds, certificates=indexes.certificates, settings=lambda: settings.current
        ),
        route_status=RouteStatusWriter(
            writer=writer, kinds=kinds, routes=routes, tenantgateways=tenantgateways, recorder=recorder, now=_now
        ),
        status=StatusWriter(writer=writer, tenantgateways=tenantgateways, recorder=recorder, now=_now),
    )


class _TreeListener:
    """Enqueues attached namespaces when Tenants are added or deleted, because the depth of a gateway's namespace in the
    tree decides between two gateways that list the same namespace. Must subscribe after the tree."""

    def __init__(self, tenantgateways: TenantGatewayIndex, enqueue_namespace: EnqueueNamespace) -> None:
        self._tenantgateways = tenantgateways
        self._enqueue_namespace = enqueue_namespace

    def on_event(self, event: Event) -> None:
        if event.type == "MODIFIED":
            return
        for key in self._tenantgateways.in_namespace(workload_namespace(*event.object.key)):
            parsed = self._tenantgateways.parsed(key)
            for namespace in parsed.gateway.attached if parsed is not None else ():
                self._enqueue_namespace(namespace)


def _depth(tree: TenantTree, namespace: str) -> int:
    """The distance from the root; a namespace of no Tenant sorts last."""
    tenant = tree.by_namespace(namespace)
    return len(tree.ancestors(tenant)) if tenant is not None else sys.maxsize


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
