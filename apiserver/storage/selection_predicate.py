"""Decides which objects and events a list or watch selects, by namespace, label selector and field selector."""

from __future__ import annotations

from collections.abc import Sequence

from apiserver.encoding.encoded_object import CachedObject
from apiserver.meta.resource import Key, Resource
from apiserver.meta.selectors import NAME, NAMESPACE, FieldSelector, LabelSelector
from apiserver.storage.event_history import CacheEvent

KeyRange = tuple[Key, Key | None]
"""Keys from the first (inclusive) to the second (exclusive); None means no upper bound."""


class SelectionPredicate:
    """Selects the objects of `namespace` ('' for all) that match both selectors. `name` is '' unless the field selector
    requires one."""

    def __init__(self, namespace: str, labels: LabelSelector, fields: FieldSelector) -> None:
        self.labels = labels
        self._fields = fields
        self.namespace = namespace or fields.exact(NAMESPACE) or ""
        self.name = fields.exact(NAME) or ""
        self.matches_everything = labels.empty and fields.empty
        """True if all objects of the namespace match."""

    def range(self, resource: Resource) -> KeyRange:
        """A range of keys that contains all selected objects."""
        if self.name and (self.namespace or not resource.has_namespace_in_key):
            return Key(self.namespace, self.name), Key(self.namespace, f"{self.name}\0")
        if self.namespace:
            return Key(self.namespace, ""), Key(f"{self.namespace}\0", "")
        return Key("", ""), None

    def matches(self, obj: CachedObject) -> bool:
        """True if an object of the range matches the selectors."""
        if not self.labels.empty and not self.labels.matches(obj.labels):
            return False
        return self._fields.empty or self._fields_match(obj)

    def select(self, objects: Sequence[CachedObject]) -> Sequence[CachedObject]:
        """The objects of the range that match the selectors."""
        if self.matches_everything:
            return objects
        selected = objects if self.labels.empty else self.labels.select(objects)
        return selected if self._fields.empty else [each for each in selected if self._fields_match(each)]

    def _fields_match(self, obj: CachedObject) -> bool:
        return self._fields.matches({**obj.fields, NAME: obj.key.name, NAMESPACE: obj.key.namespace})

    def concerns(self, event: CacheEvent) -> bool:
        """True if the object matches before the event or after it."""
        if event.previous is not None and self.matches(event.previous):
            return True
        return event.type != "DELETED" and self.matches(event.object)

    def event_for_client(self, event: CacheEvent, resource: Resource) -> CacheEvent | None:
        """The event for a client with this selection: ADDED for an object that starts to match, DELETED for one that no
        longer matches (WIRE-F5). None if the client does not receive it."""
        if self.matches_everything:
            return event
        before = event.previous is not None and self.matches(event.previous)
        if event.type == "DELETED":
            return event if before else None
        if self.matches(event.object):
            return event if before or event.type == "ADDED" else event.as_added()
        return event.as_deleted(resource) if before else None
