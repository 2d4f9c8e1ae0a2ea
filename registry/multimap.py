"""A map from a key to several values, optimized for keys that have one value."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V", bound=Hashable)

_FEW = 8


class Multimap(Generic[K, V]):
    """A set of values for each key, without an order.

    A single value is stored without a container, and up to eight more in a tuple. With ten thousand keys of one value
    each, a set for each key would take most of the memory and would be traversed by every garbage collection.
    """

    def __init__(self) -> None:
        self._one: dict[K, V] = {}
        self._few: dict[K, tuple[V, ...]] = {}
        self._many: dict[K, dict[V, None]] = {}

    def add(self, key: K, value: V) -> None:
        if self._one.setdefault(key, value) == value:
            return
        if (many := self._many.get(key)) is not None:
            many[value] = None
        elif value not in (few := self._few.get(key, ())):
            self._set_few(key, (*few, value))

    def discard(self, key: K, value: V) -> None:
        """Does nothing if the key does not have the value."""
        if key not in self._one:
            return
        if self._one[key] == value:
            self._replace_one(key)
        elif (many := self._many.get(key)) is not None:
            many.pop(value, None)
        else:
            self._set_few(key, tuple(each for each in self._few.get(key, ()) if each != value))

    def _replace_one(self, key: K) -> None:
        """Replaces the first value of the key with another of its values."""
        if many := self._many.get(key):
            self._one[key], _ = many.popitem()
        elif few := self._few.get(key):
            self._one[key] = few[0]
            self._set_few(key, few[1:])
        else:
            del self._one[key]
            self._many.pop(key, None)

    def _set_few(self, key: K, few: tuple[V, ...]) -> None:
        if len(few) > _FEW:
            self._many[key] = dict.fromkeys(few)
            del self._few[key]
        elif few:
            self._few[key] = few
        else:
            self._few.pop(key, None)

    def __getitem__(self, key: K) -> Collection[V]:
        """All values of a key, empty for an unknown key. The result is a copy: the map may change during iteration."""
        if key not in self._one:
            return ()
        return (self._one[key], *self._few.get(key, ()), *self._many.get(key, ()))

    def __iter__(self) -> Iterator[K]:
        """Iterates over a copy of the keys that have a value."""
        return iter(tuple(self._one))
