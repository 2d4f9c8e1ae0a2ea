"""A fake cluster with the controllers of Tenants and of the root, in the wiring of the process; time is virtual."""

from __future__ import annotations

import asyncio
import base64
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import yaml

from admission.chain import ignore_observation
from apiserver.authorization.authorizer import PrivilegedGroups
from apiserver.meta.resource import Object
from apiserver.metrics import Metrics
from apiserver.patch.media_types import MERGE_PATCH
from controller.platform.settings import PlatformSettings, ReloadableSettings
from controller.platform.sources import PlatformSources
from controller.runtime.apply import ClusterWriter
from controller.runtime.event_recorder import Event, Recorder, Regarding
from controller.runtime.manager import ControllerManager, Runnable
from controller.runtime.workqueue_metrics import WorkQueueMetrics
from controller.runtime.write_gate import OpenGate
from controller.tenant.managed_objects import ObjectDigests
from controller.tenant.values_secret_step import InheritedValues
from registry.cluster.informer_factory import InformerFactory
from registry.cluster.interface import CLUSTERROLES, HELMRELEASES, NAMESPACES, SECRETS, ClusterResource
from registry.names import CASCADE_ANNOTATION, release_name, stored_key
from registry.tenant.cluster_roles import TENANT_ROLES
from registry.tenant.convert import to_tenant
from tenant_apiserver.wiring.claims import Replica
from tenant_apiserver.wiring.controllers import ControllerContext, root_controller
from tenant_apiserver.wiring.gateway_controller import GatewayControllers
from tenant_apiserver.wiring.platform_package import follow_cluster
from tenant_apiserver.wiring.publishing import publishing_guard
from tenant_apiserver.wiring.tenant_api import TenantApiConfig, tenant_api
from tenant_apiserver.wiring.tenant_controller import tenant_controller
from tests.fake_cluster import FakeCluster
from tests.tenant_objects import ROOT_HOST, release

# FakeCluster creates every object at this time.
NOW = datetime(2026, 1, 1, tzinfo=UTC)
_LABEL_PREFIX = "namespace.cozystack.io/"
_SETTLE_SECONDS = 30.0


class Settings(ReloadableSettings):
    def notify(self) -> None:
        """Call the subscribers as after a change, which makes the controllers look at every tenant."""
        for callback in self._callbacks:
            callback()


class RecordedEvents(Recorder):
    """The recorded events, in their order: the name of the tenant, and the type, reason and note of the event."""

    def __init__(self) -> None:
        self.all: list[tuple[str, str, str, str]] = []

    def record(self, regarding: Regarding, event: Event) -> None:
        self.all.append((regarding.name, event.type, event.reason, event.note))

    def of(self, name: str) -> list[tuple[str, str]]:
        """(type, reason) of the events of a tenant."""
        return [(type_, reason) for tenant, type_, reason, _ in self.all if tenant == name]


def _seconds() -> float:
    return asyncio.get_running_loop().time()


