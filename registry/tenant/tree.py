"""The tree of Tenants: parents, children, and the domains and Gateways that are inherited.

The parent of a Tenant is the Tenant in whose workload namespace it is stored. Names are never parsed (R-050).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from apiserver.meta.resource import Key, Object
from registry.interned import interned
from registry.multimap import Multimap
from registry.names import MAX_HOST, canonical_host
from registry.tenant.quota_keys import EQUAL, AllocationRatios
from registry.tenant.summary import TenantSummary, summarize

if TYPE_CHECKING:
    # the kubectl plugin uses the tree without the modules of a server
    from apiserver.storage.event_history import CacheEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectiveHost:
    """A tenant's domain, and the workload namespace of the tenant that defines it."""

    value: str
    namespace: str

    def as_object(self) -> Object:
        return {"value": self.value, "namespace": self.namespace}


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectiveGateway:
    """True if a Gateway serves the tenant, and the workload namespace of the tenant that provides it, empty if none
    does."""

    value: bool
    namespace: str

    def as_object(self) -> Object:
        return {"value": self.value, "namespace": self.namespace}


class BaseTenantTree(ABC):
    """Tenants by the namespace they are stored in. Every traversal ends, even if the data has cycles."""

    @property
    @abstractmethod
    def root_host(self) -> str:
        """The domain of the root Tenant if it has no host of its own."""

    @property
    def ratios(self) -> AllocationRatios:
        """The platform's ratios of limits to requests, which quotas are compared with."""
        return EQUAL

    @abstractmethod
    def by_namespace(self, namespace: str) -> TenantSummary | None:
        """The Tenant with this workload namespace."""

    @abstractmethod
    def children(self, namespace: str) -> Sequence[TenantSummary]:
        """The Tenants that are stored in this workload namespace, sorted by name."""

    def alternatives(self, tenant: TenantSummary) -> Sequence[TenantSummary]:
        """The Tenant as it is, and as writes that are under way may change it."""
        return (tenant,)

    def parent(self, tenant: TenantSummary) -> TenantSummary | None:
        """The parent; None for the root and for a Tenant in a namespace without a Tenant."""
        found = self.by_namespace(tenant.key.namespace)
        return found if found is not None and found.key != tenant.key else None

    def ancestors(self, tenant: TenantSummary) -> Sequence[TenantSummary]:
        """The parent, its parent and so on, nearest first."""
        found: dict[Key, TenantSummary] = {}
        parent = self.parent(tenant)
        while parent is not None and parent.key not in found and parent.key != tenant.key:
            found[parent.key] = parent
            parent = self.parent(parent)
        return tuple(found.values())

    def descendants(self, tenant: TenantSummary) -> Sequence[TenantSummary]:
        """Children, their children and so on: parents before their children, siblings sorted by name."""
        found: dict[Key, TenantSummary] = {tenant.key: tenant}
        waiting = list(reversed(self.children(tenant.namespace)))
        while waiting:
            each = waiting.pop()
            if each.key not in found:
                found[each.key] = each
                waiting.extend(reversed(self.children(each.namespace)))
        return tuple(found.values())[1:]


def effective_host(tree: BaseTenantTree, tenant: TenantSummary) -> EffectiveHost | None:
    """`spec.host`, or else <name>.<domain of the parent>, or the platform's for the root; canonical (R-054 to R-058).

    None if neither the Tenant nor an ancestor has a domain. The result may exceed the length of a label (FACT-6).
    """
    names: list[str] = []
    for each in (tenant, *tree.ancestors(tenant)):
        own = _own_host(each, tree.root_host)
        if own:
            return EffectiveHost(value=".".join([*names, own]), namespace=each.namespace)
        names.append(each.key.name)
    return None


def possible_hosts(tree: BaseTenantTree, tenant: TenantSummary) -> Set[str]:
    """The effective hosts that the Tenant may have, whichever writes of the tree's alternatives are stored."""
    hosts, names = set[str](), list[str]()
    for each in (tenant, *tree.ancestors(tenant)):
        own = [_own_host(alternative, tree.root_host) for alternative in tree.alternatives(each)]
        hosts.update(".".join([*names, host]) for host in own if host)
        if all(own):
            break
        names.append(each.key.name)
    return hosts


