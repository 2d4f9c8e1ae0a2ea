"""The objects of a list while they arrive, for an informer: encoded, since a parsed object takes ten times as much."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from apiserver.meta.resource import Key, Object
from registry.cluster.interface import WatchEvent
from registry.cluster.object_store import ListedObjects, encode_without_managed_fields, key_of

_INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"


class CollectedObjects:
    """Objects by key, with what `keeps` has returned for each of them."""

    def __init__(self, keeps: Callable[[Object], object] | None, transform: Callable[[Object], Object]) -> None:
        self._keeps = keeps
        self._transform = transform
        self._kept: dict[Key, object] = {}
        self.encoded: dict[Key, bytes] = {}

    def put(self, obj: Object) -> None:
        key = key_of(obj)
        if self._keeps is not None:
            if not (kept := self._keeps(obj)):
                self._remove(key)
                return
            self._kept[key] = kept
        self.encoded[key] = encode_without_managed_fields(self._transform(obj))

    def collect(self, event: WatchEvent) -> bool:
        """Collects an initial event. Returns True for the bookmark that follows the last of them."""
        if event.type == "BOOKMARK":
            annotations = event.object["metadata"].get("annotations") or {}
            return annotations.get(_INITIAL_EVENTS_END) == "true"
        if event.type == "DELETED":
            self._remove(key_of(event.object))
        else:
            self.put(event.object)
        return False

    def objects(self) -> ListedObjects:
        return ListedObjects(self.encoded, self._kept, self._keeps)

    def _remove(self, key: Key) -> None:
        self.encoded.pop(key, None)
        self._kept.pop(key, None)
