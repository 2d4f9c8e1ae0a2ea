"""An index that finds any number of values under a key, where most keys have one."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V", bound=Hashable)

_FEW = 8


class Multimap(Generic[K, V]):
    """Values under keys, each once, in no order.

    A value that is alone under its key needs no set around it, and a few others need no more than a tuple: of ten
    thousand keys with one value each, those sets would be most of an index, and the garbage collector, which stops
    everybody, would look at each of them.
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
            self._hold(key, (*few, value))

    def discard(self, key: K, value: V) -> None:
        """Nothing happens if it is not there."""
        if key not in self._one:
            return
        if self._one[key] == value:
            self._replace_one(key)
        elif (many := self._many.get(key)) is not None:
            many.pop(value, None)
        else:
            self._hold(key, tuple(each for each in self._few.get(key, ()) if each != value))

    def _replace_one(self, key: K) -> None:
        """By one of the others."""
        if many := self._many.get(key):
            self._one[key], _ = many.popitem()
        elif few := self._few.get(key):
            self._one[key] = few[0]
            self._hold(key, few[1:])
        else:
            del self._one[key]
            self._many.pop(key, None)

    def _hold(self, key: K, few: tuple[V, ...]) -> None:
        if len(few) > _FEW:
            self._many[key] = dict.fromkeys(few)
            del self._few[key]
        elif few:
            self._few[key] = few
        else:
            self._few.pop(key, None)

    def __getitem__(self, key: K) -> Collection[V]:
        """All of a key, none for a key that is not there. The index may change while they are walked."""
        if key not in self._one:
            return ()
        return (self._one[key], *self._few.get(key, ()), *self._many.get(key, ()))

    def __iter__(self) -> Iterator[K]:
        """The keys that have a value."""
        return iter(tuple(self._one))
