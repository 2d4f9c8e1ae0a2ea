"""Computes the events of a watch whose user may see more or fewer objects than before (ATTACK-05). Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from apiserver.encoding.encoded_object import CachedObject, identity_only
from apiserver.meta.resource import Key, Resource
from apiserver.storage.event_history import CacheEvent, VisibilityEvent
from apiserver.storage.visibility import VisibilityChange


def visibility_events(
    resource: Resource,
    objects: Iterable[CachedObject],
    change: VisibilityChange,
    *,
    cache_rv: int,
    never_seen: Collection[Key] = (),
) -> list[VisibilityEvent]:
    """ADDED events for objects that became visible, and DELETED events for objects that are no longer visible, which
    have the object's identity but not its content. Objects in `never_seen` were never sent to the client. `cache_rv` is
    the cache's current resourceVersion."""
    events = []
    for obj in objects:
        if change.gained(resource, obj.key):
            events.append(VisibilityEvent("ADDED", obj, cache_rv))
        elif change.lost(resource, obj.key) and obj.key not in never_seen:
            events.append(_deletion(resource, obj, change, cache_rv))
    return events


def deletions_while_away(
    resource: Resource, missed: Sequence[CacheEvent], change: VisibilityChange, *, cache_rv: int
) -> list[VisibilityEvent]:
    """DELETED events for objects that were deleted, and also became invisible, while the client had no watch."""
    new = created_keys(missed)
    deleted = [event.object for event in missed if event.type == "DELETED" and event.object.key not in new]
    return [_deletion(resource, obj, change, cache_rv) for obj in deleted if change.lost(resource, obj.key)]


def created_keys(missed: Sequence[CacheEvent]) -> frozenset[Key]:
    """The keys of objects that were created while the client had no watch."""
    return frozenset(event.object.key for event in missed if event.previous is None)


def _deletion(resource: Resource, obj: CachedObject, change: VisibilityChange, cache_rv: int) -> VisibilityEvent:
    return VisibilityEvent("DELETED", identity_only(resource, obj, change.rv), cache_rv)
