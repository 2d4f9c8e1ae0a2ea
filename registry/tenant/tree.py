"""The tree of Tenants: who is whose parent, and what a Tenant has of its ancestors.

A Tenant's parent is the Tenant whose workload namespace it lives in. Names are never taken apart (R-050).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence

from apiserver.meta.resource import Key
from apiserver.storage.watch_cache import Event
from registry.multimap import Multimap
from registry.names import canonical_host
from registry.tenant.summary import TenantSummary, summarize
from registry.tenant.types import EffectiveGateway, EffectiveHost


class BaseTenantTree(ABC):
    """Tenants by where they live. Every walk ends, also in a tree that is damaged."""

    @property
    @abstractmethod
    def root_host(self) -> str:
        """The root's domain, where it has no host of its own."""

    @abstractmethod
    def by_namespace(self, namespace: str) -> TenantSummary | None:
        """The Tenant whose workload namespace this is."""

    @abstractmethod
    def children(self, namespace: str) -> Sequence[TenantSummary]:
        """The Tenants that live in this workload namespace, by name."""

    def parent(self, facts: TenantSummary) -> TenantSummary | None:
        """None for the root, and for a Tenant in a namespace that is no Tenant's."""
        found = self.by_namespace(facts.key.namespace)
        return found if found is not None and found.key != facts.key else None

    def ancestors(self, facts: TenantSummary) -> Sequence[TenantSummary]:
        """The parent, its parent and so on, nearest first."""
        found: dict[Key, TenantSummary] = {}
        parent = self.parent(facts)
        while parent is not None and parent.key not in found and parent.key != facts.key:
            found[parent.key] = parent
            parent = self.parent(parent)
        return tuple(found.values())

    def descendants(self, facts: TenantSummary) -> Sequence[TenantSummary]:
        """Children, their children and so on: a parent before its children, siblings by name."""
        found: dict[Key, TenantSummary] = {facts.key: facts}
        waiting = list(reversed(self.children(facts.namespace)))
        while waiting:
            each = waiting.pop()
            if each.key not in found:
                found[each.key] = each
                waiting.extend(reversed(self.children(each.namespace)))
        return tuple(found.values())[1:]


def effective_host(tree: BaseTenantTree, facts: TenantSummary) -> EffectiveHost | None:
    """`spec.host`, else <name>.<domain of the parent>; the root's is the platform's (R-054 to R-058); canonical.

    None for a Tenant without an ancestor that has a domain. The result may be longer than a label holds (FACT-6).
    """
    names: list[str] = []
    for each in (facts, *tree.ancestors(facts)):
        own = _own_host(each, tree.root_host)
        if own:
            return EffectiveHost(value=".".join([*names, own]), namespace=each.namespace)
        names.append(each.key.name)
    return None


def _own_host(facts: TenantSummary, root_host: str) -> str:
    return canonical_host(facts.host) or (root_host if facts.is_root else "")


def effective_gateway(tree: BaseTenantTree, facts: TenantSummary) -> EffectiveGateway:
    """The nearest of the Tenant and its ancestors that has `gateway: true`; false inherits like absent (PEER-09)."""
    for each in (facts, *tree.ancestors(facts)):
        if each.gateway:
            return EffectiveGateway(value=True, namespace=each.namespace)
    return EffectiveGateway(value=False, namespace="")


class TenantTree(BaseTenantTree):
    """An index that a watch cache keeps up to date, an event at a time: `cache.subscribe(tree.on_event)`."""

    def __init__(self, facts: Iterable[TenantSummary] = (), *, root_host: str = "") -> None:
        self._root_host = root_host
        self._facts: dict[Key, TenantSummary] = {}
        self._owners: Multimap[str, Key] = Multimap()
        self._children: dict[str, list[TenantSummary]] = {}
        self._host_of: dict[Key, str] = {}
        self._by_host: Multimap[str, Key] = Multimap()
        for each in facts:
            self.put(each)

    @property
    def root_host(self) -> str:
        return self._root_host

    def change_root_host(self, root_host: str) -> None:
        """Whoever follows the effective hosts has to be told apart from that."""
        self._root_host = root_host
        self._update_hosts(each for each in self if each.is_root)

    def on_event(self, event: Event) -> None:
        if event.type == "DELETED":
            self.remove(event.object.key)
        else:
            self.put(summarize(event.object.object(), event.object.key))

    def put(self, facts: TenantSummary) -> None:
        affected = self._forget(facts.key)
        self._facts[facts.key] = facts
        self._owners.add(facts.namespace, facts.key)
        # the root lives in its own workload namespace, and is nobody's child
        if facts.namespace != facts.key.namespace:
            _insert(self._children.setdefault(facts.key.namespace, []), facts)
        self._update_hosts([facts, *affected, *self.children(facts.namespace)])

    def remove(self, key: Key) -> None:
        affected = self._forget(key)
        self._set_host(key, "")
        self._update_hosts(affected)

    def get(self, key: Key) -> TenantSummary | None:
        return self._facts.get(key)

    def __iter__(self) -> Iterator[TenantSummary]:
        return iter(tuple(self._facts.values()))

    def __len__(self) -> int:
        return len(self._facts)

    def by_namespace(self, namespace: str) -> TenantSummary | None:
        """Should two Tenants of old have one workload namespace, it is the older one's."""
        owners = [self._facts[key] for key in self._owners[namespace]]
        return min(owners, key=lambda each: (each.created, each.key), default=None)

    def children(self, namespace: str) -> Sequence[TenantSummary]:
        # a copy: who walks it may let other events happen meanwhile
        return tuple(self._children.get(namespace, ()))

    def tenants_with_host(self, host: str) -> Sequence[TenantSummary]:
        """The Tenants whose effective host this is, in any spelling."""
        return tuple(self._facts[key] for key in sorted(self._by_host[canonical_host(host)]))

    def _forget(self, key: Key) -> Sequence[TenantSummary]:
        """Take a Tenant out; the children that it leaves behind."""
        old = self._facts.pop(key, None)
        if old is None:
            return ()
        siblings = self._children.get(key.namespace, [])
        self._owners.discard(old.namespace, key)
        _remove(siblings, key)
        if not siblings:
            self._children.pop(key.namespace, None)
        return self.children(old.namespace)

    def _update_hosts(self, changed: Iterable[TenantSummary]) -> None:
        """Bring the host index up to date, downwards from `changed` as far as hosts change."""
        waiting, seen = list(changed), set[Key]()
        while waiting:
            facts = waiting.pop()
            effective = effective_host(self, facts)
            host = effective.value if effective else ""
            if self._set_host(facts.key, host) and facts.key not in seen:
                waiting.extend(self.children(facts.namespace))
            seen.add(facts.key)

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


class ChangedTree(BaseTenantTree):
    """`tree` as it would be with one Tenant added or changed: what a write would lead to."""

    def __init__(self, tree: BaseTenantTree, changed: TenantSummary) -> None:
        self._tree = tree
        self._changed = changed

    @property
    def root_host(self) -> str:
        return self._tree.root_host

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


def _insert(siblings: list[TenantSummary], facts: TenantSummary) -> None:
    siblings.insert(bisect_left(siblings, facts.key, key=_by_key), facts)


def _remove(siblings: list[TenantSummary], key: Key) -> None:
    at = bisect_left(siblings, key, key=_by_key)
    if at < len(siblings) and siblings[at].key == key:
        del siblings[at]


def _by_key(facts: TenantSummary) -> Key:
    return facts.key
