"""Who owns whom, and what follows for an object: the decisions of the garbage collector. No I/O.

Owners are found by uid; group, kind, name and namespace of the reference must fit, as in Kubernetes since 1.20.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from apiserver.meta.resource import GroupKind, Object
from registry.generic.deletion import FOREGROUND, ORPHAN
from registry.sqlite.statements import StorageKey


@dataclass(frozen=True, slots=True)
class OwnerReference:
    """An ownerReference."""

    kind: GroupKind
    name: str
    uid: str
    blocks_owner_deletion: bool


@dataclass(frozen=True, slots=True)
class Node:
    """An object, as far as ownership goes."""

    uid: str
    place: StorageKey
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
        """Whether the owner of this uid must wait for this object."""
        return any(reference.uid == owner and reference.blocks_owner_deletion for reference in self.owners)


def _identity(name: str) -> str:
    return name


@dataclass(frozen=True, slots=True)
class OwnerKind:
    """Where objects of a kind are stored, and under which name."""

    storage: str
    namespaced: bool
    stored_name: Callable[[str], str] = _identity


class OwnerState(enum.Enum):
    """What a reference is worth: its owner is there, is absent, or is on its way out and waits for its dependents."""

    SOLID = enum.auto()
    DANGLING = enum.auto()
    WAITING = enum.auto()


@dataclass(frozen=True, slots=True)
class DeleteObject:
    """Delete the object, if none of the uids in `gone` is to be found. `unblock` keeps a cycle from waiting for
    itself."""

    policy: str
    absent_owners: tuple[str, ...] = ()
    unblock_owners: bool = False


@dataclass(frozen=True, slots=True)
class RemoveOwnerReferences:
    """Take the references to these uids off the object: their owners are absent, or let go of it."""

    uids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RemoveFinalizer:
    """The object's dependents are dealt with: take this finalizer off."""

    finalizer: str


@dataclass(frozen=True, slots=True)
class OrphanDependents:
    """Take the references to the object off these."""

    dependents: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class DeleteDependents:
    """These have to go first."""

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
        """What is to be done with this object now; None for nothing."""
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
        lost = tuple(reference.uid for reference, owner_state in states if owner_state is not OwnerState.SOLID)
        if not lost:
            return None
        if len(lost) < len(states):
            return RemoveOwnerReferences(lost)
        absent = tuple(reference.uid for reference, _ in states if self._nodes.get(reference.uid) is None)
        dependents = self.dependents(node.uid)
        if dependents and any(owner_state is OwnerState.WAITING for _, owner_state in states):
            cycle = any(dependent.waits_for_dependents for dependent in dependents)
            return DeleteObject("Foreground", absent, unblock_owners=cycle)
        return DeleteObject(_propagation_policy(node), absent)

    def owner_state(self, node: Node, reference: OwnerReference) -> OwnerState:
        kind = self._kinds.get(reference.kind)
        namespace = node.place.key.namespace
        if kind is None or (kind.namespaced and not namespace):
            # of a kind that is not served here nobody can tell; and nothing cluster-wide can depend on a namespace
            return OwnerState.SOLID
        owner = self._nodes.get(reference.uid)
        if owner is None or not _matches(owner, reference, kind, namespace):
            return OwnerState.DANGLING
        return OwnerState.WAITING if owner.waits_for_dependents else OwnerState.SOLID


def node_of(place: StorageKey, obj: Object) -> Node:
    metadata = obj["metadata"]
    references = metadata.get("ownerReferences") or ()
    return Node(
        uid=metadata["uid"],
        place=place,
        owners=tuple(_reference(each) for each in references),
        deleting=bool(metadata.get("deletionTimestamp")),
        finalizers=frozenset(metadata.get("finalizers") or ()),
    )


def _reference(item: Object) -> OwnerReference:
    group, slash, _ = item.get("apiVersion", "").partition("/")
    kind = GroupKind(group if slash else "", item.get("kind", ""))
    return OwnerReference(kind, item.get("name", ""), item.get("uid", ""), item.get("blockOwnerDeletion") is True)


def _matches(owner: Node, reference: OwnerReference, kind: OwnerKind, namespace: str) -> bool:
    key = owner.place.key
    return (
        owner.place.resource == kind.storage
        and key.name == kind.stored_name(reference.name)
        and (not kind.namespaced or key.namespace == namespace)
    )


def _propagation_policy(node: Node) -> str:
    if ORPHAN in node.finalizers:
        return "Orphan"
    return "Foreground" if FOREGROUND in node.finalizers else "Background"
