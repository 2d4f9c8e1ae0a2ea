"""Restricts lists and watches to the objects that a user may see. The set can change while clients watch.

An object of a cluster-scoped resource represents the namespace of the same name, and is visible if that namespace is,
unless the resource says which namespace its objects are visible with (`Resource.namespace_of`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from apiserver.meta.resource import Key, Resource
from apiserver.request.context import User

Namespaces = frozenset[str] | None
"""None means all namespaces."""


@dataclass(frozen=True, slots=True)
class VisibleObjects:
    """The objects of some `namespaces`; single objects, by `keys`; and those with one of some `names` in every
    namespace. They may exist or not."""

    namespaces: Namespaces = frozenset()
    keys: frozenset[Key] = frozenset()
    names: frozenset[str] = frozenset()

    def includes(self, resource: Resource, key: Key) -> bool:
        namespaces = self.namespaces
        if namespaces is None or (key.namespace if resource.has_namespace_in_key else key.name) in namespaces:
            return True
        return (bool(self.keys) and key in self.keys) or (bool(self.names) and key.name in self.names)

    def includes_namespace(self, namespace: str) -> bool:
        """True if every object of a namespace is visible."""
        return self.namespaces is None or namespace in self.namespaces

    def key_ranges(self, resource: Resource) -> list[tuple[Key, Key]]:
        """The ranges of keys that contain the objects, in order. There must be no `names`, and not all namespaces."""
        namespaces = self.namespaces or frozenset()
        if not resource.has_namespace_in_key:
            return [(Key("", namespace), Key("", f"{namespace}\0")) for namespace in sorted(namespaces)]
        ranges = [(Key(namespace, ""), Key(f"{namespace}\0", "")) for namespace in namespaces]
        ranges += [(key, Key(key.namespace, f"{key.name}\0")) for key in self.keys if key.namespace not in namespaces]
        return sorted(ranges)


EVERYTHING = VisibleObjects(namespaces=None)


def union(one: VisibleObjects, other: VisibleObjects) -> VisibleObjects:
    namespaces = None if one.namespaces is None or other.namespaces is None else one.namespaces | other.namespaces
    return VisibleObjects(namespaces, one.keys | other.keys, one.names | other.names)


def intersection(one: VisibleObjects, other: VisibleObjects) -> VisibleObjects:
    """The namespaces, the keys and the names that both have. An object that one has by its namespace and the other by
    its key is not in the result."""
    return VisibleObjects(_common(one.namespaces, other.namespaces), one.keys & other.keys, one.names & other.names)


@dataclass(frozen=True)
class VisibilityChange:
    """A change of the objects that a user may see.

    `now` is the current set. Over the period in which it is unknown which events the client has received, `ever` is the
    union and `always` the intersection of the sets. `rv` is the resourceVersion of the change that caused this one.
    """

    ever: VisibleObjects
    always: VisibleObjects
    now: VisibleObjects
    rv: int

    @cached_property
    def affected(self) -> VisibleObjects:
        """The objects whose visibility may have changed."""
        ever, always, now = self.ever, self.always, self.now
        return VisibleObjects(
            _changed(ever.namespaces, always.namespaces, now.namespaces),
            (ever.keys | now.keys) - (always.keys & now.keys),
            (ever.names | now.names) - (always.names & now.names),
        )

    def gained(self, resource: Resource, key: Key) -> bool:
        """True if the client may not have received an object that is visible."""
        return self.now.includes(resource, key) and not self.always.includes(resource, key)

    def lost(self, resource: Resource, key: Key) -> bool:
        """True if the client may still have an object that is no longer visible."""
        return self.ever.includes(resource, key) and not self.now.includes(resource, key)


class Visibility(Protocol):
    """The objects that one user may see. `visible` is always current."""

    @property
    def visible(self) -> VisibleObjects: ...

    def change_since(self, rv: int, sent: tuple[float, float]) -> VisibilityChange | None:
        """The change for a client that received all events up to `rv`, the last of them between the two monotonic times
        `sent`. It may contain more objects than necessary, never fewer. None if it can no longer be computed."""
        ...

    def subscribe(self, callback: Callable[[VisibilityChange], None]) -> Callable[[], None]:
        """Call `callback` synchronously with every change from now on. Returns a function that ends the
        subscription."""
        ...


class VisibilitySource(Protocol):
    """Determines which objects each user may see."""

    async def for_user(self, user: User) -> Visibility:
        """The user's visibility. Raises StatusError if it cannot be determined at present."""
        ...


def _common(one: Namespaces, other: Namespaces) -> Namespaces:
    if one is None or other is None:
        return other if one is None else one
    return one & other


def _changed(ever: Namespaces, always: Namespaces, now: Namespaces) -> Namespaces:
    if always is None and now is None:
        return frozenset()
    if ever is None or now is None:
        return None
    if ever is always:
        return ever ^ now
    unchanged = _common(always, now) or frozenset()
    return (ever | now) - unchanged
