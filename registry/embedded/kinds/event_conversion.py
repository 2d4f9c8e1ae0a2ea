"""Converts Events between core/v1, the stored version, and events.k8s.io/v1, which renames some fields. Pure."""

from __future__ import annotations

from apiserver.meta.resource import Object

# core/v1 -> events.k8s.io/v1; all other fields have the same name in both
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
    """Converts between stored core/v1 Events and served events.k8s.io/v1 Events."""

    def to_served(self, stored: Object) -> Object:
        return {_RENAMED.get(name, name): value for name, value in stored.items()}

    def to_stored(self, shown: Object) -> Object:
        return {_RESTORED.get(name, name): value for name, value in shown.items()}
