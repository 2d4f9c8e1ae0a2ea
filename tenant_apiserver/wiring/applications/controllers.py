"""Builds the controller of applications, which the leader runs."""

from __future__ import annotations

from controller.application.workloads import ApplicationKey, MonitoredApplications, WorkloadsReconciler
from controller.runtime.apply import ClusterWriter
from controller.runtime.manager import Controller
from controller.runtime.workqueue import WorkQueue
from controller.runtime.workqueue_metrics import WorkQueueMetrics
from controller.tenant.workloads_ready_step import WORKLOADMONITORS
from registry.cluster.informer_factory import InformerFactory
from registry.cluster.interface import ClusterResource
from tenant_apiserver.wiring.applications.api import ApplicationApi

_WORKLOADS = "application-workloads"


def workloads_controller(
    applications: ApplicationApi, informers: InformerFactory, writer: ClusterWriter, queues: WorkQueueMetrics
) -> Controller[ApplicationKey]:
    """Must be called before the informers run."""
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
