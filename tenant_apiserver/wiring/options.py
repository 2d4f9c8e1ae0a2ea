"""Builds the Options: the informers of what they are computed from, most of which a cluster may lack."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from typing import TypeVar

from apiserver.meta.resource import Object, Resource
from apiserver.storage.visibility import VisibilitySource
from apiserver.storage.watch_cache import WatchCache
from registry.application.identity import application_of
from registry.cluster.event_handlers import ProjectionByNamespace, RelistListener
from registry.cluster.informer_factory import InformerFactory
from registry.cluster.interface import APPLICATIONDEFINITIONS, NODES, ClusterClient, ClusterResource
from registry.cluster.shared_events import SharedEvents
from registry.option import items
from registry.option.items import Items
from registry.option.storage import Options, OptionSource
from registry.option.types import option_resource
from tenant_apiserver.wiring.releases import DISK, POOL_OWNER

KUBEVIRTS = ClusterResource("kubevirt.io", "v1", "kubevirts", "KubeVirt")
INSTANCETYPES = ClusterResource(
    "instancetype.kubevirt.io",
    "v1beta1",
    "virtualmachineclusterinstancetypes",
    "VirtualMachineClusterInstancetype",
    namespaced=False,
)
PREFERENCES = ClusterResource(
    "instancetype.kubevirt.io",
    "v1beta1",
    "virtualmachineclusterpreferences",
    "VirtualMachineClusterPreference",
    namespaced=False,
)
NETWORKS = ClusterResource("k8s.cni.cncf.io", "v1", "network-attachment-definitions", "NetworkAttachmentDefinition")
CLAIMS = ClusterResource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
STORAGECLASSES = ClusterResource("storage.k8s.io", "v1", "storageclasses", "StorageClass", namespaced=False)
BACKUPCLASSES = ClusterResource("backups.cozystack.io", "v1alpha1", "backupclasses", "BackupClass", namespaced=False)
PLANS = ClusterResource("backups.cozystack.io", "v1alpha1", "plans", "Plan")
BACKUPS = ClusterResource("backups.cozystack.io", "v1alpha1", "backups", "Backup")
OPTION_KINDS = (
    *(KUBEVIRTS, INSTANCETYPES, PREFERENCES, NETWORKS, CLAIMS, STORAGECLASSES),
    *(BACKUPCLASSES, PLANS, BACKUPS),
)
"""The kinds that nothing else reads."""
IMAGES_NAMESPACE = "cozy-public"
KUBEVIRT_NAMESPACE = "cozy-kubevirt"
DISK_SIZE = (DISK, "storage")
"""The kind and the field of the size of a disk."""

V = TypeVar("V", bound=Hashable)


class OptionSources:
    """The sources by name. `on_change` is called with the name of a source that has changed, and a namespace, and
    `on_known` with that of one that is known now. The caller runs `informers`."""

    def __init__(self, cluster: ClusterClient, releases: SharedEvents, *, disk_default: Callable[[], str]) -> None:
        """`releases` are the events of HelmReleases. `disk_default` returns the size of a VMDisk that names none."""
        self.informers = InformerFactory(cluster)
        self.on_change: Callable[[str, str], None] = _ignore
        self.on_known: Callable[[str], None] = _ignore_name
        self._releases = releases
        self._disk_default = disk_default
        self.by_name: dict[str, OptionSource] = {}
        self._add_cluster_wide()
        self._add_of_namespaces()

    def _add_cluster_wide(self) -> None:
        for name, kind in (
            ("instancetype", INSTANCETYPES),
            ("instanceprofile", PREFERENCES),
            ("backupclass", BACKUPCLASSES),
        ):
            self._add(name, kind, lambda obj: True, lambda values: items.named(values))
        self._add("storageclass", STORAGECLASSES, items.is_default_class, items.storage_classes)
        self._add(
            "appkind", APPLICATIONDEFINITIONS, items.application_kind, lambda values: items.named(values.values())
        )
        claims, known = self._follow("image", CLAIMS, lambda obj: True, fields=f"metadata.namespace={IMAGES_NAMESPACE}")
        self._put("image", lambda namespace: items.images(claims.values(IMAGES_NAMESPACE)), known)
        self._add_devices()

    def _add_devices(self) -> None:
        """Those of the first KubeVirt."""
        kubevirts, known = self._follow("gpu", KUBEVIRTS, items.permitted_devices)
        nodes, nodes_known = self._follow("gpu", NODES, items.extended_resources)

        def devices(namespace: str) -> Items:
            found = kubevirts.values(KUBEVIRT_NAMESPACE)
            first = found[min(found)] if found else ()
            return items.devices(first, {name: dict(amounts) for name, amounts in nodes.values("").items()})

        self._put("gpu", devices, lambda: known() and nodes_known())

    def _add_of_namespaces(self) -> None:
        for name, kind in (("network", NETWORKS), ("plan", PLANS), ("backup", BACKUPS)):
            self._add(name, kind, lambda obj: True, lambda values: items.named(values), namespaced=True)
        pools, known = self._follow_releases("storagepool", POOL_OWNER, items.pools)
        self._put(
            "storagepool",
            lambda namespace: items.named(pool for each in pools.values(namespace).values() for pool in each),
            known,
            namespaced=True,
        )
        disks, disks_known = self._follow_releases("vmdisk", DISK, _disk)

        def of_namespace(namespace: str) -> Items:
            default = self._disk_default()
            return items.disks({name: size or default for name, size in disks.values(namespace).values()})

        self._put("vmdisk", of_namespace, disks_known, namespaced=True)

    def _add(
        self,
        name: str,
        kind: ClusterResource,
        project: Callable[[Object], V | None],
        compute: Callable[..., Items],
        *,
        namespaced: bool = False,
    ) -> None:
        """A source that is computed from the objects of one kind, by name."""
        values, known = self._follow(name, kind, project)
        self._put(
            name,
            lambda namespace: compute(values.values(namespace if namespaced else "")),
            known,
            namespaced=namespaced,
        )

    def _put(
        self, name: str, compute: Callable[[str], Items], known: Callable[[], bool], *, namespaced: bool = False
    ) -> None:
        def of_namespace(namespace: str) -> Items:
            return compute(namespace) if namespace or not namespaced else ()

        self.by_name[name] = OptionSource(namespaced=namespaced, items=of_namespace, is_known=known)

    def _follow(
        self,
        name: str,
        kind: ClusterResource,
        project: Callable[[Object], V | None],
        *,
        fields: str = "",
    ) -> tuple[ProjectionByNamespace[V], Callable[[], bool]]:
        """The values of a kind, and whether they are known: a kind that the cluster lacks has no objects."""
        values, listed, on_listed = self._values(name, project)
        available = self.informers.watch_availability(
            kind.group,
            kind.kind,
            [kind.version],
            plural=kind.plural,
            namespaced=kind.namespaced,
            field_selector=fields,
        )

        def follow(resource: ClusterResource) -> None:
            informer = self.informers.get(resource, field_selector=fields, store_objects=False)
            informer.add_handler(values)
            informer.add_handler(RelistListener(on_listed))

        available.subscribe(follow)
        return values, lambda: listed.is_set() or (available.checked.is_set() and available.resource is None)

    def _follow_releases(
        self, name: str, kind: str, project: Callable[[Object], V | None]
    ) -> tuple[ProjectionByNamespace[V], Callable[[], bool]]:
        """The values of the HelmReleases of one kind of application, and whether they are known."""
        values, listed, on_listed = self._values(name, project)
        self._releases.subscribe(kind, values)
        self._releases.subscribe(kind, RelistListener(on_listed))
        return values, listed.is_set

    def _values(
        self, name: str, project: Callable[[Object], V | None]
    ) -> tuple[ProjectionByNamespace[V], asyncio.Event, Callable[[], None]]:
        """The values of a source, an event that is set once they are known, and the function that sets it."""
        listed = asyncio.Event()

        def on_listed() -> None:
            listed.set()
            self.on_known(name)

        values: ProjectionByNamespace[V] = ProjectionByNamespace(
            project, on_change=lambda key: self.on_change(name, key.namespace)
        )
        return values, listed, on_listed


def options(
    sources: OptionSources, *, visibility: VisibilitySource, new_cache: Callable[[Resource], WatchCache]
) -> Options:
    storage = Options(resource=option_resource(), sources=sources.by_name, visibility=visibility, new_cache=new_cache)
    sources.on_change, sources.on_known = storage.changed, storage.known
    return storage


def _disk(release: Object) -> tuple[str, str] | None:
    """Name and size of a VMDisk; the size is empty if the values name none."""
    found = application_of(release)
    return (found.name, items.disk_size(release, "")) if found is not None and found.kind == DISK else None


def _ignore(name: str, namespace: str) -> None:
    pass


def _ignore_name(name: str) -> None:
    pass