class World:
    """`settings` are sections of the platform's settings file."""

    def __init__(
        self,
        cluster: FakeCluster | None = None,
        *,
        settings: Mapping[str, Any] | None = None,
        root_host: str = ROOT_HOST,
        without_roles: Sequence[str] = (),
        enforces_quotas: bool = False,
        has_replicas: bool = False,
        with_gateways: bool = False,
        leads: bool = True,
    ) -> None:
        """`without_roles` are ClusterRoles of tenants that do not exist. With `enforces_quotas`, quotas are waited for
        until a quota controller has put them into effect. With `has_replicas`, other processes may serve Tenants.
        `with_gateways`, the controller of TenantGateways runs, too. One that does not lead writes nothing."""
        metrics = Metrics()
        replica = Replica(identity="one", namespace="cozy-system", metrics=metrics.registry, clock=_seconds)
        self.cluster = cluster or FakeCluster()
        for role in set(TENANT_ROLES) - set(without_roles):
            if self.cluster.peek(CLUSTERROLES, "", role) is None:
                self.cluster.add(CLUSTERROLES, {"metadata": {"name": role}})
        self.settings = Settings(PlatformSettings.model_validate(settings or {}))
        self.sources = PlatformSources(self.settings)
        self.events = RecordedEvents()
        self.now = NOW
        self._tenants = tenant_api(
            TenantApiConfig(
                cluster=self.cluster,
                settings=self.settings,
                root_host=root_host,
                authorizer=PrivilegedGroups(),
                observe=ignore_observation,
                cluster_admission=lambda _: (),
                admission_informers=(),
                replica=replica if has_replicas else None,
            )
        )
        follow_cluster(self._tenants, self.sources)
        self.tree = self._tenants.tree
        self.writer = ClusterWriter(cluster=self.cluster, gate=OpenGate(), caches=self._tenants.object_caches)
        self.cache = self._tenants.cache
        self._informers = InformerFactory(self.cluster, shared=self._tenants.informers)
        self.publishing = publishing_guard(
            tenants=self._tenants, settings=self.settings, informers=self._informers, registry=metrics.registry
        )
        queues = WorkQueueMetrics(metrics.registry)
        context = ControllerContext(
            cluster=self.cluster, tenants=self._tenants, settings=self.settings, metrics=metrics
        )
        self.planner = self._tenants.planner
        self._controllers: list[Runnable] = [
            tenant_controller(
                cluster=self.cluster,
                tenants=self._tenants,
                settings=self.settings,
                informers=self._informers,
                writer=self.writer,
                queues=queues,
                recorder=self.events,
                problems=self.sources,
                enforces_quotas=enforces_quotas,
                publishing=self.publishing,
                now=lambda: self.now,
            ),
            root_controller(context, self.writer, queues),
        ]
        if with_gateways:
            self._controllers.append(
                GatewayControllers(
                    tenants=self._tenants,
                    settings=self.settings,
                    informers=self._informers,
                    writer=self.writer,
                    queues=queues,
                    recorder=self.events,
                )
            )
        if not leads:
            self._controllers.clear()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run the informers, and the controllers once all has been observed. Leaves when everything has settled."""
        tasks = [asyncio.create_task(each.run()) for each in self._tenants.informers]
        tasks += [asyncio.ensure_future(run()) for run in (self._informers.run, *self._tenants.tasks.values())]
        await self.settle()
        tasks.append(asyncio.create_task(ControllerManager(controllers=self._controllers).run()))
        try:
            await self.settle()
            yield
            await self.settle()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    async def settle(self, seconds: float = _SETTLE_SECONDS) -> None:
        await asyncio.sleep(seconds)

    async def reconcile_all(self) -> None:
        """Reconcile every tenant once more."""
        self.settings.notify()
        await self.settle()

    def configure(self, **sections: Any) -> None:
        """Replace the settings by these sections and defaults."""
        self.settings.replace(PlatformSettings.model_validate(sections))

    async def forget_contents(self) -> None:
        """Empty the indexes of the contents of namespaces, as if none had been observed yet."""
        for informer in (*self._tenants.informers, *self._informers.all):
            for handler in (*informer._handlers, *informer._late_handlers):
                if isinstance(handler, ObjectDigests | InheritedValues):
                    await handler.replace([], 0)

    async def create(self, name: str, namespace: str = "tenant-root", **spec: Any) -> None:
        await self.cluster.create(HELMRELEASES, release(name, namespace, spec=spec, finalizer=True))

    async def change(self, name: str, namespace: str = "tenant-root", **spec: Any) -> None:
        await self.edit(HELMRELEASES, namespace, release_name(name), {"spec": {"values": spec}})

    async def delete(self, name: str, namespace: str = "tenant-root", *, cascade: bool = False) -> None:
        """Delete the HelmRelease, with `cascade` after the annotation has been set."""
        if cascade:
            annotations = {stored_key(CASCADE_ANNOTATION): "true"}
            await self.edit(HELMRELEASES, namespace, release_name(name), {"metadata": {"annotations": annotations}})
        await self.cluster.delete(HELMRELEASES, namespace, release_name(name))

    async def edit_namespace(self, name: str, metadata: Mapping[str, Any]) -> None:
        await self.edit(NAMESPACES, "", name, {"metadata": dict(metadata)})

    async def edit(self, res: ClusterResource, namespace: str, name: str, body: Object) -> None:
        await self.cluster.patch(res, namespace, name, body, content_type=MERGE_PATCH)

    def content(self, res: ClusterResource, namespace: str, name: str) -> Object:
        found = self.cluster.peek(res, namespace, name)
        assert found is not None, f"there is no {res.kind} {namespace}/{name}"
        return found

    def values(self, namespace: str) -> dict[str, Any]:
        """values.yaml of the Secret."""
        text = base64.b64decode(self.content(SECRETS, namespace, "cozystack-values")["data"]["values.yaml"])
        document: dict[str, Any] = yaml.load(text, Loader=yaml.CSafeLoader)
        return document

    def namespace(self, name: str) -> Object:
        return self.content(NAMESPACES, "", name)

    def labels(self, name: str) -> dict[str, str]:
        labels: dict[str, str] = self.namespace(name)["metadata"]["labels"]
        return labels

    def services(self, name: str) -> dict[str, str]:
        """The labels namespace.cozystack.io/* without the host, by the names of the services."""
        labels = self.labels(name)
        found = {
            key.removeprefix(_LABEL_PREFIX): value for key, value in labels.items() if key.startswith(_LABEL_PREFIX)
        }
        found.pop("host", None)
        return found

    def tenant(self, name: str, namespace: str = "tenant-root") -> Object:
        return to_tenant(self.content(HELMRELEASES, namespace, release_name(name)))

    def conditions(self, name: str, namespace: str = "tenant-root") -> dict[str, tuple[str, str]]:
        """(status, reason) by type."""
        found = self.tenant(name, namespace)["status"].get("conditions", [])
        return {each["type"]: (each["status"], each["reason"]) for each in found}

    def count_writes(self) -> Counter[tuple[str, str]]:
        """The number of writes by (verb, plural)."""
        return Counter((verb, plural) for verb, plural, _ in self.writes())

    def writes(self, *kinds: ClusterResource) -> list[tuple[str, str, str]]:
        """(verb, plural, name) of the writes, in their order; with `kinds`, only those of these kinds."""
        return [
            (write.verb, write.resource.plural, write.key.name)
            for write in self.cluster.writes
            if not kinds or write.resource in kinds
        ]
