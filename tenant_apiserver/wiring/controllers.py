"""Builds the controllers and runs them on the leading replica after the informers have synced."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from prometheus_client import Gauge

from apiserver.meta.resource import Key, Object
from apiserver.metrics import Metrics
from controller.platform.package import PACKAGES
from controller.platform.settings import SettingsSource
from controller.platform.sources import PlatformSources
from controller.publishing.guard import PublishingGuard
from controller.runtime.apply import ClusterWriter
from controller.runtime.event_recorder import EventRecorder, Recorder, Regarding
from controller.runtime.leader_election import Candidate, LeaderElector
from controller.runtime.manager import Controller, ControllerManager, Runnable
from controller.runtime.workqueue import WorkQueue
from controller.runtime.workqueue_metrics import WorkQueueMetrics
from controller.runtime.write_gate import LeaseGate, OpenGate, WriteGate
from controller.tenant.isolation.model import ClusterNetworks
from controller.tenant.platform_settings_step import deletion_event
from controller.tenant.root import ROOT, RootEventHandler, RootReconciler
from registry.cluster.informer import Informer
from registry.cluster.informer_factory import InformerFactory
from registry.cluster.interface import ClusterClient
from registry.tenantgateway.types import GROUP as GATEWAYS
from tenant_apiserver.wiring.applications.api import ApplicationApi
from tenant_apiserver.wiring.applications.controllers import workloads_controller
from tenant_apiserver.wiring.applications.forms_keeper import LEASE as FORMS_LEASE
from tenant_apiserver.wiring.applications.forms_keeper import FormsKeeper
from tenant_apiserver.wiring.gateway_controller import NAME as TENANT_GATEWAY
from tenant_apiserver.wiring.gateway_controller import GatewayControllers
from tenant_apiserver.wiring.platform_routes import platform_route_controller
from tenant_apiserver.wiring.publishing import publishing_guard
from tenant_apiserver.wiring.replica_identity import new_identity
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
    """The dependencies of all controllers. `own_networks` are those of a cluster that knows them itself, `sources` the
    parts of `settings`. `enforces_quotas` is False for a cluster that is known to enforce no ResourceQuotas.
    `applications` is None for a process that may not even write the forms of their kinds."""

    cluster: ClusterClient
    tenants: TenantApi
    settings: SettingsSource
    metrics: Metrics
    own_networks: ClusterNetworks | None = None
    sources: PlatformSources | None = None
    enforces_quotas: bool = True
    applications: ApplicationApi | None = None


class Controllers:
    """The chosen controllers, and what keeps the forms of applications, whichever are chosen. With a `lease_namespace`,
    a Lease there for each of the two decides which replica runs it.

    Must be created before the informers run, because it adds handlers to them.
    """

    def __init__(self, context: ControllerContext, *, chosen: Sequence[str], lease_namespace: str = "") -> None:
        self._tenants = context.tenants
        self._sources = context.sources
        gate = LeaseGate() if lease_namespace else None
        new_writer = partial(ClusterWriter, cluster=context.cluster, gate=gate or OpenGate())
        writer = new_writer(caches=context.tenants.object_caches)
        queues = WorkQueueMetrics(context.metrics.registry)
        self._informers = InformerFactory(context.cluster, shared=context.tenants.informers)
        recorder = EventRecorder(writer=new_writer(), controller=REPORTING_CONTROLLER, instance=socket.gethostname())
        self.recorder: Recorder = recorder
        """Writes Events while this replica leads."""
        if context.sources is not None:
            context.sources.subscribe_to_deletion(partial(_report_deletion, recorder, gate or OpenGate()))
        self.publishing = _new_publishing_guard(context, self._informers) if TENANT in chosen else None
        constructors: dict[str, Callable[[ControllerContext, ClusterWriter, WorkQueueMetrics], Runnable]] = {
            TENANT: partial(_new_tenant_controller, self._informers, recorder, self.publishing),
            ROOT_TENANT: root_controller,
            TENANT_GATEWAY: partial(_new_gateway_controllers, self._informers, recorder),
        }
        controllers = [new(context, writer, queues) for name, new in constructors.items() if name in chosen]
        if self.publishing is not None:
            controllers.append(
                platform_route_controller(
                    guard=self.publishing,
                    cluster=context.cluster,
                    settings=context.settings,
                    informers=self._informers,
                    writer=writer,
                    queues=queues,
                )
            )
        self._elector = _elector(context.cluster, gate, lease_namespace) if gate is not None else None
        self._idle = not controllers
        others: list[Runnable] = [recorder]
        if context.applications is not None and not self._idle:
            others.append(workloads_controller(context.applications, self._informers, writer, queues))
        self._manager = ControllerManager(controllers=[*controllers, *others], elector=self._elector)
        self._keeper = _new_forms_keeper(context, queues, lease_namespace)
        keepers_elector = self._keeper.elector if self._keeper is not None else None
        electors = {LEASE: None if self._idle else self._elector, FORMS_LEASE: keepers_elector}
        _export_leadership(context.metrics, electors)
        self._chosen = frozenset(chosen)

    @property
    def informers(self) -> InformerFactory:
        """The informers that only the controllers need."""
        return self._informers

    @property
    def may_create_root(self) -> bool:
        """True if this process creates the root Tenant, or will if it becomes the leader and no other one leads."""
        led_elsewhere = self._elector is not None and self._elector.leader not in ("", self._elector.identity)
        return ROOT_TENANT in self._chosen and not led_elsewhere

    async def run(self) -> None:
        """Runs until cancelled; returns immediately if nothing is to be run."""
        async with asyncio.TaskGroup() as group:
            if self._keeper is not None:
                group.create_task(self._keeper.run(), name="application-kinds")
            if not self._idle:
                group.create_task(self._run_chosen(), name="controllers")

    async def _run_chosen(self) -> None:
        # the informers that the API serves from come first, so that the server becomes ready early
        for informer in self._tenants.informers:
            await _wait_until_synced(informer)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._informers.run(), name="informers")
            # the first reconciles would report a kind that is discovered later as missing
            await _wait_for_discovery(self._informers)
            for informer in self._informers.all:
                await _wait_until_synced(informer)
            await self._tenants.ratios.known.wait()
            if self._sources is not None:
                # objects that were written with other settings would all be written again
                await self._sources.known.wait()
            await self._manager.run()


def _report_deletion(recorder: Recorder, gate: WriteGate, package: Object, changed: Sequence[str]) -> None:
    """Every replica sees the deletion; the leader tells about it."""
    if gate.is_open:
        recorder.record(Regarding.of(PACKAGES, package), deletion_event(changed))


def _new_forms_keeper(context: ControllerContext, queues: WorkQueueMetrics, lease_namespace: str) -> FormsKeeper | None:
    if context.applications is None:
        return None
    return FormsKeeper(
        context.applications,
        cluster=context.cluster,
        queues=queues,
        reporting_controller=REPORTING_CONTROLLER,
        lease_namespace=lease_namespace,
    )


def _new_publishing_guard(context: ControllerContext, informers: InformerFactory) -> PublishingGuard:
    return publishing_guard(
        tenants=context.tenants, settings=context.settings, informers=informers, registry=context.metrics.registry
    )


def _new_tenant_controller(
    informers: InformerFactory,
    recorder: Recorder,
    publishing: PublishingGuard | None,
    context: ControllerContext,
    writer: ClusterWriter,
    queues: WorkQueueMetrics,
) -> Runnable:
    return tenant_controller(
        cluster=context.cluster,
        tenants=context.tenants,
        settings=context.settings,
        informers=informers,
        writer=writer,
        queues=queues,
        recorder=recorder,
        own_networks=context.own_networks,
        problems=context.sources,
        enforces_quotas=context.enforces_quotas,
        publishing=publishing,
    )


def _new_gateway_controllers(
    informers: InformerFactory,
    recorder: Recorder,
    context: ControllerContext,
    writer: ClusterWriter,
    queues: WorkQueueMetrics,
) -> Runnable:
    return GatewayControllers(
        tenants=context.tenants,
        settings=context.settings,
        informers=informers,
        writer=writer,
        queues=queues,
        recorder=recorder,
    )


async def _wait_for_discovery(informers: InformerFactory) -> None:
    """Waits for a limited time, so that a kind that cannot be looked up does not block the others."""
    try:
        async with asyncio.timeout(_WAIT_SECONDS):
            await informers.wait_until_checked()
    except TimeoutError:
        _logger.warning(
            "discovery of optional kinds takes longer than %.0f s: starting the controllers anyway", _WAIT_SECONDS
        )


async def _wait_until_synced(informer: Informer) -> None:
    """Waits for a limited time if the kind comes with a CustomResourceDefinition of ours, which may be missing."""
    timeout = _WAIT_SECONDS if informer.resource.group == GATEWAYS else None
    try:
        # Python 3.11's wait_for can swallow a cancellation, and the process would not end
        async with asyncio.timeout(timeout):
            await informer.late_synced.wait()
    except TimeoutError:
        resource = informer.resource
        _logger.warning("%s.%s cannot be listed yet: starting the controllers anyway", resource.plural, resource.group)


def root_controller(context: ControllerContext, writer: ClusterWriter, queues: WorkQueueMetrics) -> Runnable:
    tenants = context.tenants
    queue = WorkQueue[Key](metrics=queues.for_queue(ROOT_TENANT))
    queues.track(ROOT_TENANT, queue)
    events = RootEventHandler(enqueue=queue.add)
    tenants.namespaces.add_handler(events, late=True)
    tenants.cache.subscribe(events.on_event)
    reconciler = RootReconciler(
        writer=writer,
        cluster=context.cluster,
        tree=tenants.tree,
        namespaces=tenants.namespaces.store,
        settings=lambda: context.settings.current.release_settings(),
    )
    return Controller(name=ROOT_TENANT, queue=queue, reconciler=reconciler, initial_keys=lambda: (ROOT,), workers=1)


def _elector(cluster: ClusterClient, gate: LeaseGate, namespace: str) -> LeaderElector:
    candidate = Candidate(identity=new_identity(), namespace=namespace, name=LEASE)
    return LeaderElector(cluster=cluster, gate=gate, candidate=candidate)


def _export_leadership(metrics: Metrics, electors: Mapping[str, LeaderElector | None]) -> None:
    """The metric of Kubernetes' own components (k8s.io/component-base), from the start on, by the names of Leases."""
    taking_part = {name: elector for name, elector in electors.items() if elector is not None}
    if not taking_part:
        return
    found = Gauge(
        "leader_election_master_status",
        "1 if this replica leads, and 0 if it would take over.",
        ["name"],
        registry=metrics.registry,
    )
    for name, elector in taking_part.items():
        found.labels(name).set_function(partial(_is_leader, elector))


def _is_leader(elector: LeaderElector) -> float:
    return float(elector.is_leader)
