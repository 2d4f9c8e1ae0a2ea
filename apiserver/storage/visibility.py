"""Restricts lists and watches to the namespaces that a user may see. The set can change while clients watch.

An object of a cluster-scoped resource represents the namespace of the same name, and is visible if that namespace is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from apiserver.meta.resource import Key, Resource
from apiserver.request.context import User

VisibleNamespaces = frozenset[str] | None
"""None means all namespaces."""


@dataclass(frozen=True, slots=True)
class VisibilityChange:
    """A change of the namespaces that a user may see.

    `now` is the current set. Over the period in which it is unknown which events the client has received, `ever` is the
    union and `always` the intersection of the sets. `rv` is the resourceVersion of the change that caused this one.
    """

    ever: VisibleNamespaces
    always: VisibleNamespaces
    now: VisibleNamespaces
    rv: int

    @property
    def affected(self) -> VisibleNamespaces:
        """The namespaces whose visibility may have changed."""
        if self.ever is None or self.now is None:
            return None
        unchanged = self.now if self.always is None else self.always & self.now
        return (self.ever | self.now) - unchanged

    def gained(self, namespace: str) -> bool:
        """True if the client may not have received the objects of a namespace that is visible."""
        return is_visible(self.now, namespace) and not is_visible(self.always, namespace)

    def lost(self, namespace: str) -> bool:
        """True if the client may still have objects of a namespace that is no longer visible."""
        return is_visible(self.ever, namespace) and not is_visible(self.now, namespace)


class Visibility(Protocol):
    """The namespaces that one user may see. `namespaces` is always current."""

    @property
    def namespaces(self) -> VisibleNamespaces: ...

    def change_since(self, rv: int, sent: tuple[float, float]) -> VisibilityChange | None:
        """The change for a client that received all events up to `rv`, the last of them between the two monotonic times
        `sent`. It may contain more namespaces than necessary, never fewer. None if it can no longer be computed."""
        ...

    def subscribe(self, callback: Callable[[VisibilityChange], None]) -> Callable[[], None]:
        """Call `callback` synchronously with every change from now on. Returns a function that ends the
        subscription."""
        ...


class VisibilitySource(Protocol):
    """Determines which namespaces each user may see."""

    async def for_user(self, user: User) -> Visibility:
        """The user's visibility. Raises StatusError if it cannot be determined at present."""
        ...


def is_visible(visible: VisibleNamespaces, namespace: str) -> bool:
    return visible is None or namespace in visible


def union(one: VisibleNamespaces, other: VisibleNamespaces) -> VisibleNamespaces:
    return None if one is None or other is None else one | other


def intersection(one: VisibleNamespaces, other: VisibleNamespaces) -> VisibleNamespaces:
    if one is None or other is None:
        return other if one is None else one
    return one & other


def namespace_of(resource: Resource, key: Key) -> str:
    """The namespace that decides whether an object is visible."""
    return key.namespace if resource.namespaced else key.name


def key_ranges(resource: Resource, namespaces: Iterable[str]) -> list[tuple[Key, Key]]:
    """The key ranges of the objects in `namespaces`, in order."""
    if resource.namespaced:
        return [(Key(namespace, ""), Key(f"{namespace}\0", "")) for namespace in sorted(namespaces)]
    return [(Key("", namespace), Key("", f"{namespace}\0")) for namespace in sorted(namespaces)]
