"""The controllers, put together: they work on the replica that leads, once it has seen what there is."""

from __future__ import annotations

import os
import socket
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from apiserver.metrics import Metrics
from apiserver.resource import Key
from controller.apply import Apply
from controller.gate import LeaseGate, OpenGate
from controller.leaderelection import Candidate, LeaderElector
from controller.queuemetrics import WorkQueueMetrics
from controller.root import ROOT, RootEvents, RootReconciler
from controller.runtime import Controller, Manager, Runnable
from controller.tenant.cleanup import Cleanup
from controller.tenant.events import NamespaceEvents, TenantEvents
from controller.tenant.host import HostStep
from controller.tenant.namespace import NamespaceStep
from controller.tenant.observed import Observer
from controller.tenant.reconciler import TenantReconciler, every_tenant
from controller.tenant.status import StatusWriter
from controller.workqueue import WorkQueue
from registry.host import Host
from registry.tenant.settings import ReleaseSettings
from tenant_apiserver.tenants import TenantApi

LEASE = "tenant-apiserver"
TENANT, ROOT_TENANT = "tenant", "root-tenant"


@dataclass(frozen=True, slots=True, kw_only=True)
class Platform:
    """Where the controllers work, and with what settings."""

    host: Host
    tenants: TenantApi
    root_host: str
    settings: ReleaseSettings
    metrics: Metrics


class Controllers:
    """`chosen` names controllers; with a `lease_namespace` a Lease there decides which replica runs them.

    To be made before the informers run: it listens to them.
    """

    def __init__(self, platform: Platform, *, chosen: Sequence[str], lease_namespace: str = "") -> None:
        self._tenants = platform.tenants
        gate = LeaseGate() if lease_namespace else None
        apply = Apply(host=platform.host, gate=gate or OpenGate())
        queues = WorkQueueMetrics(platform.metrics.registry)
        made = {TENANT: _tenant, ROOT_TENANT: _root}
        controllers = [make(platform, apply, queues) for name, make in made.items() if name in chosen]
        self._manager = Manager(
            controllers=controllers,
            elector=_elector(platform.host, gate, lease_namespace) if gate is not None else None,
        )
        self._idle = not controllers

    async def run(self) -> None:
        """Works until it is cancelled; returns at once if no controller was chosen."""
        if self._idle:
            return
        for informer in self._tenants.informers:
            await informer.synced.wait()
        await self._manager.run()


def _tenant(platform: Platform, apply: Apply, queues: WorkQueueMetrics) -> Runnable:
    tenants, tree, root_host = platform.tenants, platform.tenants.tree, platform.root_host
    queue = WorkQueue[Key](metrics=queues.of(TENANT))
    queues.track(TENANT, queue)
    namespaces = NamespaceEvents(tree=tree, namespaces=tenants.namespaces.store, enqueue=queue.add)
    tenants.namespaces.add_handler(namespaces)
    tenants.cache.subscribe(TenantEvents(tree=tree, root_host=root_host, enqueue=queue.add).on_event)
    reconciler = TenantReconciler(
        cleanup=Cleanup(apply=apply, host=platform.host, tree=tree, namespaces=namespaces),
        observer=Observer(
            tree=tree, releases=tenants.releases.store, namespaces=tenants.namespaces.store, root_host=root_host
        ),
        steps=(NamespaceStep(apply=apply, now=_now), HostStep()),
        status=StatusWriter(apply=apply, now=_now),
    )
    return Controller(name=TENANT, queue=queue, reconciler=reconciler, seed=lambda: every_tenant(tree, namespaces))


def _root(platform: Platform, apply: Apply, queues: WorkQueueMetrics) -> Runnable:
    tenants = platform.tenants
    queue = WorkQueue[Key](metrics=queues.of(ROOT_TENANT))
    queues.track(ROOT_TENANT, queue)
    events = RootEvents(enqueue=queue.add)
    tenants.namespaces.add_handler(events)
    tenants.cache.subscribe(events.on_event)
    reconciler = RootReconciler(
        apply=apply,
        host=platform.host,
        tree=tenants.tree,
        namespaces=tenants.namespaces.store,
        settings=platform.settings,
        root_host=platform.root_host,
    )
    return Controller(name=ROOT_TENANT, queue=queue, reconciler=reconciler, seed=lambda: (ROOT,), workers=1)


def _elector(host: Host, gate: LeaseGate, namespace: str) -> LeaderElector:
    identity = f"{socket.gethostname()}_{os.getpid()}_{uuid.uuid4()}"
    return LeaderElector(host=host, gate=gate, candidate=Candidate(identity=identity, namespace=namespace, name=LEASE))


def _now() -> datetime:
    return datetime.now(UTC)
