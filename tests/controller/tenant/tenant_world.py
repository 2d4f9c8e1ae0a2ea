"""A host with our controllers at work on it, wired as the process wires them; time is virtual."""

from __future__ import annotations

import asyncio
import base64
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import yaml

from apiserver.meta.resource import Key, Object
from apiserver.storage.watch_cache import WatchCache
from controller.runtime.apply import ClusterWriter
from controller.runtime.event_recorder import Event, Recorder, Regarding
from controller.runtime.manager import Controller, ControllerManager
from controller.runtime.workqueue import WorkQueue
from controller.runtime.write_gate import OpenGate
from controller.tenant.finalizer import ParentDeletionHandler, TenantFinalizer
from controller.tenant.gateway_ready_step import GATEWAYS, GatewayIndex, GatewayReadyStep
from controller.tenant.helm_ownership import ChartMode
from controller.tenant.host_conflict_step import HostConflictStep
from controller.tenant.managed_objects import ContentWriter
from controller.tenant.namespace_content_steps import ContentSettings
from controller.tenant.namespace_content_steps import content_steps as inside_steps
from controller.tenant.namespace_step import NamespaceStep
from controller.tenant.observe import TenantObserver
from controller.tenant.orphaned_namespaces import OrphanedNamespaceCleanup
from controller.tenant.reconciler import Step, TenantReconciler, all_tenant_keys
from controller.tenant.release_adopted_namespace import AdoptedNamespaceCleanup
from controller.tenant.root import ROOT, RootEventHandler, RootReconciler
from controller.tenant.status import TenantStatusWriter
from controller.tenant.watches import NamespaceEventHandler, TenantEnqueuer, TenantEventHandler
from controller.tenant.workloads_ready_step import WORKLOADMONITORS, WorkloadIndex, WorkloadsReadyStep
from registry.cluster.event_handlers import EventHandler
from registry.cluster.informer import Informer
from registry.cluster.interface import HELMRELEASES, NAMESPACES, SECRETS, SERVICES, ClusterResource
from registry.names import RELEASE_SELECTOR, release_name
from registry.tenant.convert import to_tenant
from registry.tenant.release_settings import ReleaseSettings
from registry.tenant.tree import TenantTree
from registry.tenant.types import tenant_resource
from registry.tenant.watch_feed import TenantFeed
from registry.tenantgateway.types import TENANTGATEWAYS
from tests.fakes import FakeCluster
from tests.tenant_objects import ROOT_HOST, release

# FakeCluster makes everything at this time
NOW = datetime(2026, 1, 1, tzinfo=UTC)
_LABEL = "namespace.cozystack.io/"
LIMITS = {
    "default": {"cpu": "250m", "memory": "128Mi", "ephemeral-storage": "2Gi"},
    "defaultRequest": {"cpu": "25m", "memory": "128Mi", "ephemeral-storage": "50Mi"},
}


@dataclass
class PlatformOfTests:
    """Settings that a test changes, and then looks at the tenants again."""

    chart: ChartMode = "none"
    cluster: dict[str, str] = field(default_factory=lambda: {"root-host": ROOT_HOST, "solver": "http01"})
    gateway_class: str = "cilium"
    served: bool = True

    def contents(self) -> ContentSettings:
        return ContentSettings(
            chart=lambda: self.chart,
            cluster=lambda: self.cluster,
            limits=lambda: LIMITS,
            tenantgateway=self.tenantgateway,
            served=lambda: self.served,
        )

    def tenantgateway(self, apex: str) -> Object:
        return {
            "apex": apex,
            "certMode": "http01",
            "issuerName": "letsencrypt-prod",
            "gatewayClassName": self.gateway_class,
            "attachedNamespaces": ["cozy-dashboard", "default"],
            "tlsPassthroughServices": ["api"],
        }


class Told(Recorder):
    """What was told, in its order: the tenant, type, reason and note."""

    def __init__(self) -> None:
        self.occurrences: list[tuple[str, str, str, str]] = []

    def record(self, regarding: Regarding, occurrence: Event) -> None:
        self.occurrences.append((regarding.name, occurrence.type, occurrence.reason, occurrence.note))

    def of(self, name: str) -> list[tuple[str, str]]:
        """(type, reason) of what was told of a tenant."""
        return [(type_, reason) for who, type_, reason, _ in self.occurrences if who == name]


