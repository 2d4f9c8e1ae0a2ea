"""Who owns whom, and what follows for an object: the decisions of the garbage collector. No I/O.

Owners are found by uid; group, kind, name and namespace of the reference must fit, as in Kubernetes since 1.20.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from apiserver.meta.resource import GroupKind, Object
from registry.generic.deletion import FOREGROUND, ORPHAN
from registry.sqlite.statements import Place


@dataclass(frozen=True, slots=True)
class Reference:
    """An ownerReference."""

    kind: GroupKind
    name: str
    uid: str
    blocks: bool


@dataclass(frozen=True, slots=True)
class Node:
    """An object, as far as ownership goes."""

    uid: str
    place: Place
    owners: tuple[Reference, ...]
    deleting: bool
    finalizers: frozenset[str]

    @property
    def waits_for_dependents(self) -> bool:
        return self.deleting and FOREGROUND in self.finalizers

    @property
    def orphans_dependents(self) -> bool:
        return self.deleting and ORPHAN in self.finalizers

    def blocks(self, owner: str) -> bool:
        """Whether the owner of this uid must wait for this object."""
        return any(reference.uid == owner and reference.blocks for reference in self.owners)


def _same(name: str) -> str:
    return name


@dataclass(frozen=True, slots=True)
class OwnerKind:
    """Where objects of a kind are stored, and under which name."""

    storage: str
    namespaced: bool
    stored_name: Callable[[str], str] = _same


class Standing(enum.Enum):
    """What a reference is worth: its owner is there, is gone, or is on its way out and waits for its dependents."""

    SOLID = enum.auto()
    DANGLING = enum.auto()
    WAITING = enum.auto()


@dataclass(frozen=True, slots=True)
class Collect:
    """Delete the object, if none of the uids in `gone` is to be found. `unblock` keeps a circle from waiting for
    itself."""

    policy: str
    gone: tuple[str, ...] = ()
    unblock: bool = False


@dataclass(frozen=True, slots=True)
class Release:
    """Take the references to these uids off the object: their owners are gone, or let go of it."""

    uids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Finish:
    """The object's dependents are dealt with: take this finalizer off."""

    finalizer: str


@dataclass(frozen=True, slots=True)
class Orphan:
    """Take the references to the object off these."""

    dependents: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Await:
    """These have to go first."""

    dependents: tuple[Node, ...]


Action = Collect | Release | Finish | Orphan | Await


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

    def decide(self, uid: str) -> Action | None:
        """What is to be done with this object now; None for nothing."""
        node = self._nodes.get(uid)
        if node is None:
            return None
        return self._of_owner(node) if node.deleting else self._of_dependent(node)

    def _of_owner(self, node: Node) -> Action | None:
        dependents = self.dependents(node.uid)
        if node.orphans_dependents:
            return Orphan(tuple(dependents)) if dependents else Finish(ORPHAN)
        if node.waits_for_dependents:
            blocking = any(dependent.blocks(node.uid) for dependent in dependents)
            return Await(tuple(dependents)) if blocking else Finish(FOREGROUND)
        return None

    def _of_dependent(self, node: Node) -> Action | None:
        standings = [(reference, self.standing(node, reference)) for reference in node.owners]
        lost = tuple(reference.uid for reference, standing in standings if standing is not Standing.SOLID)
        if not lost:
            return None
        if len(lost) < len(standings):
            return Release(lost)
        gone = tuple(reference.uid for reference, _ in standings if self._nodes.get(reference.uid) is None)
        dependents = self.dependents(node.uid)
        if dependents and any(standing is Standing.WAITING for _, standing in standings):
            circle = any(dependent.waits_for_dependents for dependent in dependents)
            return Collect("Foreground", gone, unblock=circle)
        return Collect(_own_policy(node), gone)

    def standing(self, node: Node, reference: Reference) -> Standing:
        kind = self._kinds.get(reference.kind)
        namespace = node.place.key.namespace
        if kind is None or (kind.namespaced and not namespace):
            # of a kind that is not served here nobody can tell; and nothing cluster-wide can depend on a namespace
            return Standing.SOLID
        owner = self._nodes.get(reference.uid)
        if owner is None or not _fits(owner, reference, kind, namespace):
            return Standing.DANGLING
        return Standing.WAITING if owner.waits_for_dependents else Standing.SOLID


def node_of(place: Place, obj: Object) -> Node:
    metadata = obj["metadata"]
    references = metadata.get("ownerReferences") or ()
    return Node(
        uid=metadata["uid"],
        place=place,
        owners=tuple(_reference(each) for each in references),
        deleting=bool(metadata.get("deletionTimestamp")),
        finalizers=frozenset(metadata.get("finalizers") or ()),
    )


def _reference(item: Object) -> Reference:
    group, slash, _ = item.get("apiVersion", "").partition("/")
    kind = GroupKind(group if slash else "", item.get("kind", ""))
    return Reference(kind, item.get("name", ""), item.get("uid", ""), item.get("blockOwnerDeletion") is True)


def _fits(owner: Node, reference: Reference, kind: OwnerKind, namespace: str) -> bool:
    key = owner.place.key
    return (
        owner.place.resource == kind.storage
        and key.name == kind.stored_name(reference.name)
        and (not kind.namespaced or key.namespace == namespace)
    )


def _own_policy(node: Node) -> str:
    if ORPHAN in node.finalizers:
        return "Orphan"
    return "Foreground" if FOREGROUND in node.finalizers else "Background"
