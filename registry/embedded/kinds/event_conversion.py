"""Events have two groups and one storage: the fields of core/v1 under the names of events.k8s.io/v1, and back. Pure."""

from __future__ import annotations

from apiserver.meta.resource import Object

# core/v1 -> events.k8s.io/v1; every other field has one name
_RENAMED = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
_RESTORED = {new: old for old, new in _RENAMED.items()}


class EventsV1Conversion:
    """The Form of events.k8s.io/v1 over what core/v1 stores."""

    def to_served(self, stored: Object) -> Object:
        return {_RENAMED.get(name, name): value for name, value in stored.items()}

    def to_stored(self, shown: Object) -> Object:
        return {_RESTORED.get(name, name): value for name, value in shown.items()}
