"""Computes the events of a watch whose user may see more or fewer objects than before (ATTACK-05). Pure."""

from __future__ import annotations

from collections.abc import Sequence

from apiserver.encoding.encoded_object import CachedObject, identity_only
from apiserver.meta.resource import Resource
from apiserver.storage.event_history import CacheEvent, VisibilityEvent, states_before
from apiserver.storage.selection_predicate import SelectionPredicate
from apiserver.storage.visibility import VisibilityChange


def visibility_events(
    resource: Resource,
    selection: SelectionPredicate,
    objects: Sequence[CachedObject],
    missed: Sequence[CacheEvent],
    change: VisibilityChange,
    *,
    cache_rv: int,
) -> list[VisibilityEvent]:
    """DELETED events for the objects that the client may have received and that are no longer visible, which have the
    object's identity but not its content; and ADDED events for those of the selected `objects` that became visible.

    The client has not received the `missed` events, or a few: it may resume at an older version of an object.
    `cache_rv` is the cache's current resourceVersion."""
    hidden = [event for event in missed if change.lost(resource, event.object.key)]
    before = states_before(hidden)
    matched = {event.object.key for event in hidden if selection.concerns(event)}
    received = [obj for obj in objects if obj.key not in before]
    received += [obj for key, obj in before.items() if obj is not None and key in matched]
    deleted = [_deletion(resource, obj, change, cache_rv) for obj in received if change.lost(resource, obj.key)]
    added = [VisibilityEvent("ADDED", obj, cache_rv) for obj in objects if change.gained(resource, obj.key)]
    return [*deleted, *added]


def _deletion(resource: Resource, obj: CachedObject, change: VisibilityChange, cache_rv: int) -> VisibilityEvent:
    return VisibilityEvent("DELETED", identity_only(resource, obj, change.rv), cache_rv)
