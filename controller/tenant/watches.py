"""Event handlers that map a change in the cluster to the Tenants that it can affect, and enqueue them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Key, Object
from apiserver.storage.event_history import CacheEvent
from controller.runtime.workqueue import Enqueue
from controller.tenant.namespace_ownership import read_record
from registry.cluster.event_handlers import NoOpEventHandler, SyncingHandler
from registry.cluster.interface import is_terminating
from registry.cluster.object_store import ObjectLister
from registry.interned import interned
from registry.multimap import Multimap
from registry.tenant.inheritance import NO_SERVICES, Services, effective_scheduling_class, effective_services
from registry.tenant.summary import TenantSummary, summarize
from registry.tenant.tree import TenantTree, effective_gateway, effective_host


@dataclass(frozen=True, slots=True)
class _InheritedValues:
    """The values of a Tenant that depend on its ancestors."""

    host: str
    gateway: str
    services: Services
    scheduling_class: str
    ancestors: tuple[str, ...]


_NOTHING = _InheritedValues("", "", NO_SERVICES, "", ())


class TenantEventHandler:
    """A listener of the Tenants' watch cache. It must be subscribed after the tree, whose new state it compares with
    the previous one."""

    def __init__(self, *, tree: TenantTree, enqueue: Enqueue) -> None:
        self._tree = tree
        self._enqueue = enqueue
        self._inherited: dict[Key, _InheritedValues] = {}

    def on_event(self, event: CacheEvent) -> None:
        key = event.object.key
        self._enqueue(key)
        tenant = self._tree.get(key)
        if tenant is None:
            namespace = summarize(event.object.object()).namespace
            self._forget(key)
            successor = self._tree.by_namespace(namespace)
            if successor is not None:
                self._enqueue(successor.key)
            self._refresh(self._below(namespace))
        elif self._update(tenant):
            self._refresh(self._tree.descendants(tenant))

    def _below(self, namespace: str) -> Iterable[TenantSummary]:
        for child in self._tree.children(namespace):
            yield child
            yield from self._tree.descendants(child)

    def _refresh(self, tenants: Iterable[TenantSummary]) -> None:
        for tenant in tenants:
            if self._update(tenant):
                self._enqueue(tenant.key)

    def _update(self, tenant: TenantSummary) -> bool:
        """Record the values that the Tenant inherits; returns whether they have changed."""
        host = effective_host(self._tree, tenant)
        ancestors = self._tree.ancestors(tenant)
        now = _InheritedValues(
            interned(host.value) if host is not None else "",
            effective_gateway(self._tree, tenant).namespace,
            effective_services(tenant, ancestors),
            effective_scheduling_class(tenant, ancestors),
            tuple(each.namespace for each in ancestors),
        )
        before = self._inherited.get(tenant.key, _NOTHING)
        self._inherited[tenant.key] = now
        if before.host != now.host:
            self._enqueue_tenants_with_host(before.host, now.host)
        return before != now

    def _forget(self, key: Key) -> None:
        self._enqueue_tenants_with_host(self._inherited.pop(key, _NOTHING).host)

    def _enqueue_tenants_with_host(self, *hosts: str) -> None:
        """Enqueue the Tenants with one of these hosts: they may have started or stopped sharing it."""
        for host in hosts:
            for each in self._tree.tenants_with_host(host) if host else ():
                self._enqueue(each.key)


class NamespaceEventHandler(SyncingHandler):
    """A handler of the informer of Namespaces, which also indexes Namespaces by the Tenant that their record names."""

    def __init__(self, *, tree: TenantTree, namespaces: ObjectLister, enqueue: Enqueue) -> None:
        """`namespaces` must be the store of the same informer."""
        self._tree = tree
        self._namespaces = namespaces
        self._enqueue = enqueue
        self._tenant_of: dict[str, Key | None] = {}
        self._recorded: Multimap[Key, str] = Multimap()

    def recorded(self, tenant: Key) -> Sequence[Object]:
        """The Namespaces whose record names this Tenant, sorted by name."""
        found = (self._namespaces.get(Key("", name)) for name in sorted(self._recorded[tenant]))
        return [namespace for namespace in found if namespace is not None]

    def tenant_of(self, namespace: str) -> Key | None:
        """The Tenant that the record of this Namespace names."""
        return self._tenant_of.get(namespace)

    def tenants(self) -> Iterable[Key]:
        """Every Tenant that a record names, whether or not it exists."""
        return iter(self._recorded)

    def _known_keys(self) -> Iterable[Key]:
        return (Key("", name) for name in self._tenant_of)

    def _sync(self, key: Key, obj: Object | None) -> None:
        name = key.name
        # children refer to their parent's Namespace by its uid, and are deleted with it
        children = obj is None or name not in self._tenant_of or is_terminating(obj)
        self._enqueue_affected(name, children=children)
        if obj is None:
            self._index(name, None)
            self._tenant_of.pop(name, None)
            return
        record = read_record(obj)
        self._index(name, record.tenant if record is not None else None)
        self._enqueue_affected(name, children=False)

    def _enqueue_affected(self, name: str, *, children: bool) -> None:
        owner = self._tree.by_namespace(name)
        if owner is not None:
            self._enqueue(owner.key)
        recorded = self._tenant_of.get(name)
        if recorded is not None:
            self._enqueue(recorded)
        for child in self._tree.children(name) if children else ():
            self._enqueue(child.key)

    def _index(self, name: str, tenant: Key | None) -> None:
        before = self._tenant_of.get(name)
        if before is not None and before != tenant:
            self._recorded.discard(before, name)
        self._tenant_of[name] = tenant
        if tenant is not None:
            self._recorded.add(tenant, name)


class TenantGatewayServedHandler(NoOpEventHandler):
    """A handler of the informer of TenantGateways: when the cluster starts to serve the kind, it enqueues every Tenant
    that has a Gateway of its own."""

    def __init__(self, *, tree: TenantTree, enqueue: Enqueue) -> None:
        self._tree = tree
        self._enqueue = enqueue

    async def replace(self, items: Sequence[Object], rv: int) -> None:
        self._enqueue_all()

    def set_cluster_error(self, error: StatusError | None) -> None:
        if error is None:
            self._enqueue_all()

    def _enqueue_all(self) -> None:
        for tenant in self._tree:
            if tenant.gateway:
                self._enqueue(tenant.key)


class TenantEnqueuer:
    """Maps a Namespace whose contents have changed to the Tenants that have to be reconciled."""

    def __init__(self, *, tree: TenantTree, enqueue: Enqueue) -> None:
        self.tree = tree
        self.add = enqueue

    def enqueue_owner(self, key: Key) -> None:
        """Enqueue the Tenant in whose workload namespace this object is."""
        owner = self.tree.by_namespace(key.namespace)
        if owner is not None:
            self.add(owner.key)

    def enqueue_heirs(self, namespace: str) -> None:
        """Enqueue the children of that Tenant. The root is enqueued as well: it inherits values from its own
        Secret."""
        owner = self.tree.by_namespace(namespace)
        if owner is not None and owner.is_root:
            self.add(owner.key)
        for child in self.tree.children(namespace):
            self.add(child.key)

    def enqueue_all(self) -> None:
        for tenant in self.tree:
            self.add(tenant.key)
