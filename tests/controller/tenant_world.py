"""A host with our controllers at work on it, wired as the process wires them; time is virtual."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

from apiserver.resource import Key, Object
from apiserver.watchcache import WatchCache
from controller.apply import Apply
from controller.gate import OpenGate
from controller.informer import Informer
from controller.root import ROOT, RootEvents, RootReconciler
from controller.runtime import Controller, Manager
from controller.tenant.cleanup import Cleanup
from controller.tenant.events import NamespaceEvents, TenantEvents
from controller.tenant.host import HostStep
from controller.tenant.namespace import NamespaceStep
from controller.tenant.observed import Observer
from controller.tenant.reconciler import TenantReconciler, every_tenant
from controller.tenant.status import StatusWriter
from controller.workqueue import WorkQueue
from registry.host import HELMRELEASES, NAMESPACES, HostResource
from registry.names import RELEASE_SELECTOR, release_name
from registry.tenant.convert import to_tenant
from registry.tenant.feed import TenantFeed
from registry.tenant.settings import ReleaseSettings
from registry.tenant.tree import TenantTree
from registry.types import tenant_resource
from tests.fakes import FakeHost
from tests.tenant_objects import ROOT_HOST, release

# FakeHost makes everything at this time
NOW = datetime(2026, 1, 1, tzinfo=UTC)


class World:
    def __init__(self, host: FakeHost | None = None) -> None:
        self.host = host or FakeHost()
        resource = tenant_resource()
        self.cache = WatchCache(resource)
        self.tree = TenantTree(root_host=ROOT_HOST)
        self.queue = WorkQueue[Key]()
        roots = WorkQueue[Key]()
        self.apply = Apply(host=self.host, gate=OpenGate())
        self._releases = Informer(self.host, HELMRELEASES, label_selector=RELEASE_SELECTOR)
        self._namespaces = Informer(self.host, NAMESPACES)
        events = TenantEvents(tree=self.tree, root_host=ROOT_HOST, enqueue=self.queue.add)
        namespaces = NamespaceEvents(tree=self.tree, namespaces=self._namespaces.store, enqueue=self.queue.add)
        root_events = RootEvents(enqueue=roots.add)
        for listener in (self.tree.on_event, events.on_event, root_events.on_event):
            self.cache.subscribe(listener)
        self._releases.add_handler(TenantFeed(resource=resource, cache=self.cache))
        self._namespaces.add_handler(namespaces)
        self._namespaces.add_handler(root_events)
        reconciler = TenantReconciler(
            cleanup=Cleanup(apply=self.apply, host=self.host, tree=self.tree, namespaces=namespaces),
            observer=Observer(
                tree=self.tree,
                releases=self._releases.store,
                namespaces=self._namespaces.store,
                root_host=ROOT_HOST,
            ),
            steps=[NamespaceStep(apply=self.apply, now=lambda: NOW), HostStep()],
            status=StatusWriter(apply=self.apply, now=lambda: NOW),
        )
        root = RootReconciler(
            apply=self.apply,
            host=self.host,
            tree=self.tree,
            namespaces=self._namespaces.store,
            settings=ReleaseSettings(),
            root_host=ROOT_HOST,
        )
        self.controllers = [
            Controller(
                name="tenant",
                queue=self.queue,
                reconciler=reconciler,
                seed=lambda: every_tenant(self.tree, namespaces),
            ),
            Controller(name="root-tenant", queue=roots, reconciler=root, seed=lambda: [ROOT], workers=1),
        ]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Leaves once everything has settled."""
        informers = [asyncio.create_task(each.run()) for each in (self._releases, self._namespaces)]
        await asyncio.gather(self._releases.synced.wait(), self._namespaces.synced.wait())
        tasks = [*informers, asyncio.create_task(Manager(controllers=self.controllers).run())]
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
        await self.host.create(HELMRELEASES, release(name, namespace, spec=spec))

    async def change(self, name: str, namespace: str = "tenant-root", **spec: Any) -> None:
        await self._merge(HELMRELEASES, namespace, release_name(name), {"spec": {"values": spec}})

    async def delete(self, name: str, namespace: str = "tenant-root") -> None:
        await self.host.delete(HELMRELEASES, namespace, release_name(name))

    async def edit_namespace(self, name: str, metadata: Mapping[str, Any]) -> None:
        await self._merge(NAMESPACES, "", name, {"metadata": dict(metadata)})

    async def _merge(self, res: HostResource, namespace: str, name: str, body: Object) -> None:
        await self.host.patch(res, namespace, name, body, content_type="application/merge-patch+json")

    def namespace(self, name: str) -> Object:
        found = self.host.peek(NAMESPACES, "", name)
        assert found is not None, f"there is no namespace {name}"
        return found

    def labels(self, name: str) -> dict[str, str]:
        labels: dict[str, str] = self.namespace(name)["metadata"]["labels"]
        return labels

    def tenant(self, name: str, namespace: str = "tenant-root") -> Object:
        found = self.host.peek(HELMRELEASES, namespace, release_name(name))
        assert found is not None, f"there is no tenant {namespace}/{name}"
        return to_tenant(found)

    def conditions(self, name: str, namespace: str = "tenant-root") -> dict[str, tuple[str, str]]:
        """(status, reason) by type."""
        found = self.tenant(name, namespace)["status"].get("conditions", [])
        return {each["type"]: (each["status"], each["reason"]) for each in found}

    def writes(self) -> list[tuple[str, str, str]]:
        return [(write.verb, write.resource.plural, write.key.name) for write in self.host.writes]
