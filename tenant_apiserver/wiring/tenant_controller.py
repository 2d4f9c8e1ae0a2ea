"""The controller of Tenants, put together with what it watches."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

from apiserver.meta.resource import Key
from controller.platform.settings import Settings
from controller.runtime.apply import Apply
from controller.runtime.event_recorder import Recorder
from controller.runtime.manager import Controller
from controller.runtime.workqueue import WorkQueue
from controller.runtime.workqueue_metrics import WorkQueueMetrics
from controller.tenant.finalizer import ParentDeletionHandler, TenantFinalizer
from controller.tenant.gateway_ready_step import GatewayReadyStep
from controller.tenant.host_conflict_step import HostConflictStep
from controller.tenant.managed_objects import ContentWriter
from controller.tenant.namespace_content_steps import inside
from controller.tenant.namespace_step import NamespaceStep
from controller.tenant.observe import Observer
from controller.tenant.orphaned_namespaces import OrphanedNamespaceCleanup
from controller.tenant.reconciler import TenantReconciler, all_tenant_keys
from controller.tenant.release_adopted_namespace import Leavings
from controller.tenant.status import StatusWriter
from controller.tenant.watches import Enqueue, NamespaceEventHandler, TenantEnqueuer, TenantEventHandler
from controller.tenant.workloads_ready_step import WorkloadsReadyStep
from registry.cluster.event_handlers import EventHandler
from registry.cluster.informer_factory import Informers
from registry.cluster.interface import ClusterClient, ClusterResource
from registry.tenantgateway.types import TENANTGATEWAYS
from tenant_apiserver.wiring.content_settings import content_settings
from tenant_apiserver.wiring.tenant_api import TenantApi
from tenant_apiserver.wiring.tenant_state import tenant_state

NAME = "tenant"


def tenant_controller(
    *,
    cluster: ClusterClient,
    tenants: TenantApi,
    settings: Settings,
    informers: Informers,
    apply: Apply,
    queues: WorkQueueMetrics,
    recorder: Recorder,
) -> Controller[Key]:
    """To be made before the informers run: it listens to them."""
    queue = WorkQueue[Key](metrics=queues.of(NAME))
    queues.track(NAME, queue)
    namespaces = NamespaceEventHandler(tree=tenants.tree, namespaces=tenants.namespaces.store, enqueue=queue.add)
    tenants.namespaces.add_handler(namespaces, behind=True)
    for listener in (TenantEventHandler, ParentDeletionHandler):
        tenants.cache.subscribe(listener(tree=tenants.tree, enqueue=queue.add).on_event)
    reconciler = _reconciler(
        cleanup=OrphanedNamespaceCleanup(apply=apply, cluster=cluster, tree=tenants.tree, namespaces=namespaces),
        cluster=cluster,
        tenants=tenants,
        settings=settings,
        informers=informers,
        apply=apply,
        recorder=recorder,
        enqueue=queue.add,
    )

    def everyone() -> Iterable[Key]:
        return all_tenant_keys(tenants.tree, namespaces)

    def enqueue_everyone() -> None:
        for key in everyone():
            queue.add(key)

    settings.subscribe(enqueue_everyone)
    return Controller(name=NAME, queue=queue, reconciler=reconciler, seed=everyone)


def _reconciler(
    *,
    cleanup: OrphanedNamespaceCleanup,
    cluster: ClusterClient,
    tenants: TenantApi,
    settings: Settings,
    informers: Informers,
    apply: Apply,
    recorder: Recorder,
    enqueue: Enqueue,
) -> TenantReconciler:
    tree, releases = tenants.tree, tenants.releases.store
    contents, events = content_settings(settings, tree), TenantEnqueuer(tree=tree, enqueue=enqueue)
    state = tenant_state(informers=informers, apply=apply, tree=tree, enqueue=enqueue, concern=events.concern)
    writer = ContentWriter(apply=apply, cluster=cluster, chart=contents.chart)
    leavings = Leavings(apply=apply, writer=writer, listen=partial(_listen, informers))
    external_ips = state.workloads.external_ips
    status = StatusWriter(apply=apply, now=_now, chart=contents.chart, external_ips=external_ips, recorder=recorder)
    return TenantReconciler(
        cleanup=cleanup,
        observer=Observer(tree=tree, releases=releases, namespaces=tenants.namespaces.store),
        lifecycle=TenantFinalizer(
            apply=apply, tree=tree, releases=releases, gateways=state.gateways, leavings=leavings, status=status
        ),
        steps=(
            NamespaceStep(apply=apply, now=_now, chart=contents.chart),
            HostConflictStep(),
            GatewayReadyStep(gateways=state.gateways),
            WorkloadsReadyStep(workloads=state.workloads),
        ),
        inside=inside(
            writer=writer,
            events=events,
            listen=leavings.listen,
            settings=replace(contents, served=lambda: informers.has(TENANTGATEWAYS)),
        ),
        status=status,
    )


def _listen(informers: Informers, resource: ClusterResource, handler: EventHandler, *, name: str = "") -> None:
    """Handlers keep what they need: the objects are not kept beside that."""
    selector = f"metadata.name={name}" if name else ""
    informers.get(resource, field_selector=selector, keep=False).add_handler(handler, behind=True)


def _now() -> datetime:
    return datetime.now(UTC)
