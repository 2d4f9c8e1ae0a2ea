"""A fake cluster with the controller of the platform's routes, wired as in the process, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from prometheus_client import CollectorRegistry

from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Key, Object
from controller.platform.settings import PlatformSettings
from controller.publishing.guard import PublishingGuard
from controller.publishing.services import SERVICES
from controller.runtime.apply import ClusterWriter
from controller.runtime.workqueue_metrics import WorkQueueMetrics
from controller.runtime.write_gate import OpenGate
from registry.cluster.informer_factory import InformerFactory
from registry.cluster.interface import INGRESSES, ClusterResource
from registry.cluster.interface import SERVICES as SERVICE_KIND
from tenant_apiserver.wiring.platform_routes import platform_route_controller
from tenant_apiserver.wiring.publishing import publishing_guard
from tests.controller.tenantgateway.gateway_world import HTTPROUTES, TLSROUTES
from tests.controller.tenantgateway.gateway_world import World as GatewayWorld
from tests.fake_cluster import FakeCluster

EPOCH = 1_767_268_800.0
LISTED = ["dashboard", "api", "vm-exportproxy", "cdi-uploadproxy"]


class PlatformRoutesWorld(GatewayWorld):
    """All services of the platform are installed and listed."""

    def __init__(self, cluster: FakeCluster | None = None, **gateway: Any) -> None:
        super().__init__(cluster, self._values(LISTED, gateway))
        self.guard: PublishingGuard | None = None
        self.unserved_versions: set[str] = set()
        if cluster is None:
            for each in SERVICES.values():
                self.add_service(each.namespace, each.backend, each.port)

    @staticmethod
    def _values(exposed: list[str], gateway: Mapping[str, Any]) -> Mapping[str, Any]:
        return {
            "publishing": {"exposedServices": exposed},
            "gateway": {"enabled": True, "platformRoutes": True, **gateway},
        }

    def configure(self, exposed: list[str] | None = None, **gateway: Any) -> None:
        values = self._values(LISTED if exposed is None else exposed, gateway)
        self.settings.replace(PlatformSettings.model_validate(values))

    def add_service(self, namespace: str, name: str, port: int) -> None:
        metadata = {"namespace": namespace, "name": name}
        self.cluster.add(SERVICE_KIND, {"metadata": metadata, "spec": {"ports": [{"port": port}]}})

    def add_ingress(self, service: str) -> None:
        rules = [{"host": f"{service}.example.org"}]
        metadata = {"namespace": SERVICES[service].namespace, "name": service}
        self.cluster.add(INGRESSES, {"metadata": metadata, "spec": {"ingressClassName": "tenant-root", "rules": rules}})

    def platform_route(self, service: str) -> Object | None:
        found = SERVICES[service]
        return self.cluster.peek(_resource(service), found.namespace, found.route)

    def platform_routes(self) -> list[str]:
        return [each for each in SERVICES if self.platform_route(each) is not None]

    def writes(self) -> list[tuple[str, str]]:
        return [(each.verb, each.key.name) for each in self.cluster.writes]

    async def _before(self, verb: str, res: ClusterResource, key: Key) -> None:
        if res.kind == "TLSRoute" and res.version in self.unserved_versions:
            raise StatusError(404, "NotFound", "the server could not find the requested resource")
        await super()._before(verb, res, key)

    @asynccontextmanager
    async def routes_running(self) -> AsyncIterator[None]:
        """Runs the controller, and waits until it has settled at the start and at the end."""
        tenants = self.tenants()
        informers = InformerFactory(self.cluster, shared=tenants.informers)
        self.guard = publishing_guard(
            tenants=tenants, settings=self.settings, informers=informers, registry=CollectorRegistry()
        )
        controller = platform_route_controller(
            guard=self.guard,
            cluster=self.cluster,
            settings=self.settings,
            informers=informers,
            writer=ClusterWriter(cluster=self.cluster, gate=OpenGate()),
            queues=WorkQueueMetrics(CollectorRegistry()),
            now=lambda: EPOCH + asyncio.get_running_loop().time(),
        )
        tasks = [asyncio.create_task(informers.run()), *(asyncio.create_task(each.run()) for each in tenants.informers)]
        await informers.wait_until_checked()
        tasks.append(asyncio.create_task(controller.run()))
        try:
            await self.settle()
            yield
            await self.settle()
            assert not tasks[-1].done(), tasks[-1].exception()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)


def _resource(service: str) -> ClusterResource:
    return HTTPROUTES if SERVICES[service].kind == "HTTPRoute" else TLSROUTES
