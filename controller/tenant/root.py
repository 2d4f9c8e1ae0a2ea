"""Creates the root Tenant if it is missing: Namespace tenant-root, and in it HelmRelease tenant-root (R-057).

Its domain is the root host of the settings; its own `spec.host` stays empty.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Key, Object
from apiserver.storage.event_history import CacheEvent
from controller.runtime.apply import ClusterWriter, ForeignObject
from controller.runtime.workqueue import Enqueue
from controller.tenant.namespace_step import InheritedSettings, render_namespace
from registry.cluster.event_handlers import NoOpEventHandler
from registry.cluster.interface import HELMRELEASES, NAMESPACES, ClusterClient, is_terminating
from registry.cluster.object_store import ObjectLister
from registry.names import ROOT_NAME, ROOT_NAMESPACE, release_name
from registry.tenant.convert import NotATenant, tenant_key, to_release
from registry.tenant.inheritance import effective_services
from registry.tenant.release_settings import ReleaseSettings
from registry.tenant.summary import TenantSummary
from registry.tenant.tree import EffectiveHost, TenantTree

ROOT = Key(ROOT_NAMESPACE, ROOT_NAME)


def render_root_namespace(root_host: str) -> Object:
    host = EffectiveHost(value=root_host, namespace=ROOT_NAMESPACE) if root_host else None
    root = TenantSummary(key=ROOT, namespace=ROOT_NAMESPACE)
    return render_namespace(root, (), InheritedSettings(host=host, services=effective_services(root, ())))


def render_root_release(settings: ReleaseSettings) -> Object:
    tenant = {"metadata": {"name": ROOT_NAME, "namespace": ROOT_NAMESPACE}, "spec": {}}
    return to_release(tenant, None, settings)


class RootReconciler:
    """The reconciler of the one key ROOT. Nothing is created while the old Namespace is still being deleted."""

    def __init__(
        self,
        *,
        writer: ClusterWriter,
        cluster: ClusterClient,
        tree: TenantTree,
        namespaces: ObjectLister,
        settings: Callable[[], ReleaseSettings],
    ) -> None:
        self._writer = writer
        self._cluster = cluster
        self._tree = tree
        self._namespaces = namespaces
        self._settings = settings

    async def reconcile(self, key: Key) -> None:
        namespace = self._namespaces.get(Key("", ROOT_NAMESPACE))
        if namespace is None:
            namespace = await self._create_namespace()
        if not is_terminating(namespace) and self._tree.get(ROOT) is None:
            await self._create_release()

    async def _create_namespace(self) -> Object:
        try:
            return await self._writer.create(NAMESPACES, render_root_namespace(self._tree.root_host))
        except StatusError as e:
            if e.reason != "AlreadyExists":
                raise
            return await self._cluster.get(NAMESPACES, "", ROOT_NAMESPACE)

    async def _create_release(self) -> None:
        try:
            await self._writer.create(HELMRELEASES, render_root_release(self._settings()))
        except StatusError as e:
            if e.reason != "AlreadyExists":
                raise
            await self._check_existing()

    async def _check_existing(self) -> None:
        """Raises ForeignObject if the existing HelmRelease does not store a Tenant. If it does, the cache will have it
        soon."""
        name = release_name(ROOT_NAME)
        try:
            tenant_key(await self._cluster.get(HELMRELEASES, ROOT_NAMESPACE, name))
        except NotATenant as e:
            message = (
                f"HelmRelease {ROOT_NAMESPACE}/{name} exists without the labels of a tenant; add them, or delete it"
            )
            raise ForeignObject(message) from e


class RootEventHandler(NoOpEventHandler):
    """Enqueues the root Tenant when it or its Namespace is deleted: a listener of the Tenants' watch cache, and a
    handler of the informer of Namespaces."""

    def __init__(self, *, enqueue: Enqueue) -> None:
        self._enqueue = enqueue

    def on_event(self, event: CacheEvent) -> None:
        if event.type == "DELETED" and event.object.key == ROOT:
            self._enqueue(ROOT)

    async def replace(self, items: Sequence[Object], rv: int) -> None:
        self._enqueue(ROOT)

    def apply(self, type: str, obj: Object, rv: int) -> None:
        if type == "DELETED" and obj["metadata"]["name"] == ROOT_NAMESPACE:
            self._enqueue(ROOT)
