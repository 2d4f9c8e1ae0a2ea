"""A fake cluster with the TenantGateway controller, wired as in the process, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from typing import Any

from prometheus_client import CollectorRegistry

from admission.chain import ignore_observation
from apiserver.authorization.authorizer import PrivilegedGroups
from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Key, Object
from controller.platform.settings import PlatformSettings, ReloadableSettings
from controller.runtime.apply import ClusterWriter
from controller.runtime.event_recorder import Event, Recorder, Regarding
from controller.runtime.workqueue_metrics import WorkQueueMetrics
from controller.runtime.write_gate import OpenGate, WriteGate
from registry.cluster.informer_factory import InformerFactory
from registry.cluster.interface import NAMESPACES, ClusterResource
from registry.names import GATEWAY_ATTACHED_BY_ANNOTATION, GATEWAY_LABEL, HOST_LABEL
from registry.tenantgateway.types import TENANTGATEWAYS
from tenant_apiserver.wiring.gateway_controller import GatewayControllers
from tenant_apiserver.wiring.tenant_api import TenantApi, TenantApiConfig, tenant_api
from tests.fake_cluster import FakeCluster
from tests.virtual_time import run_virtual

GATEWAY_API, CERT_MANAGER = "gateway.networking.k8s.io", "cert-manager.io"
GATEWAYS = ClusterResource(GATEWAY_API, "v1", "gateways", "Gateway")
HTTPROUTES = ClusterResource(GATEWAY_API, "v1", "httproutes", "HTTPRoute")
TLSROUTES = ClusterResource(GATEWAY_API, "v1", "tlsroutes", "TLSRoute")
GRPCROUTES = ClusterResource(GATEWAY_API, "v1", "grpcroutes", "GRPCRoute")
GRANTS = ClusterResource(GATEWAY_API, "v1", "referencegrants", "ReferenceGrant")
ISSUERS = ClusterResource(CERT_MANAGER, "v1", "issuers", "Issuer")
CERTIFICATES = ClusterResource(CERT_MANAGER, "v1", "certificates", "Certificate")
OURS = "gateway.cozystack.io/tenantgateway-controller"
MERGE = "application/merge-patch+json"
# Longer than the pauses before a failed write is retried and before a missing kind is looked up again.
_NO_PLATFORM_NAMESPACES: Mapping[str, Any] = {"gateway": {"attachedNamespaces": []}}
_SETTLE_SECONDS = 30.0


class EventLog(Recorder):
    """Records (kind, name, type, reason) of events."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str, str, str]] = []

    def record(self, regarding: Regarding, event: Event) -> None:
        self.events.append((regarding.kind, regarding.name, event.type, event.reason))