def _own_host(tenant: TenantSummary, root_host: str) -> str:
    # a longer host, with its dot, is no domain; it was written to a HelmRelease, and all descendants would repeat it
    return canonical_host(tenant.host[: MAX_HOST + 2]) or (root_host if tenant.is_root else "")


def effective_gateway(tree: BaseTenantTree, tenant: TenantSummary) -> EffectiveGateway:
    """The nearest of the Tenant and its ancestors with `gateway: true`; false inherits like no value (PEER-09)."""
    for each in (tenant, *tree.ancestors(tenant)):
        if each.gateway:
            return EffectiveGateway(value=True, namespace=each.namespace)
    return EffectiveGateway(value=False, namespace="")


class TenantTree(BaseTenantTree):
    """The current tree, updated by the events of a watch cache: `cache.subscribe(tree.on_event)`."""

    def __init__(
        self, tenants: Iterable[TenantSummary] = (), *, root_host: str = "", ratios: AllocationRatios = EQUAL
    ) -> None:
        self._root_host = root_host
        self._ratios = ratios
        self._tenants: dict[Key, TenantSummary] = {}
        self._owners: Multimap[str, Key] = Multimap()
        self._children: dict[str, list[TenantSummary]] = {}
        self._host_of: dict[Key, str] = {}
        self._by_host: Multimap[str, Key] = Multimap()
        for each in tenants:
            self.put(each)

    @property
    def root_host(self) -> str:
        return self._root_host

    @property
    def ratios(self) -> AllocationRatios:
        return self._ratios

    def change_ratios(self, ratios: AllocationRatios) -> None:
        """The caller notifies components that depend on quotas."""
        self._ratios = ratios

    def change_root_host(self, root_host: str) -> None:
        """Changes the domain of the platform. The caller notifies components that depend on effective hosts."""
        self._root_host = root_host
        self._update_hosts(each for each in self if each.is_root)

    def on_event(self, event: CacheEvent) -> None:
        if event.type == "DELETED":
            self.remove(event.object.key)
        else:
            tenant = summarize(event.object.object(), event.object.key)
            self.put(_still_foreground(tenant, self._tenants.get(tenant.key)))

    def put(self, tenant: TenantSummary) -> None:
        affected = self._forget(tenant.key)
        self._tenants[tenant.key] = tenant
        self._owners.add(tenant.namespace, tenant.key)
        # the root is stored in its own workload namespace, and is not a child
        if tenant.namespace != tenant.key.namespace:
            _insert(self._children.setdefault(tenant.key.namespace, []), tenant)
        self._update_hosts([tenant, *affected, *self.children(tenant.namespace)])

    def remove(self, key: Key) -> None:
        affected = self._forget(key)
        self._set_host(key, "")
        self._update_hosts(affected)

    def get(self, key: Key) -> TenantSummary | None:
        return self._tenants.get(key)

    def __iter__(self) -> Iterator[TenantSummary]:
        return iter(tuple(self._tenants.values()))

    def __len__(self) -> int:
        return len(self._tenants)

    def by_namespace(self, namespace: str) -> TenantSummary | None:
        """The Tenant with this workload namespace, the older one if two existing Tenants share it."""
        keys = self._owners[namespace]
        if len(keys) == 1:
            # nearly always, and a write needs some twenty of them
            (key,) = keys
            return self._tenants[key]
        return next(iter(self.all_by_namespace(namespace)), None)

    def all_by_namespace(self, namespace: str) -> Sequence[TenantSummary]:
        """The Tenants with this workload namespace, the oldest first: more than one only if somebody wrote their
        HelmReleases without admission."""
        owners = (self._tenants[key] for key in self._owners[namespace])
        return sorted(owners, key=lambda each: (each.created, each.key))

    def children(self, namespace: str) -> Sequence[TenantSummary]:
        # a copy, because the tree may change while a caller iterates
        return tuple(self._children.get(namespace, ()))

    def tenants_with_host(self, host: str) -> Sequence[TenantSummary]:
        """The Tenants with this effective host, which need not be canonical."""
        return tuple(self._tenants[key] for key in sorted(self._by_host[canonical_host(host)]))

    def _forget(self, key: Key) -> Sequence[TenantSummary]:
        """Removes a Tenant from the indexes and returns its children."""
        old = self._tenants.pop(key, None)
        if old is None:
            return ()
        siblings = self._children.get(key.namespace, [])
        self._owners.discard(old.namespace, key)
        _remove(siblings, key)
        if not siblings:
            self._children.pop(key.namespace, None)
        return self.children(old.namespace)

    def _update_hosts(self, changed: Iterable[TenantSummary]) -> None:
        """Updates the host index for `changed`, and for descendants as long as hosts change."""
        waiting, seen = list(changed), set[Key]()
        while waiting:
            tenant = waiting.pop()
            effective = effective_host(self, tenant)
            host = interned(effective.value) if effective else ""
            if self._set_host(tenant.key, host) and tenant.key not in seen:
                waiting.extend(self.children(tenant.namespace))
            seen.add(tenant.key)

    def _set_host(self, key: Key, host: str) -> bool:
        old = self._host_of.pop(key, "")
        if host:
            self._host_of[key] = host
        if old == host:
            return False
        self._by_host.discard(old, key)
        if host:
            self._by_host.add(host, key)
        return True


