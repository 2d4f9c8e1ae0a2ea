"""The controller of TenantGateways, put together: what it knows, what feeds that, and what it writes."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from datetime import UTC, datetime

from apiserver.meta.resource import Key
from apiserver.storage.watch_cache import Event
from controller.platform.settings import Settings
from controller.runtime.apply import Apply
from controller.runtime.event_recorder import Recorder
from controller.runtime.manager import Controller
from controller.runtime.workqueue import WorkQueue
from controller.runtime.workqueue_metrics import WorkQueueMetrics
from controller.tenantgateway.attachment_reconciler import AttachmentReconciler
from controller.tenantgateway.ensure import Maker
from controller.tenantgateway.index import Derived, Namespaces, Routes, TenantGateways
from controller.tenantgateway.reconciler import Known, TenantGatewayReconciler
from controller.tenantgateway.route_status_writer import Verdicts
from controller.tenantgateway.status_writer import StatusWriter
from controller.tenantgateway.watched_kinds import Kinds
from registry.cluster.event_handlers import RelistListener
from registry.cluster.informer_factory import Informers
from registry.names import workload_namespace
from registry.tenant.tree import TenantTree
from registry.tenantgateway.types import TENANTGATEWAYS
from tenant_apiserver.wiring.tenant_api import TenantApi

NAME = "tenantgateway"
ATTACHMENTS = "attached-namespaces"


class GatewayControllers:
    """A Runnable: TenantGateways, and beside them the namespaces that are attached to them."""

    name = NAME

    def __init__(
        self,
        *,
        tenants: TenantApi,
        settings: Settings,
        informers: Informers,
        apply: Apply,
        queues: WorkQueueMetrics,
        recorder: Recorder,
    ) -> None:
        queue, attachments = WorkQueue[Key](metrics=queues.of(NAME)), WorkQueue[str](metrics=queues.of(ATTACHMENTS))
        queues.track(NAME, queue)
        queues.track(ATTACHMENTS, attachments)
        self._kinds = kinds = Kinds(informers)
        gateways = TenantGateways(enqueue=queue.add, attach=attachments.add)
        routes = Routes(tenantgateways=gateways, enqueue=queue.add)
        namespaces = Namespaces(tenantgateways=gateways, enqueue=queue.add, attach=attachments.add)
        certificates = Derived(tenantgateways=gateways, enqueue=queue.add)

        def enqueue_everyone() -> None:
            for key in gateways:
                queue.add(key)

        self._asked = informers.get(TENANTGATEWAYS, keep=False)
        self._asked.add_handler(gateways.handler)
        tenants.namespaces.add_handler(namespaces.handler, behind=True)
        kinds.httproutes.add_handler(routes.httproutes)
        kinds.tlsroutes.add_handler(routes.tlsroutes)
        kinds.certificates.add_handler(certificates.handler)
        for kind in (kinds.gateways, kinds.issuers):
            kind.add_handler(Derived(tenantgateways=gateways, enqueue=queue.add).handler)
        for kind in kinds.all:
            kind.add_handler(RelistListener(enqueue_everyone))
        tenants.cache.subscribe(_Places(gateways, attachments.add).on_event)
        settings.subscribe(enqueue_everyone)

        attaching = AttachmentReconciler(
            apply=apply,
            namespaces=tenants.namespaces.store,
            index=namespaces,
            tenantgateways=gateways,
            depth=lambda namespace: _depth(tenants.tree, namespace),
            enqueue=queue.add,
        )
        reconciler = TenantGatewayReconciler(
            known=Known(
                tenantgateways=gateways, routes=routes, namespaces=namespaces, kinds=kinds, attachments=attaching
            ),
            maker=Maker(apply=apply, kinds=kinds, certificates=certificates, settings=lambda: settings.current),
            verdicts=Verdicts(
                apply=apply, kinds=kinds, routes=routes, tenantgateways=gateways, recorder=recorder, now=_now
            ),
            status=StatusWriter(apply=apply, tenantgateways=gateways, recorder=recorder, now=_now),
        )
        self._gateways = Controller(name=NAME, queue=queue, reconciler=reconciler, seed=reconciler.everything)
        self._attachments = Controller(
            name=ATTACHMENTS, queue=attachments, reconciler=attaching, seed=attaching.everything, workers=2
        )

    async def run(self) -> None:
        """Works until it is cancelled."""
        # what no TenantGateway asks for is taken away: whoever knows none yet would take away everything
        await self._asked.synced.wait()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._attachments.run(), name=ATTACHMENTS)
            await self._kinds.looked_at()
            group.create_task(self._gateways.run(), name=NAME)


class _Places:
    """A listener of the Tenants' watch cache, after the tree: where a gateway's namespace is in the tree decides who
    of two has a namespace that both list."""

    def __init__(self, tenantgateways: TenantGateways, attach: Callable[[str], None]) -> None:
        self._tenantgateways = tenantgateways
        self._attach = attach

    def on_event(self, event: Event) -> None:
        if event.type == "MODIFIED":
            return
        for key in self._tenantgateways.in_namespace(workload_namespace(*event.object.key)):
            asked = self._tenantgateways.asked(key)
            for namespace in asked.facts.attached if asked is not None else ():
                self._attach(namespace)


def _depth(tree: TenantTree, namespace: str) -> int:
    """A namespace that is no Tenant's comes last."""
    facts = tree.by_namespace(namespace)
    return len(tree.ancestors(facts)) if facts is not None else sys.maxsize


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
