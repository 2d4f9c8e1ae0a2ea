"""The graph of owners and dependents, and the decisions of the garbage collector. No I/O.

Owners are found by uid; group, kind, name and namespace of the reference must match too, as in Kubernetes since 1.20.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from apiserver.meta.resource import GroupKind, Object
from registry.generic.finalizers import FOREGROUND, ORPHAN
from registry.sqlite.statements import StorageKey


@dataclass(frozen=True, slots=True)
class OwnerReference:
    """An entry of metadata.ownerReferences."""

    kind: GroupKind
    name: str
    uid: str
    blocks_owner_deletion: bool


@dataclass(frozen=True, slots=True)
class Node:
    """An object, reduced to the fields that matter for ownership."""

    uid: str
    storage_key: StorageKey
    owners: tuple[OwnerReference, ...]
    deleting: bool
    finalizers: frozenset[str]

    @property
    def waits_for_dependents(self) -> bool:
        return self.deleting and FOREGROUND in self.finalizers

    @property
    def orphans_dependents(self) -> bool:
        return self.deleting and ORPHAN in self.finalizers

    def blocks_deletion_of(self, owner: str) -> bool:
        """Tells whether the owner with this uid must wait for this object to be deleted."""
        return any(reference.uid == owner and reference.blocks_owner_deletion for reference in self.owners)


def _identity(name: str) -> str:
    return name


@dataclass(frozen=True, slots=True)
class OwnerKind:
    """The storage of a kind; `stored_name` converts the name in an ownerReference to the name in the storage."""

    storage: str
    namespaced: bool
    stored_name: Callable[[str], str] = _identity


class ServedOwnerKinds(Mapping[GroupKind, OwnerKind]):
    """The kinds that owners may have: those of `stored`, which may change, and those of `released`, which are stored as
    HelmReleases. One that is both is in neither: nothing tells which of the two an ownerReference is about."""

    def __init__(self, stored: Mapping[GroupKind, OwnerKind]) -> None:
        self._stored = stored
        self.released: Mapping[GroupKind, OwnerKind] = {}

    def __getitem__(self, kind: GroupKind) -> OwnerKind:
        one, other = self._stored.get(kind), self.released.get(kind)
        found = one or other
        if found is None or (one is not None and other is not None):
            raise KeyError(kind)
        return found

    def __iter__(self) -> Iterator[GroupKind]:
        return iter(self._stored.keys() ^ self.released.keys())

    def __len__(self) -> int:
        return len(self._stored.keys() ^ self.released.keys())


class OwnerState(enum.Enum):
    """The owner of a reference exists, does not exist, or is being deleted and waits for its dependents."""

    SOLID = enum.auto()
    DANGLING = enum.auto()
    WAITING = enum.auto()


@dataclass(frozen=True, slots=True)
class DeleteObject:
    """Delete the object, provided that none of `absent_owners` (uids) exists. With `unblock_owners` its references stop
    blocking their owners first, so that objects that own each other do not wait for each other."""

    policy: str
    absent_owners: tuple[str, ...] = ()
    unblock_owners: bool = False


@dataclass(frozen=True, slots=True)
class RemoveOwnerReferences:
    """Remove the object's references to these uids: those owners do not exist or wait for their dependents, and another
    owner remains."""

    uids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RemoveFinalizer:
    """Remove this finalizer: the object no longer has to wait for dependents."""

    finalizer: str


@dataclass(frozen=True, slots=True)
class OrphanDependents:
    """Remove the references to the object from these dependents."""

    dependents: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class DeleteDependents:
    """Delete these dependents before the object."""

    dependents: tuple[Node, ...]


Action = DeleteObject | RemoveOwnerReferences | RemoveFinalizer | OrphanDependents | DeleteDependents


class OwnershipGraph:
    def __init__(self, kinds: Mapping[GroupKind, OwnerKind]) -> None:
        self._kinds = kinds
        self._nodes: dict[str, Node] = {}
        # by the uid of the owner, which need not exist
        self._dependents: dict[str, dict[str, Node]] = {}

    def node(self, uid: str) -> Node | None:
        return self._nodes.get(uid)

    def dependents(self, uid: str) -> Sequence[Node]:
        return list(self._dependents.get(uid, {}).values())

    def put(self, node: Node) -> None:
        self.drop(node.uid)
        self._nodes[node.uid] = node
        for reference in node.owners:
            self._dependents.setdefault(reference.uid, {})[node.uid] = node

    def drop(self, uid: str) -> None:
        node = self._nodes.pop(uid, None)
        for reference in node.owners if node is not None else ():
            dependents = self._dependents.get(reference.uid, {})
            dependents.pop(uid, None)
            if not dependents:
                self._dependents.pop(reference.uid, None)

    def next_action(self, uid: str) -> Action | None:
        """Returns the action that the object needs now, None if it needs none."""
        node = self._nodes.get(uid)
        if node is None:
            return None
        return self._action_for_owner(node) if node.deleting else self._action_for_dependent(node)

    def _action_for_owner(self, node: Node) -> Action | None:
        dependents = self.dependents(node.uid)
        if node.orphans_dependents:
            return OrphanDependents(tuple(dependents)) if dependents else RemoveFinalizer(ORPHAN)
        if node.waits_for_dependents:
            blocking = any(dependent.blocks_deletion_of(node.uid) for dependent in dependents)
            return DeleteDependents(tuple(dependents)) if blocking else RemoveFinalizer(FOREGROUND)
        return None

    def _action_for_dependent(self, node: Node) -> Action | None:
        states = [(reference, self.owner_state(node, reference)) for reference in node.owners]
        lost = tuple(reference.uid for reference, state in states if state is not OwnerState.SOLID)
        if not lost:
            return None
        if len(lost) < len(states):
            return RemoveOwnerReferences(lost)
        absent = tuple(reference.uid for reference, _ in states if self._nodes.get(reference.uid) is None)
        dependents = self.dependents(node.uid)
        if dependents and any(state is OwnerState.WAITING for _, state in states):
            cycle = any(dependent.waits_for_dependents for dependent in dependents)
            return DeleteObject("Foreground", absent, unblock_owners=cycle)
        return DeleteObject(_propagation_policy(node), absent)

    def owner_state(self, node: Node, reference: OwnerReference) -> OwnerState:
        kind = self._kinds.get(reference.kind)
        namespace = node.storage_key.key.namespace
        if kind is None or (kind.namespaced and not namespace):
            # an owner of a kind that is not served cannot be checked; a cluster-scoped object has no namespaced owner
            return OwnerState.SOLID
        owner = self._nodes.get(reference.uid)
        if owner is None or not _matches(owner, reference, kind, namespace):
            return OwnerState.DANGLING
        return OwnerState.WAITING if owner.waits_for_dependents else OwnerState.SOLID


def node_of(storage_key: StorageKey, obj: Object) -> Node:
    metadata = obj["metadata"]
    references = metadata.get("ownerReferences") or ()
    return Node(
        uid=metadata["uid"],
        storage_key=storage_key,
        owners=tuple(_reference(each) for each in references),
        deleting=bool(metadata.get("deletionTimestamp")),
        finalizers=frozenset(metadata.get("finalizers") or ()),
    )


def _reference(item: Object) -> OwnerReference:
    group, slash, _ = item.get("apiVersion", "").partition("/")
    kind = GroupKind(group if slash else "", item.get("kind", ""))
    return OwnerReference(kind, item.get("name", ""), item.get("uid", ""), item.get("blockOwnerDeletion") is True)


def _matches(owner: Node, reference: OwnerReference, kind: OwnerKind, namespace: str) -> bool:
    key = owner.storage_key.key
    return (
        owner.storage_key.resource == kind.storage
        and key.name == kind.stored_name(reference.name)
        and (not kind.namespaced or key.namespace == namespace)
    )


def _propagation_policy(node: Node) -> str:
    if ORPHAN in node.finalizers:
        return "Orphan"
    return "Foreground" if FOREGROUND in node.finalizers else "Background"
