"""An index that finds any number of values under a key, where most keys have one."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V", bound=Hashable)


class Multimap(Generic[K, V]):
    """Values under keys, each once, in no order.

    A value that is alone under its key needs no set around it: of ten thousand tenants, each with one of nearly
    everything, those sets would be most of an index, and the garbage collector, which stops everybody, would look at
    each of them.
    """

    def __init__(self) -> None:
        self._one: dict[K, V] = {}
        self._more: dict[K, dict[V, None]] = {}

    def add(self, key: K, value: V) -> None:
        if self._one.setdefault(key, value) != value:
            self._more.setdefault(key, {})[value] = None

    def discard(self, key: K, value: V) -> None:
        """Nothing happens if it is not there."""
        if key not in self._one:
            return
        more = self._more.get(key, {})
        if self._one[key] != value:
            more.pop(value, None)
        elif more:
            self._one[key], _ = more.popitem()
        else:
            del self._one[key]
        if not more:
            self._more.pop(key, None)

    def __getitem__(self, key: K) -> Collection[V]:
        """All of a key, none for a key that is not there. The index may change while they are walked."""
        return (self._one[key], *self._more.get(key, ())) if key in self._one else ()

    def __contains__(self, key: object) -> bool:
        return key in self._one

    def __iter__(self) -> Iterator[K]:
        """The keys that have a value."""
        return iter(tuple(self._one))

    def __len__(self) -> int:
        """How many keys have a value."""
        return len(self._one)
