"""Indexes of watched objects by TenantGateway, so that a change enqueues only the TenantGateways concerned (GW-19)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from apiserver.meta.resource import Key, Object
from controller.runtime.own_writes import OwnWrites
from controller.runtime.workqueue import Enqueue
from controller.tenantgateway import parse
from controller.tenantgateway.model import InheritingNamespace, RouteNamespace, TenantGateway
from controller.tenantgateway.parse import ParsedTenantGateway
from registry.cluster.event_handlers import ProjectionStore
from registry.cluster.object_store import key_of, version_of
from registry.interned import interned
from registry.multimap import Multimap
from registry.names import GATEWAY_ATTACHED_BY_ANNOTATION, GATEWAY_LABEL, HOST_LABEL

EnqueueNamespace = Callable[[str], None]
LabelsListener = Callable[[RouteNamespace, RouteNamespace], None]


class TenantGatewayIndex:
    """All TenantGateways by key, by namespace, and by the namespaces that they list in attachedNamespaces.

    `enqueue_namespace` is called for a namespace when the TenantGateways that list it change.
    """

    def __init__(self, *, enqueue: Enqueue, enqueue_namespace: EnqueueNamespace) -> None:
        self._enqueue = enqueue
        self._enqueue_namespace = enqueue_namespace
        self._own_writes: OwnWrites[Key, Object] = OwnWrites()
        self._by_key: dict[Key, ParsedTenantGateway] = {}
        self._in_namespace: Multimap[str, Key] = Multimap()
        self._claimants: Multimap[str, Key] = Multimap()
        self.handler = ProjectionStore[Object](project=lambda obj: obj, on_change=self._changed)

    def get(self, key: Key) -> Object | None:
        """The last observed object, or our own newer write of it. The caller must not modify it."""
        observed = self.handler.get(key)
        if observed is None:
            return None
        return self._own_writes.newer_than(key, version_of(observed)) or observed

    def record_write(self, obj: Object) -> None:
        """Remembers the result of our own write until the informer delivers it."""
        self._own_writes.record(key_of(obj), version_of(obj), obj)

    def parsed(self, key: Key) -> ParsedTenantGateway | None:
        return self._by_key.get(key)

    def is_active(self, key: Key) -> bool:
        """True if a TenantGateway of this key exists and is not being deleted."""
        parsed = self._by_key.get(key)
        return parsed is not None and not parsed.gateway.terminating

    def __iter__(self) -> Iterator[Key]:
        return iter(tuple(self._by_key))

    def in_namespace(self, namespace: str) -> Collection[Key]:
        return self._in_namespace[namespace]

    def claimants(self, namespace: str) -> Sequence[TenantGateway]:
        """The TenantGateways that list a namespace in attachedNamespaces, in the order of their keys."""
        return [self._by_key[key].gateway for key in sorted(self._claimants[namespace])]

    def listed_namespaces(self) -> Iterable[str]:
        """All namespaces that some TenantGateway lists in attachedNamespaces."""
        return iter(self._claimants)

    def _changed(self, key: Key, before: Object | None, now: Object | None) -> None:
        former = self._by_key.pop(key, None)
        parsed = parse.tenantgateway(now) if now is not None else None
        if parsed is not None:
            self._by_key[key] = parsed
            self._in_namespace.add(key.namespace, key)
        else:
            self._in_namespace.discard(key.namespace, key)
        self._update_claimants(key, former, parsed)
        self._enqueue(key)

    def _update_claimants(
        self, key: Key, former: ParsedTenantGateway | None, parsed: ParsedTenantGateway | None
    ) -> None:
        before, now = _attached_namespaces(former), _attached_namespaces(parsed)
        for namespace in before - now:
            self._claimants.discard(namespace, key)
        for namespace in now - before:
            self._claimants.add(namespace, key)
        for namespace in before ^ now:
            self._enqueue_namespace(namespace)


def _attached_namespaces(parsed: ParsedTenantGateway | None) -> frozenset[str]:
    return frozenset(parsed.gateway.attached) if parsed is not None and not parsed.gateway.terminating else frozenset()


class _NamespaceLabels(NamedTuple):
    """The indexed part of a Namespace: the gateway owner that it inherits from, its two labels, and the annotation."""

    owner: str
    inheriting_namespace: InheritingNamespace | None
    label: str
    host: str
    attached_by: str


_NO_LABELS = _NamespaceLabels("", None, "", "", "")


class NamespaceIndex:
    """Namespaces by the gateway owner that their label names (R-104, R-105, GW-1)."""

    def __init__(
        self, *, tenantgateways: TenantGatewayIndex, enqueue: Enqueue, enqueue_namespace: EnqueueNamespace
    ) -> None:
        self._tenantgateways = tenantgateways
        self._enqueue = enqueue
        self._enqueue_namespace = enqueue_namespace
        self._inheriting: dict[str, dict[str, InheritingNamespace]] = {}
        self._on_labels: list[LabelsListener] = []
        self.handler = ProjectionStore[_NamespaceLabels](project=_namespace_labels, on_change=self._changed)

    def inheriting(self, owner: str) -> Sequence[InheritingNamespace]:
        return [inheriting_namespace for _, inheriting_namespace in sorted(self._inheriting.get(owner, {}).items())]

    def labels(self, name: str) -> RouteNamespace:
        """The labels of a Namespace, which may not exist."""
        return _route_namespace(name, self.handler.get(Key("", name)))

    def is_known(self, name: str) -> bool:
        """False for a Namespace that does not exist, or whose event has not arrived."""
        return self.handler.get(Key("", name)) is not None

    def with_changes(self, namespaces: Mapping[str, Object]) -> ChangedNamespaces:
        """The Namespaces with those that differ, by name."""
        return ChangedNamespaces(self, {name: _namespace_labels(each) for name, each in namespaces.items()})

    def subscribe(self, on_labels: LabelsListener) -> None:
        """`on_labels` is called with the labels of a Namespace before and after a change, and when it appears."""
        self._on_labels.append(on_labels)

    def attached(self) -> Iterable[str]:
        """The Namespaces with the annotation that this controller sets on attached ones."""
        return [key.name for key, labels in self.handler.items() if labels.attached_by]

    def _changed(self, key: Key, before: _NamespaceLabels | None, now: _NamespaceLabels | None) -> None:
        if _inheritance(before) != _inheritance(now):
            for labels in (before, now):
                self._enqueue_owners(labels)
            if before is not None and before.inheriting_namespace is not None:
                self._drop(before.owner, key.name)
            if now is not None and now.inheriting_namespace is not None:
                self._inheriting.setdefault(now.owner, {})[key.name] = now.inheriting_namespace
        self._enqueue_namespace(key.name)
        old, new = _route_namespace(key.name, before), _route_namespace(key.name, now)
        if before is None or old != new:
            for on_labels in self._on_labels:
                on_labels(old, new)

    def _enqueue_owners(self, labels: _NamespaceLabels | None) -> None:
        if labels is not None and labels.inheriting_namespace is not None:
            for gateway in self._tenantgateways.in_namespace(labels.owner):
                self._enqueue(gateway)

    def _drop(self, owner: str, namespace: str) -> None:
        namespaces = self._inheriting[owner]
        del namespaces[namespace]
        if not namespaces:
            del self._inheriting[owner]


class ChangedNamespaces:
    """Namespaces as they are, and some as they would be."""

    def __init__(self, index: NamespaceIndex, changed: Mapping[str, _NamespaceLabels]) -> None:
        self._index = index
        self._changed = changed

    def inheriting(self, owner: str) -> Sequence[InheritingNamespace]:
        found = {each.namespace: each for each in self._index.inheriting(owner) if each.namespace not in self._changed}
        for name, labels in self._changed.items():
            if labels.owner == owner and labels.inheriting_namespace is not None:
                found[name] = labels.inheriting_namespace
        return [found[name] for name in sorted(found)]

    def labels(self, name: str) -> RouteNamespace:
        changed = self._changed.get(name)
        return _route_namespace(name, changed) if changed is not None else self._index.labels(name)


def _namespace_labels(namespace: Object) -> _NamespaceLabels:
    owner, inheriting_namespace = parse.inheriting_namespace(namespace) or ("", None)
    metadata = namespace["metadata"]
    found = metadata.get("labels") or {}
    label, host = str(found.get(GATEWAY_LABEL) or ""), str(found.get(HOST_LABEL) or "")
    annotation = (metadata.get("annotations") or {}).get(GATEWAY_ATTACHED_BY_ANNOTATION)
    labels = _NamespaceLabels(owner, inheriting_namespace, label, interned(host), str(annotation or ""))
    # most Namespaces, of thousands, have none of these labels and share one value
    return labels if labels != _NO_LABELS else _NO_LABELS


def _route_namespace(name: str, labels: _NamespaceLabels | None) -> RouteNamespace:
    return RouteNamespace(name, labels.label, labels.host) if labels is not None else RouteNamespace(name)


def _inheritance(labels: _NamespaceLabels | None) -> tuple[str, InheritingNamespace | None]:
    return (labels.owner, labels.inheriting_namespace) if labels is not None else ("", None)


@dataclass(slots=True)
class OwnedObjectIndex:
    """Objects of one kind by the uids of their owners; a change enqueues the TenantGateway that the object is named
    after."""

    tenantgateways: TenantGatewayIndex
    enqueue: Enqueue
    _owned: Multimap[str, Key] = field(default_factory=Multimap)
    handler: ProjectionStore[tuple[str, frozenset[str]]] = field(init=False)

    def __post_init__(self) -> None:
        self.handler = ProjectionStore(project=_owners, on_change=self._changed)

    def owned_by(self, uid: str) -> Sequence[Key]:
        return sorted(self._owned[uid])

    def _changed(
        self, key: Key, before: tuple[str, frozenset[str]] | None, now: tuple[str, frozenset[str]] | None
    ) -> None:
        old, new = (each[1] if each is not None else frozenset() for each in (before, now))
        for uid in old - new:
            self._owned.discard(uid, key)
        for uid in new - old:
            self._owned.add(uid, key)
        enqueue_related(self.tenantgateways, self.enqueue, key)


def _owners(obj: Object) -> tuple[str, frozenset[str]]:
    metadata = obj["metadata"]
    owners = frozenset(str(each.get("uid")) for each in metadata.get("ownerReferences") or ())
    return str(metadata["resourceVersion"]), owners


def enqueue_related(tenantgateways: TenantGatewayIndex, enqueue: Enqueue, key: Key) -> None:
    """Enqueues the TenantGateways whose name the object has, alone or as a prefix, even if they do not own it."""
    for gateway in tenantgateways.in_namespace(key.namespace):
        if key.name == gateway.name or key.name.startswith(f"{gateway.name}-"):
            enqueue(gateway)
