"""What a watch is told when its reader comes to see more, or less, than before (ATTACK-05). Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from apiserver.encoding.encoded_object import CachedObject, identity_only
from apiserver.meta.resource import Key, Resource
from apiserver.storage.event_history import Event, VisibilityEvent
from apiserver.storage.visibility import VisibilityChange, namespace_of


def visibility_events(
    resource: Resource,
    objects: Iterable[CachedObject],
    change: VisibilityChange,
    *,
    cache_rv: int,
    never_seen: Collection[Key] = (),
) -> list[VisibilityEvent]:
    """ADDED of what has come into sight, and of what has left it DELETED, with no more than the name of it. The
    reader has never been told of what is `unknown`. `cache_rv` is how far the cache is."""
    told = []
    for obj in objects:
        place = namespace_of(resource, obj.key)
        if change.gained(place):
            told.append(VisibilityEvent("ADDED", obj, cache_rv))
        elif change.lost(place) and obj.key not in never_seen:
            told.append(_deletion(resource, obj, change, cache_rv))
    return told


def deletions_while_away(
    resource: Resource, missed: Sequence[Event], change: VisibilityChange, *, cache_rv: int
) -> list[VisibilityEvent]:
    """DELETED of what has left both sight and the cache while the reader was away."""
    new = created_keys(missed)
    gone = [event.object for event in missed if event.type == "DELETED" and event.object.key not in new]
    return [_deletion(resource, obj, change, cache_rv) for obj in gone if change.lost(namespace_of(resource, obj.key))]


def created_keys(missed: Sequence[Event]) -> frozenset[Key]:
    """What was not there yet when the reader left."""
    return frozenset(event.object.key for event in missed if event.previous is None)


def _deletion(resource: Resource, obj: CachedObject, change: VisibilityChange, cache_rv: int) -> VisibilityEvent:
    return VisibilityEvent("DELETED", identity_only(resource, obj, change.rv), cache_rv)
