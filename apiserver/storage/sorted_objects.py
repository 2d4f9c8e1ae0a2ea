"""The current objects of a watch cache by key, and in the order of their keys."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from operator import attrgetter

from apiserver.encoding.encoded_object import CachedObject
from apiserver.meta.resource import Key

_by_key = attrgetter("key")


class SortedObjects:
    def __init__(self) -> None:
        self.by_key: dict[Key, CachedObject] = {}
        self._items: list[CachedObject] = []
        self._is_shared = False

    def __len__(self) -> int:
        return len(self._items)

    @property
    def items(self) -> Sequence[CachedObject]:
        """The objects in the order of their keys, until the next change: nothing is copied for a list of a few of
        them."""
        return self._items

    def share(self) -> None:
        """Leaves `items` as they are for those who keep them: the next change copies them first."""
        self._is_shared = True

    def put(self, obj: CachedObject) -> None:
        """Adds an object, or replaces the one with the same key."""
        position = self._prepare(obj.key)
        if obj.key in self.by_key:
            self._items[position] = obj
        else:
            self._items.insert(position, obj)
        self.by_key[obj.key] = obj

    def remove(self, key: Key) -> None:
        position = self._prepare(key)
        del self.by_key[key], self._items[position]

    def _prepare(self, key: Key) -> int:
        """The position of a key that is about to change."""
        if self._is_shared:
            self._items, self._is_shared = self._items.copy(), False
        return bisect_left(self._items, key, key=_by_key)
