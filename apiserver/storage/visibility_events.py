"""Computes the events of a watch whose user may see more or fewer objects than before (ATTACK-05). Pure."""

from __future__ import annotations

from collections.abc import Iterable

from apiserver.encoding.encoded_object import CachedObject, identity_only
from apiserver.meta.resource import Resource
from apiserver.storage.event_history import VisibilityEvent
from apiserver.storage.visibility import VisibilityChange


def visibility_events(
    resource: Resource,
    objects: Iterable[CachedObject],
    received: Iterable[CachedObject],
    change: VisibilityChange,
    *,
    cache_rv: int,
) -> list[VisibilityEvent]:
    """DELETED events for the objects that the client may have `received` and that are no longer visible, which have the
    object's identity but not its content; and ADDED events for the `objects` that became visible. `cache_rv` is the
    cache's current resourceVersion."""
    deleted = [_deletion(resource, obj, change, cache_rv) for obj in received if change.lost(resource, obj.key)]
    added = [VisibilityEvent("ADDED", obj, cache_rv) for obj in objects if change.gained(resource, obj.key)]
    return [*deleted, *added]


def _deletion(resource: Resource, obj: CachedObject, change: VisibilityChange, cache_rv: int) -> VisibilityEvent:
    return VisibilityEvent("DELETED", identity_only(resource, obj, change.rv), cache_rv)