class DerivedTree(BaseTenantTree):
    """`tree` as it is; subclasses change what it has."""

    def __init__(self, tree: BaseTenantTree) -> None:
        self._tree = tree

    @property
    def root_host(self) -> str:
        return self._tree.root_host

    @property
    def ratios(self) -> AllocationRatios:
        return self._tree.ratios

    def by_namespace(self, namespace: str) -> TenantSummary | None:
        return self._tree.by_namespace(namespace)

    def children(self, namespace: str) -> Sequence[TenantSummary]:
        return self._tree.children(namespace)


class ChangedTree(DerivedTree):
    """`tree` with one Tenant added or changed, as after a write."""

    def __init__(self, tree: BaseTenantTree, changed: TenantSummary) -> None:
        super().__init__(tree)
        self._changed = changed

    def by_namespace(self, namespace: str) -> TenantSummary | None:
        found = self._tree.by_namespace(namespace)
        if found is not None and found.key != self._changed.key:
            return found
        return self._changed if namespace == self._changed.namespace else None

    def children(self, namespace: str) -> Sequence[TenantSummary]:
        changed, found = self._changed, self._tree.children(namespace)
        if changed.key.namespace != namespace:
            return found
        siblings = list(found)
        _remove(siblings, changed.key)
        if changed.namespace != namespace:
            _insert(siblings, changed)
        return siblings

    def alternatives(self, tenant: TenantSummary) -> Sequence[TenantSummary]:
        return (self._changed,) if tenant.key == self._changed.key else self._tree.alternatives(tenant)


def _still_foreground(tenant: TenantSummary, before: TenantSummary | None) -> TenantSummary:
    """A deletion that began in the foreground stays so. The garbage collector removes its finalizer as soon as no
    dependent object blocks it, and child Tenants are not dependents: they are in another namespace."""
    if before is None or not before.foreground or tenant.foreground or not tenant.terminating:
        return tenant
    return replace(tenant, foreground=True) if before.uid == tenant.uid else tenant


def _insert(siblings: list[TenantSummary], tenant: TenantSummary) -> None:
    siblings.insert(bisect_left(siblings, tenant.key, key=_by_key), tenant)


def _remove(siblings: list[TenantSummary], key: Key) -> None:
    at = bisect_left(siblings, key, key=_by_key)
    if at < len(siblings) and siblings[at].key == key:
        del siblings[at]


def _by_key(tenant: TenantSummary) -> Key:
    return tenant.key
