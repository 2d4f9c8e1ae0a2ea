"""Indexes the open watches by namespace and name, so that an event is passed only to watches that may select it."""

from __future__ import annotations

from collections.abc import Iterator

from apiserver.meta.resource import Key
from apiserver.storage.fan_out import FanOut
from apiserver.storage.watcher import CacheWatcher

_EVERYWHERE = Key("", "")


class WatcherIndex:
    def __init__(self) -> None:
        self.fan_out = FanOut()
        # insertion-ordered, so that watches receive events in the order in which they were opened
        self._watches: dict[Key, dict[CacheWatcher, None]] = {}

    def add(self, watch: CacheWatcher) -> None:
        self._watches.setdefault(_scope(watch), {})[watch] = None

    def discard(self, watch: CacheWatcher) -> None:
        scope = _scope(watch)
        watches = self._watches.get(scope, {})
        watches.pop(watch, None)
        if not watches:
            self._watches.pop(scope, None)

    def watchers_for(self, key: Key) -> Iterator[CacheWatcher]:
        """The watches that may select the object at `key`. Watches may be added and discarded during the iteration."""
        for scope in dict.fromkeys((_EVERYWHERE, Key(key.namespace, ""), Key("", key.name), key)):
            yield from list(self._watches.get(scope, ()))

    def __iter__(self) -> Iterator[CacheWatcher]:
        for watches in list(self._watches.values()):
            yield from list(watches)

    def __len__(self) -> int:
        return sum(len(watches) for watches in self._watches.values())


def _scope(watch: CacheWatcher) -> Key:
    """The namespace and name that the watch is restricted to; either is empty if it is not."""
    return Key(watch.selection.namespace, watch.selection.name)