class World:
    """`inside` also keeps what is in the namespaces."""

    def __init__(
        self, cluster: FakeCluster | None = None, *, inside: bool = False, platform: PlatformOfTests | None = None
    ) -> None:
        self.platform = platform or PlatformOfTests()
        self.cluster = cluster or FakeCluster()
        resource = tenant_resource()
        self.cache = WatchCache(resource)
        self.tree = TenantTree(root_host=ROOT_HOST)
        self.queue = WorkQueue[Key]()
        roots = WorkQueue[Key]()
        self.writer = ClusterWriter(cluster=self.cluster, gate=OpenGate())
        self.handlers: list[EventHandler] = []
        self._writer = ContentWriter(writer=self.writer, cluster=self.cluster, chart=lambda: self.platform.chart)
        self._leavings = AdoptedNamespaceCleanup(writer=self.writer, contents=self._writer, add_handler=self._listen)
        self.told = Told()
        self.now = NOW
        self._contents: dict[tuple[ClusterResource, str], Informer] = {}
        self._releases = Informer(self.cluster, HELMRELEASES, label_selector=RELEASE_SELECTOR)
        self._namespaces = Informer(self.cluster, NAMESPACES)
        events = TenantEventHandler(tree=self.tree, enqueue=self.queue.add)
        namespaces = NamespaceEventHandler(tree=self.tree, namespaces=self._namespaces.store, enqueue=self.queue.add)
        root_events = RootEventHandler(enqueue=roots.add)
        deletions = ParentDeletionHandler(tree=self.tree, enqueue=self.queue.add)
        for listener in (self.tree.on_event, events.on_event, deletions.on_event, root_events.on_event):
            self.cache.subscribe(listener)
        self._releases.add_handler(TenantFeed(resource=resource, cache=self.cache))
        self._namespaces.add_handler(namespaces)
        self._namespaces.add_handler(root_events)
        gateways = GatewayIndex(writer=self.writer, tree=self.tree, enqueue=self.queue.add)
        workloads = WorkloadIndex(on_change=TenantEnqueuer(tree=self.tree, enqueue=self.queue.add).enqueue_owner)
        self._listen(TENANTGATEWAYS, gateways.tenantgateways)
        self._listen(GATEWAYS, gateways.gateways)
        self._listen(SERVICES, workloads.services)
        self._listen(WORKLOADMONITORS, workloads.monitors)
        status = TenantStatusWriter(
            writer=self.writer,
            now=lambda: self.now,
            chart=lambda: self.platform.chart,
            external_ips=workloads.external_ips,
            recorder=self.told,
        )
        reconciler = TenantReconciler(
            cleanup=OrphanedNamespaceCleanup(
                writer=self.writer, cluster=self.cluster, tree=self.tree, namespaces=namespaces
            ),
            observer=TenantObserver(
                tree=self.tree,
                releases=self._releases.store,
                namespaces=self._namespaces.store,
            ),
            finalizer=TenantFinalizer(
                writer=self.writer,
                tree=self.tree,
                releases=self._releases.store,
                gateways=gateways,
                adopted_namespaces=self._leavings,
                status=status,
            ),
            steps=[
                NamespaceStep(writer=self.writer, now=lambda: NOW, chart=lambda: self.platform.chart),
                HostConflictStep(),
                GatewayReadyStep(gateways=gateways),
                WorkloadsReadyStep(workloads=workloads),
            ],
            content_steps=self._inside() if inside else (),
            status=status,
        )
        root = RootReconciler(
            writer=self.writer,
            cluster=self.cluster,
            tree=self.tree,
            namespaces=self._namespaces.store,
            settings=ReleaseSettings,
        )
        self.controllers = [
            Controller(
                name="tenant",
                queue=self.queue,
                reconciler=reconciler,
                initial_keys=lambda: all_tenant_keys(self.tree, namespaces),
            ),
            Controller(name="root-tenant", queue=roots, reconciler=root, initial_keys=lambda: [ROOT], workers=1),
        ]

    def _inside(self) -> Sequence[Step]:
        return inside_steps(
            contents=self._writer,
            enqueuer=TenantEnqueuer(tree=self.tree, enqueue=self.queue.add),
            add_handler=self._leavings.add_handler,
            settings=self.platform.contents(),
        )

    def _listen(self, resource: ClusterResource, handler: EventHandler, *, name: str = "") -> None:
        selector = f"metadata.name={name}" if name else ""
        informer = self._contents.setdefault(
            (resource, name), Informer(self.cluster, resource, field_selector=selector, store_objects=False)
        )
        informer.add_handler(handler)
        self.handlers.append(handler)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Leaves once everything has settled."""
        watched = (self._releases, self._namespaces, *self._contents.values())
        informers = [asyncio.create_task(each.run()) for each in watched]
        await asyncio.gather(*(each.synced.wait() for each in watched))
        tasks = [*informers, asyncio.create_task(ControllerManager(controllers=self.controllers).run())]
        try:
            await self.settle()
            yield
            await self.settle()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    async def settle(self, seconds: float = 30.0) -> None:
        await asyncio.sleep(seconds)

    async def again(self) -> None:
        """Look at every tenant once more."""
        for facts in self.tree:
            self.queue.add(facts.key)
        await self.settle()

    async def create(self, name: str, namespace: str = "tenant-root", **spec: Any) -> None:
        await self.cluster.create(HELMRELEASES, release(name, namespace, spec=spec, finalizer=True))

    async def change(self, name: str, namespace: str = "tenant-root", **spec: Any) -> None:
        await self._merge(HELMRELEASES, namespace, release_name(name), {"spec": {"values": spec}})

    async def delete(self, name: str, namespace: str = "tenant-root") -> None:
        await self.cluster.delete(HELMRELEASES, namespace, release_name(name))

    async def edit_namespace(self, name: str, metadata: Mapping[str, Any]) -> None:
        await self._merge(NAMESPACES, "", name, {"metadata": dict(metadata)})

    async def _merge(self, res: ClusterResource, namespace: str, name: str, body: Object) -> None:
        await self.cluster.patch(res, namespace, name, body, content_type="application/merge-patch+json")

    async def edit(self, res: ClusterResource, namespace: str, name: str, body: Object) -> None:
        await self._merge(res, namespace, name, body)

    def content(self, res: ClusterResource, namespace: str, name: str) -> Object:
        found = self.cluster.peek(res, namespace, name)
        assert found is not None, f"there is no {res.kind} {namespace}/{name}"
        return found

    def values(self, namespace: str) -> dict[str, Any]:
        """values.yaml of the Secret."""
        text = base64.b64decode(self.content(SECRETS, namespace, "cozystack-values")["data"]["values.yaml"])
        document: dict[str, Any] = yaml.safe_load(text)
        return document

    def namespace(self, name: str) -> Object:
        found = self.cluster.peek(NAMESPACES, "", name)
        assert found is not None, f"there is no namespace {name}"
        return found

    def labels(self, name: str) -> dict[str, str]:
        labels: dict[str, str] = self.namespace(name)["metadata"]["labels"]
        return labels

    def services(self, name: str) -> dict[str, str]:
        """The labels namespace.cozystack.io/*, without the host."""
        found = {key.removeprefix(_LABEL): value for key, value in self.labels(name).items() if key.startswith(_LABEL)}
        found.pop("host", None)
        return found

    def tenant(self, name: str, namespace: str = "tenant-root") -> Object:
        found = self.cluster.peek(HELMRELEASES, namespace, release_name(name))
        assert found is not None, f"there is no tenant {namespace}/{name}"
        return to_tenant(found)

    def conditions(self, name: str, namespace: str = "tenant-root") -> dict[str, tuple[str, str]]:
        """(status, reason) by type."""
        found = self.tenant(name, namespace)["status"].get("conditions", [])
        return {each["type"]: (each["status"], each["reason"]) for each in found}

    def made(self) -> Counter[tuple[str, str]]:
        """How many writes there were, by verb and plural."""
        return Counter((verb, plural) for verb, plural, _ in self.writes())

    def writes(self) -> list[tuple[str, str, str]]:
        return [(write.verb, write.resource.plural, write.key.name) for write in self.cluster.writes]
