"""Which objects and events one list or watch is about. Everything that narrows a read is decided here."""

from __future__ import annotations

from apiserver.encoding.encoded_object import CachedObject
from apiserver.meta.resource import Key, Resource
from apiserver.meta.selectors import NAME, NAMESPACE, FieldSelector, LabelSelector
from apiserver.storage.event_history import Event

KeyRange = tuple[Key, Key | None]
"""Keys from the first on, up to but without the second."""


class SelectionPredicate:
    """The objects of `namespace` ('' for all) that both selectors match."""

    def __init__(self, namespace: str, labels: LabelSelector, fields: FieldSelector) -> None:
        self._labels = labels
        self._fields = fields
        self.namespace = namespace or fields.exact(NAMESPACE) or ""
        self.name = fields.exact(NAME) or ""

    @property
    def matches_everything(self) -> bool:
        """Whether all objects of the namespace are selected."""
        return self._labels.empty and self._fields.empty

    def range(self, resource: Resource) -> KeyRange:
        """The keys among which all selected objects are."""
        if self.name and (self.namespace or not resource.namespaced):
            return Key(self.namespace, self.name), Key(self.namespace, f"{self.name}\0")
        if self.namespace:
            return Key(self.namespace, ""), Key(f"{self.namespace}\0", "")
        return Key("", ""), None

    def matches(self, obj: CachedObject) -> bool:
        """Whether an object of the range is selected."""
        if not self._labels.empty and not self._labels.matches(obj.labels):
            return False
        if self._fields.empty:
            return True
        return self._fields.matches({**obj.fields, NAME: obj.key.name, NAMESPACE: obj.key.namespace})

    def event_for_client(self, event: Event, resource: Resource) -> Event | None:
        """`event` as a client with this selection sees it: an object that comes to match is ADDED, one that no longer
        matches DELETED (WIRE-F5); None if it is not concerned."""
        if self.matches_everything:
            return event
        before = event.previous is not None and self.matches(event.previous)
        if event.type == "DELETED":
            return event if before else None
        if self.matches(event.object):
            return event if before or event.type == "ADDED" else event.as_added()
        return event.as_deleted(resource) if before else None
