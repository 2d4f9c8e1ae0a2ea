"""What a reader may see of a kind, where not all who may list may see everything: a set of places that can change.

A place is a namespace or, of a kind without namespaces, a name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from apiserver.meta.resource import Key, Resource
from apiserver.request.context import User

VisibleNamespaces = frozenset[str] | None
"""None is everywhere."""


@dataclass(frozen=True, slots=True)
class VisibilityChange:
    """What a reader can see now, after having seen `ever` at some time, and `always` at all times of which it is not
    known how much of them the reader was told; `rv` is the resourceVersion of what brought the change about."""

    ever: VisibleNamespaces
    always: VisibleNamespaces
    now: VisibleNamespaces
    rv: int

    @property
    def affected(self) -> VisibleNamespaces:
        """Where something may have changed."""
        if self.ever is None or self.now is None:
            return None
        kept = self.now if self.always is None else self.always & self.now
        return (self.ever | self.now) - kept

    def gained(self, place: str) -> bool:
        """Whether the reader may not know that it sees this."""
        return is_visible(self.now, place) and not is_visible(self.always, place)

    def lost(self, place: str) -> bool:
        """Whether the reader may not know that it no longer sees this."""
        return is_visible(self.ever, place) and not is_visible(self.now, place)


class Visibility(Protocol):
    """One reader's. It is alive: `places` are those of now."""

    @property
    def namespaces(self) -> VisibleNamespaces: ...

    def change_since(self, rv: int, told: tuple[float, float]) -> VisibilityChange | None:
        """What has changed for a reader who was told everything up to `rv`, the last of it between these two times of
        the monotonic clock; rather too much than too little. None if that can no longer be told."""
        ...

    def subscribe(self, callback: Callable[[VisibilityChange], None]) -> Callable[[], None]:
        """Have `callback` called, synchronously, with every change from now on; the result ends that."""
        ...


class VisibilitySource(Protocol):
    async def for_user(self, user: User) -> Visibility:
        """Raises StatusError if it cannot be told at present."""
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
    return key.namespace if resource.namespaced else key.name


def key_ranges(resource: Resource, namespaces: Iterable[str]) -> list[tuple[Key, Key]]:
    """The keys of what is in these places, in order."""
    if resource.namespaced:
        return [(Key(place, ""), Key(f"{place}\0", "")) for place in sorted(namespaces)]
    return [(Key("", place), Key("", f"{place}\0")) for place in sorted(namespaces)]
