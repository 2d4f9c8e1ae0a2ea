"""The controller of TenantGatewayIndex, put together: what it knows, what feeds that, and what it writes."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
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
from controller.tenantgateway.index import NamespaceIndex, OwnedObjectIndex, RouteIndex, TenantGatewayIndex
from controller.tenantgateway.reconciler import Stores, TenantGatewayReconciler
from controller.tenantgateway.route_status_writer import RouteStatusWriter
from controller.tenantgateway.status_writer import StatusWriter
from controller.tenantgateway.watched_kinds import WatchedKinds
from registry.cluster.event_handlers import RelistListener
from registry.cluster.informer_factory import InformerFactory
from registry.names import workload_namespace
from registry.tenant.tree import TenantTree
from registry.tenantgateway.types import TENANTGATEWAYS
from tenant_apiserver.wiring.tenant_api import TenantApi

NAME = "tenantgateway"
ATTACHMENTS = "attached-namespaces"


class GatewayControllers:
    """A Runnable: TenantGatewayIndex, and beside them the namespaces that are attached to them."""

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
        queue, attachments = (
            WorkQueue[Key](metrics=queues.for_queue(NAME)),
            WorkQueue[str](metrics=queues.for_queue(ATTACHMENTS)),
        )
        queues.track(NAME, queue)
        queues.track(ATTACHMENTS, attachments)
        self._kinds = kinds = WatchedKinds(informers)
        gateways = TenantGatewayIndex(enqueue=queue.add, enqueue_namespace=attachments.add)
        routes = RouteIndex(tenantgateways=gateways, enqueue=queue.add)
        namespaces = NamespaceIndex(tenantgateways=gateways, enqueue=queue.add, enqueue_namespace=attachments.add)
        certificates = OwnedObjectIndex(tenantgateways=gateways, enqueue=queue.add)

        def enqueue_everyone() -> None:
            for key in gateways:
                queue.add(key)

        self._tenantgateways = informers.get(TENANTGATEWAYS, store_objects=False)
        self._tenantgateways.add_handler(gateways.handler)
        tenants.namespaces.add_handler(namespaces.handler, late=True)
        kinds.httproutes.add_handler(routes.httproutes)
        kinds.tlsroutes.add_handler(routes.tlsroutes)
        kinds.certificates.add_handler(certificates.handler)
        for kind in (kinds.gateways, kinds.issuers):
            kind.add_handler(OwnedObjectIndex(tenantgateways=gateways, enqueue=queue.add).handler)
        for kind in kinds.all:
            kind.add_handler(RelistListener(enqueue_everyone))
        tenants.cache.subscribe(_TreeListener(gateways, attachments.add).on_event)
        settings.subscribe(enqueue_everyone)

        attaching = AttachmentReconciler(
            writer=writer,
            namespaces=tenants.namespaces.store,
            index=namespaces,
            tenantgateways=gateways,
            depth=lambda namespace: _depth(tenants.tree, namespace),
            enqueue=queue.add,
        )
        reconciler = TenantGatewayReconciler(
            stores=Stores(
                tenantgateways=gateways, routes=routes, namespaces=namespaces, kinds=kinds, attachments=attaching
            ),
            ensurer=ObjectEnsurer(
                writer=writer, kinds=kinds, certificates=certificates, settings=lambda: settings.current
            ),
            route_status=RouteStatusWriter(
                writer=writer, kinds=kinds, routes=routes, tenantgateways=gateways, recorder=recorder, now=_now
            ),
            status=StatusWriter(writer=writer, tenantgateways=gateways, recorder=recorder, now=_now),
        )
        self._gateways = Controller(name=NAME, queue=queue, reconciler=reconciler, initial_keys=reconciler.initial_keys)
        self._attachments = Controller(
            name=ATTACHMENTS, queue=attachments, reconciler=attaching, initial_keys=attaching.initial_keys, workers=2
        )

    async def run(self) -> None:
        """Works until it is cancelled."""
        # what no TenantGateway asks for is taken away: whoever knows none yet would take away everything
        await self._tenantgateways.synced.wait()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._attachments.run(), name=ATTACHMENTS)
            await self._kinds.wait_until_known()
            group.create_task(self._gateways.run(), name=NAME)


class _TreeListener:
    """A listener of the Tenants' watch cache, after the tree: where a gateway's namespace is in the tree decides who
    of two has a namespace that both list."""

    def __init__(self, tenantgateways: TenantGatewayIndex, enqueue_namespace: Callable[[str], None]) -> None:
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
    """A namespace that is no Tenant's comes last."""
    facts = tree.by_namespace(namespace)
    return len(tree.ancestors(facts)) if facts is not None else sys.maxsize


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
