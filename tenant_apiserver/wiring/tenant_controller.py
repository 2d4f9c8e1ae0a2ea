"""Builds the controller of Tenants and its event handlers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

from apiserver.meta.resource import Key
from controller.platform.settings import SettingsSource
from controller.runtime.apply import ClusterWriter
from controller.runtime.event_recorder import Recorder
from controller.runtime.manager import Controller
from controller.runtime.workqueue import WorkQueue
from controller.runtime.workqueue_metrics import WorkQueueMetrics
from controller.tenant.finalizer import ParentDeletionHandler, TenantFinalizer
from controller.tenant.gateway_ready_step import GatewayReadyStep
from controller.tenant.host_conflict_step import HostConflictStep
from controller.tenant.managed_objects import ContentWriter
from controller.tenant.namespace_content_steps import content_steps, self_access
from controller.tenant.namespace_step import NamespaceStep
from controller.tenant.observe import TenantObserver
from controller.tenant.orphaned_namespaces import OrphanedNamespaceCleanup
from controller.tenant.reconciler import Step, TenantReconciler, all_tenant_keys
from controller.tenant.release_adopted_namespace import AdoptedNamespaceCleanup
from controller.tenant.status import TenantStatusWriter
from controller.tenant.watches import Enqueue, NamespaceEventHandler, TenantEnqueuer, TenantEventHandler
from controller.tenant.workloads_ready_step import WorkloadsReadyStep
from registry.cluster.event_handlers import EventHandler
from registry.cluster.informer_factory import InformerFactory
from registry.cluster.interface import ClusterClient, ClusterResource
from registry.tenantgateway.types import TENANTGATEWAYS
from tenant_apiserver.wiring.content_settings import content_settings
from tenant_apiserver.wiring.tenant_api import TenantApi
from tenant_apiserver.wiring.tenant_state import TenantState, tenant_state

NAME = "tenant"


def _utc_now() -> datetime:
    return datetime.now(UTC)


def tenant_controller(
    *,
    cluster: ClusterClient,
    tenants: TenantApi,
    settings: SettingsSource,
    informers: InformerFactory,
    writer: ClusterWriter,
    queues: WorkQueueMetrics,
    recorder: Recorder,
    now: Callable[[], datetime] = _utc_now,
) -> Controller[Key]:
    """Must be called before the informers run, because it adds handlers to them."""
    queue = WorkQueue[Key](metrics=queues.for_queue(NAME))
    queues.track(NAME, queue)
    namespaces = NamespaceEventHandler(tree=tenants.tree, namespaces=tenants.namespaces.store, enqueue=queue.add)
    tenants.namespaces.add_handler(namespaces, late=True)
    tenants.cache.subscribe(TenantEventHandler(tree=tenants.tree, enqueue=queue.add).on_event)
    deletions = ParentDeletionHandler(tree=tenants.tree, namespaces=namespaces, enqueue=queue.add)
    tenants.cache.subscribe(deletions.on_event)
    reconciler = _new_reconciler(
        cleanup=OrphanedNamespaceCleanup(writer=writer, cluster=cluster, tree=tenants.tree, namespaces=namespaces),
        cluster=cluster,
        tenants=tenants,
        settings=settings,
        informers=informers,
        writer=writer,
        recorder=recorder,
        enqueue=queue.add,
        now=now,
    )

    def initial_keys() -> Iterable[Key]:
        return all_tenant_keys(tenants.tree, namespaces)

    def enqueue_all() -> None:
        for key in initial_keys():
            queue.add(key)

    settings.subscribe(enqueue_all)
    return Controller(name=NAME, queue=queue, reconciler=reconciler, initial_keys=initial_keys)


def _new_reconciler(
    *,
    cleanup: OrphanedNamespaceCleanup,
    cluster: ClusterClient,
    tenants: TenantApi,
    settings: SettingsSource,
    informers: InformerFactory,
    writer: ClusterWriter,
    recorder: Recorder,
    enqueue: Enqueue,
    now: Callable[[], datetime],
) -> TenantReconciler:
    tree, releases = tenants.tree, tenants.releases.store
    contents, enqueuer = content_settings(settings, tree), TenantEnqueuer(tree=tree, enqueue=enqueue)
    state = tenant_state(
        informers=informers, writer=writer, tree=tree, enqueue=enqueue, on_change=enqueuer.enqueue_owner
    )
    content_writer = ContentWriter(writer=writer, cluster=cluster, chart=contents.chart)
    adopted_namespaces = AdoptedNamespaceCleanup(
        writer=writer, contents=content_writer, add_handler=partial(_add_handler, informers)
    )
    own_tenants = self_access(contents=content_writer, enqueuer=enqueuer, add_handler=adopted_namespaces.add_handler)
    external_ips = state.workloads.external_ips
    status = TenantStatusWriter(
        writer=writer, now=now, chart=contents.chart, external_ips=external_ips, recorder=recorder
    )
    return TenantReconciler(
        cleanup=cleanup,
        observer=TenantObserver(tree=tree, releases=releases, namespaces=tenants.namespaces.store),
        finalizer=TenantFinalizer(
            writer=writer,
            tree=tree,
            releases=releases,
            gateways=state.gateways,
            adopted_namespaces=adopted_namespaces,
            self_access=own_tenants,
            status=status,
        ),
        steps=_steps(NamespaceStep(writer=writer, now=now, chart=contents.chart), state),
        content_steps=content_steps(
            contents=content_writer,
            enqueuer=enqueuer,
            add_handler=adopted_namespaces.add_handler,
            settings=replace(contents, served=lambda: informers.is_served(TENANTGATEWAYS)),
            self_access=own_tenants,
        ),
        self_access=own_tenants,
        status=status,
    )


def _steps(namespace_step: NamespaceStep, state: TenantState) -> Sequence[Step]:
    return (
        namespace_step,
        HostConflictStep(),
        GatewayReadyStep(gateways=state.gateways),
        WorkloadsReadyStep(workloads=state.workloads),
    )


def _add_handler(
    informers: InformerFactory, resource: ClusterResource, handler: EventHandler, *, name: str = ""
) -> None:
    """Adds a handler to an informer without a store, because the handler itself stores what it needs."""
    selector = f"metadata.name={name}" if name else ""
    informers.get(resource, field_selector=selector, store_objects=False).add_handler(handler, late=True)
