"""Builds the controllers of applications, which the leader runs."""

from __future__ import annotations

from collections.abc import Sequence

from apiserver.meta.resource import Key
from controller.application.kept_forms_writer import KeptFormsReconciler
from controller.application.workloads import ApplicationKey, MonitoredApplications, WorkloadsReconciler
from controller.runtime.apply import ClusterWriter
from controller.runtime.manager import Controller, Runnable
from controller.runtime.workqueue import WorkQueue
from controller.runtime.workqueue_metrics import WorkQueueMetrics
from controller.tenant.workloads_ready_step import WORKLOADMONITORS
from registry.application.kept_forms import NAME as KEPT_FORMS
from registry.cluster.informer_factory import InformerFactory
from registry.cluster.interface import ClusterResource
from tenant_apiserver.wiring.applications.api import ApplicationApi

_KEPT_FORMS, _WORKLOADS = "application-kinds", "application-workloads"


def application_controllers(
    applications: ApplicationApi, informers: InformerFactory, writer: ClusterWriter, queues: WorkQueueMetrics
) -> Sequence[Runnable]:
    """Must be called before the informers run."""
    return (
        kept_forms_controller(applications, writer, queues),
        _workloads_controller(applications, informers, writer, queues),
    )


def kept_forms_controller(
    applications: ApplicationApi, writer: ClusterWriter, queues: WorkQueueMetrics
) -> Controller[Key]:
    key = Key(applications.home, KEPT_FORMS)
    queue = WorkQueue[Key](metrics=queues.for_queue(_KEPT_FORMS))
    queues.track(_KEPT_FORMS, queue)
    reconciler = KeptFormsReconciler(writer=writer, reader=applications.kept_forms, forms=lambda: applications.forms)
    applications.on_followed(lambda: queue.add(key))
    return Controller(name=_KEPT_FORMS, queue=queue, reconciler=reconciler, initial_keys=lambda: (key,), workers=1)


def _workloads_controller(
    applications: ApplicationApi, informers: InformerFactory, writer: ClusterWriter, queues: WorkQueueMetrics
) -> Controller[ApplicationKey]:
    queue = WorkQueue[ApplicationKey](metrics=queues.for_queue(_WORKLOADS))
    queues.track(_WORKLOADS, queue)
    monitored = MonitoredApplications(on_change=queue.add)
    applications.router.observe = monitored.observe

    def follow(found: ClusterResource) -> None:
        informers.get(found).add_handler(monitored.handler)

    def look_at_all() -> None:
        for key in monitored.all():
            queue.add(key)

    available = informers.watch_availability(WORKLOADMONITORS.group, WORKLOADMONITORS.kind, [WORKLOADMONITORS.version])
    available.subscribe(follow)
    applications.on_followed(look_at_all)
    reconciler = WorkloadsReconciler(
        writer=writer,
        monitored=monitored,
        releases=applications.releases.store,
        release_name=lambda key: applications.release_name(key.kind, key.name),
    )
    return Controller(name=_WORKLOADS, queue=queue, reconciler=reconciler, initial_keys=monitored.all, workers=2)
