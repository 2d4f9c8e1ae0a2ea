"""The open watches, indexed by what they are about, so that a change costs only those that it may concern."""

from __future__ import annotations

from collections.abc import Iterator

from apiserver.meta.resource import Key
from apiserver.storage.watcher import CacheWatcher

_EVERYWHERE = Key("", "")


class WatcherIndex:
    def __init__(self) -> None:
        # insertion-ordered, so that all hear in the order in which they came
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
        """The watches that a change of the object at `key` may concern. They may be added and discarded meanwhile."""
        for scope in dict.fromkeys((_EVERYWHERE, Key(key.namespace, ""), Key("", key.name), key)):
            yield from list(self._watches.get(scope, ()))

    def __iter__(self) -> Iterator[CacheWatcher]:
        for watches in list(self._watches.values()):
            yield from list(watches)

    def __len__(self) -> int:
        return sum(len(watches) for watches in self._watches.values())


def _scope(watch: CacheWatcher) -> Key:
    """A namespace, a name, both or neither: what is not said is empty."""
    return Key(watch.selection.namespace, watch.selection.name)
