"""The controllers, put together: they work on the replica that leads, once it has seen what there is."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from apiserver.meta.resource import Key
from apiserver.metrics import Metrics
from controller.platform.settings import SettingsSource
from controller.runtime.apply import ClusterWriter
from controller.runtime.event_recorder import EventRecorder, Recorder
from controller.runtime.leader_election import Candidate, LeaderElector
from controller.runtime.manager import Controller, ControllerManager, Runnable
from controller.runtime.workqueue import WorkQueue
from controller.runtime.workqueue_metrics import WorkQueueMetrics
from controller.runtime.write_gate import LeaseGate, OpenGate
from controller.tenant.root import ROOT, RootEventHandler, RootReconciler
from registry.cluster.informer import Informer
from registry.cluster.informer_factory import InformerFactory
from registry.cluster.interface import ClusterClient
from registry.tenantgateway.types import GROUP as GATEWAYS
from tenant_apiserver.wiring.gateway_controller import NAME as TENANT_GATEWAY
from tenant_apiserver.wiring.gateway_controller import GatewayControllers
from tenant_apiserver.wiring.tenant_api import TenantApi
from tenant_apiserver.wiring.tenant_controller import NAME as TENANT
from tenant_apiserver.wiring.tenant_controller import tenant_controller

LEASE = "tenant-apiserver"
ROOT_TENANT = "root-tenant"
REPORTING_CONTROLLER = "apps.cozystack.io/tenant-controller"
_WAIT_SECONDS = 10.0
_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerContext:
    """Where the controllers work, and with what settings."""

    cluster: ClusterClient
    tenants: TenantApi
    settings: SettingsSource
    metrics: Metrics


class Controllers:
    """`chosen` names controllers; with a `lease_namespace` a Lease there decides which replica runs them.

    To be made before the informers run: it listens to them.
    """

    def __init__(self, platform: ControllerContext, *, chosen: Sequence[str], lease_namespace: str = "") -> None:
        self._tenants = platform.tenants
        gate = LeaseGate() if lease_namespace else None
        writer = ClusterWriter(cluster=platform.cluster, gate=gate or OpenGate())
        queues = WorkQueueMetrics(platform.metrics.registry)
        self._informers = InformerFactory(platform.cluster, shared=platform.tenants.informers)
        recorder = EventRecorder(
            writer=ClusterWriter(cluster=platform.cluster, gate=gate or OpenGate()),
            controller=REPORTING_CONTROLLER,
            instance=socket.gethostname(),
        )
        made: dict[str, Callable[[ControllerContext, ClusterWriter, WorkQueueMetrics], Runnable]] = {
            TENANT: partial(_tenant, self._informers, recorder),
            ROOT_TENANT: _root,
            TENANT_GATEWAY: partial(_gateways, self._informers, recorder),
        }
        controllers = [make(platform, writer, queues) for name, make in made.items() if name in chosen]
        self._manager = ControllerManager(
            controllers=[*controllers, recorder],
            elector=_elector(platform.cluster, gate, lease_namespace) if gate is not None else None,
        )
        self._idle = not controllers

    async def run(self) -> None:
        """Works until it is cancelled; returns at once if no controller was chosen."""
        if self._idle:
            return
        # what is served from comes first: the server is ready all the sooner
        for informer in self._tenants.informers:
            await _seen(informer)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._informers.run(), name="informers")
            # what is found a moment late would be taken for missing, and told so, by everyone who is looked at first
            await _wait_for_discovery(self._informers)
            for informer in self._informers.all:
                await _seen(informer)
            await self._manager.run()


def _tenant(
    informers: InformerFactory,
    recorder: Recorder,
    platform: ControllerContext,
    writer: ClusterWriter,
    queues: WorkQueueMetrics,
) -> Runnable:
    return tenant_controller(
        cluster=platform.cluster,
        tenants=platform.tenants,
        settings=platform.settings,
        informers=informers,
        writer=writer,
        queues=queues,
        recorder=recorder,
    )


def _gateways(
    informers: InformerFactory,
    recorder: Recorder,
    platform: ControllerContext,
    writer: ClusterWriter,
    queues: WorkQueueMetrics,
) -> Runnable:
    return GatewayControllers(
        tenants=platform.tenants,
        settings=platform.settings,
        informers=informers,
        writer=writer,
        queues=queues,
        recorder=recorder,
    )


async def _wait_for_discovery(informers: InformerFactory) -> None:
    """A kind that cannot be asked for does not hold up the others for long."""
    try:
        async with asyncio.timeout(_WAIT_SECONDS):
            await informers.wait_until_checked()
    except TimeoutError:
        _logger.warning("which optional kinds the host serves is not known yet")


async def _seen(informer: Informer) -> None:
    """A kind that comes by a CustomResourceDefinition of ours may not be there yet, and does not hold up the others."""
    patience = _WAIT_SECONDS if informer.resource.group == GATEWAYS else None
    try:
        # wait_for of Python 3.11 can swallow a cancellation, and then the process does not end
        async with asyncio.timeout(patience):
            await informer.late_synced.wait()
    except TimeoutError:
        _logger.warning("the host has no %s.%s yet", informer.resource.plural, informer.resource.group)


def _root(platform: ControllerContext, writer: ClusterWriter, queues: WorkQueueMetrics) -> Runnable:
    tenants = platform.tenants
    queue = WorkQueue[Key](metrics=queues.for_queue(ROOT_TENANT))
    queues.track(ROOT_TENANT, queue)
    events = RootEventHandler(enqueue=queue.add)
    tenants.namespaces.add_handler(events, late=True)
    tenants.cache.subscribe(events.on_event)
    reconciler = RootReconciler(
        writer=writer,
        cluster=platform.cluster,
        tree=tenants.tree,
        namespaces=tenants.namespaces.store,
        settings=lambda: platform.settings.current.release.to_release_settings(),
    )
    return Controller(name=ROOT_TENANT, queue=queue, reconciler=reconciler, initial_keys=lambda: (ROOT,), workers=1)


def _elector(cluster: ClusterClient, gate: LeaseGate, namespace: str) -> LeaderElector:
    identity = f"{socket.gethostname()}_{os.getpid()}_{uuid.uuid4()}"
    return LeaderElector(
        cluster=cluster, gate=gate, candidate=Candidate(identity=identity, namespace=namespace, name=LEASE)
    )
