"""Keeps the forms of kinds that are in force, and tells of ApplicationDefinitions by Events, on one of the replicas."""

from __future__ import annotations

import socket
from collections.abc import Sequence

from apiserver.meta.resource import Key
from controller.application.kept_forms_writer import KeptFormsReconciler
from controller.runtime.apply import ClusterWriter
from controller.runtime.event_recorder import EventRecorder
from controller.runtime.leader_election import Candidate, LeaderElector
from controller.runtime.manager import Controller, ControllerManager, Runnable
from controller.runtime.workqueue import WorkQueue
from controller.runtime.workqueue_metrics import WorkQueueMetrics
from controller.runtime.write_gate import LeaseGate, OpenGate
from registry.application.kept_forms import NAME as KEPT_FORMS
from registry.cluster.interface import ClusterClient
from tenant_apiserver.wiring.applications.api import ApplicationApi
from tenant_apiserver.wiring.replica_identity import new_identity

LEASE = KEPT_FORMS
_QUEUE = "application-kinds"


class FormsKeeper:
    """With a `lease_namespace`, a Lease there decides which replica it is. That Lease is not the one of the
    controllers: replicas without controllers keep the forms, too, and must not keep others from running theirs."""

    def __init__(
        self,
        applications: ApplicationApi,
        *,
        cluster: ClusterClient,
        queues: WorkQueueMetrics,
        reporting_controller: str,
        lease_namespace: str = "",
    ) -> None:
        gate = LeaseGate() if lease_namespace else None
        self.elector: LeaderElector | None = None
        if gate is not None:
            candidate = Candidate(identity=new_identity(), namespace=lease_namespace, name=LEASE)
            self.elector = LeaderElector(cluster=cluster, gate=gate, candidate=candidate)
        writer = ClusterWriter(cluster=cluster, gate=gate or OpenGate())
        recorder = EventRecorder(writer=writer, controller=reporting_controller, instance=socket.gethostname())
        applications.recorder = recorder
        applications.leads = lambda: self.elector is None or self.elector.is_leader
        controllers: Sequence[Runnable] = (recorder, _kept_forms_controller(applications, writer, queues))
        self._manager = ControllerManager(controllers=controllers, elector=self.elector)

    async def run(self) -> None:
        """Runs until cancelled."""
        await self._manager.run()


def _kept_forms_controller(
    applications: ApplicationApi, writer: ClusterWriter, queues: WorkQueueMetrics
) -> Controller[Key]:
    key = Key(applications.home, KEPT_FORMS)
    queue = WorkQueue[Key](metrics=queues.for_queue(_QUEUE))
    queues.track(_QUEUE, queue)
    reconciler = KeptFormsReconciler(
        writer=writer,
        reader=applications.kept_forms,
        forms=lambda: applications.forms,
        later=lambda seconds: queue.add_after(key, seconds),
    )
    applications.on_followed(lambda: queue.add(key))
    return Controller(name=_QUEUE, queue=queue, reconciler=reconciler, initial_keys=lambda: (key,), workers=1)