class World:
    """By default no namespace is the platform's.

    `failing_calls` are errors to raise by (verb, plural, name); the cluster does not serve `unserved_groups`."""

    def __init__(self, cluster: FakeCluster | None = None, settings: Mapping[str, Any] | None = None) -> None:
        self.cluster = cluster or FakeCluster()
        self.cluster.before = self._before
        self.failing_calls: dict[tuple[str, str, str], StatusError] = {}
        self.unserved_groups: set[str] = set()
        self.settings = ReloadableSettings(PlatformSettings.model_validate(settings or _NO_PLATFORM_NAMESPACES))
        self.recorder = EventLog()
        self.calls: list[tuple[str, str, str]] = []

    async def _before(self, verb: str, res: ClusterResource, key: Key) -> None:
        if res.group in self.unserved_groups:
            raise StatusError(404, "NotFound", "the server could not find the requested resource")
        self.calls.append((verb, res.plural, key.name))
        if (error := self.failing_calls.get((verb, res.plural, key.name))) is not None:
            raise error

    @asynccontextmanager
    async def running(self, gate: WriteGate | None = None) -> AsyncIterator[GatewayControllers]:
        """Runs a process, and waits until it has settled at the start and at the end. It leads while the `gate` is
        open: always, without one, until `term` is cancelled."""
        tenants = self.tenants()
        informers = InformerFactory(self.cluster, shared=tenants.informers)
        self.writer = ClusterWriter(cluster=self.cluster, gate=gate or OpenGate())
        controllers = GatewayControllers(
            tenants=tenants,
            settings=self.settings,
            informers=informers,
            writer=self.writer,
            queues=WorkQueueMetrics(CollectorRegistry()),
            recorder=self.recorder,
        )
        tasks = [asyncio.create_task(informers.run()), *(asyncio.create_task(each.run()) for each in tenants.informers)]
        # the process waits for TenantGateways for a limited time only
        await asyncio.gather(*(each.synced.wait() for each in tenants.informers))
        self.term = asyncio.create_task(controllers.run())
        tasks.append(self.term)
        try:
            await self.settle()
            yield controllers
            await self.settle()
            assert self.term.cancelled() or not self.term.done(), self.term.exception()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    def tenants(self) -> TenantApi:
        return tenant_api(
            TenantApiConfig(
                cluster=self.cluster,
                settings=self.settings,
                root_host="example.org",
                authorizer=PrivilegedGroups(),
                observe=ignore_observation,
                cluster_admission=lambda _: (),
                admission_informers=(),
            )
        )

    async def settle(self) -> None:
        await asyncio.sleep(_SETTLE_SECONDS)

    def add_tenantgateway(self, namespace: str = "tenant-foo", name: str = "cozystack", **spec: Any) -> None:
        """Adds a TenantGateway with the apex foo.example.com, unless `spec` changes that."""
        metadata = {"namespace": namespace, "name": name}
        self.cluster.add(TENANTGATEWAYS, {"metadata": metadata, "spec": {"apex": "foo.example.com", **spec}})

    def route(
        self,
        namespace: str,
        name: str,
        *hostnames: str,
        to: str = "tenant-foo/cozystack",
        res: ClusterResource = HTTPROUTES,
        **parent: Any,
    ) -> None:
        """Adds a route and, unless it exists, its Namespace, which the Gateway `to` admits with every hostname below
        example.com."""
        owner, _, gateway = to.partition("/")
        if self.cluster.peek(NAMESPACES, "", namespace) is None:
            self.namespace(namespace, gateway=owner, host="example.com")
        refs = [{"namespace": owner, "name": gateway, **parent}]
        metadata = {"namespace": namespace, "name": name}
        self.cluster.add(res, {"metadata": metadata, "spec": {"parentRefs": refs, "hostnames": list(hostnames)}})

    def namespace(self, name: str, *, gateway: str = "", host: str = "", by: str = "") -> None:
        metadata: Object = {"name": name}
        labels = {GATEWAY_LABEL: gateway, HOST_LABEL: host}
        metadata["labels"] = {key: value for key, value in labels.items() if value}
        if by:
            metadata["annotations"] = {GATEWAY_ATTACHED_BY_ANNOTATION: by}
        self.cluster.add(NAMESPACES, {"metadata": metadata})

    async def edit(self, res: ClusterResource, namespace: str, name: str, body: Object, subresource: str = "") -> None:
        await self.cluster.patch(res, namespace, name, body, content_type=MERGE, subresource=subresource)

    def change_settings(self, settings: Mapping[str, Any]) -> None:
        self.settings.replace(PlatformSettings.model_validate(settings))

    async def edit_spec(self, namespace: str = "tenant-foo", **spec: Any) -> None:
        await self.edit(TENANTGATEWAYS, namespace, "cozystack", {"spec": spec})

    def get(self, res: ClusterResource, namespace: str, name: str) -> Object:
        found = self.cluster.peek(res, namespace, name)
        assert found is not None, f"there is no {res.kind} {namespace}/{name}"
        return found

    async def names(self, res: ClusterResource, namespace: str = "tenant-foo") -> list[str]:
        listed = await self.cluster.list(res, namespace)
        return sorted(each["metadata"]["name"] for each in listed["items"])

    def listeners(self, namespace: str = "tenant-foo") -> list[str]:
        """Hostnames of the listeners on port 443."""
        found = self.get(GATEWAYS, namespace, "cozystack")["spec"]["listeners"]
        return sorted(each["hostname"] for each in found if each["port"] == 443)

    def label_and_annotation(self, name: str) -> tuple[str | None, str | None]:
        """Label and annotation of a Namespace."""
        metadata = self.get(NAMESPACES, "", name)["metadata"]
        annotations = metadata.get("annotations") or {}
        return (metadata.get("labels") or {}).get(GATEWAY_LABEL), annotations.get(GATEWAY_ATTACHED_BY_ANNOTATION)

    def conditions(self, namespace: str = "tenant-foo", name: str = "cozystack") -> dict[str, tuple[str, str, str]]:
        """(status, reason, message) of a TenantGateway's conditions by type."""
        found = (self.get(TENANTGATEWAYS, namespace, name).get("status") or {}).get("conditions") or []
        return {each["type"]: (each["status"], each["reason"], each["message"]) for each in found}

    def gateway_status(self, namespace: str = "tenant-foo", name: str = "cozystack") -> Object:
        found: Object = self.get(TENANTGATEWAYS, namespace, name).get("status") or {}
        return found

    def ready(self, namespace: str = "tenant-foo") -> tuple[str, str, str]:
        return self.conditions(namespace)["Ready"]

    def accepted_conditions(
        self, namespace: str, name: str, res: ClusterResource = HTTPROUTES
    ) -> dict[str, tuple[str, str, str]]:
        """(status, reason, message) of our Accepted condition on a route, by the namespace of the Gateway."""
        parents = (self.get(res, namespace, name).get("status") or {}).get("parents") or []
        return {
            each["parentRef"]["namespace"]: (condition["status"], condition["reason"], condition["message"])
            for each in parents
            if each["controllerName"] == OURS
            for condition in each["conditions"]
            if condition["type"] == "Accepted"
        }


def api_error(code: int = 403, message: str = "denied by a policy") -> StatusError:
    return StatusError(code, "Forbidden", message)


def run_in_world(main: Callable[[World], Coroutine[Any, Any, None]], **options: Any) -> World:
    """Runs `main` on a new world in virtual time."""
    world = World(**options)

    async def run() -> None:
        await main(world)

    run_virtual(run)
    return world


async def run_until_settled(world: World) -> None:
    """Runs a process until it has settled, and stops it."""
    async with world.running():
        pass
