"""Computes the events that a relist implies: the difference between the cached state and a fresh list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from apiserver.encoding.encoded_object import CachedObject, at_version
from apiserver.meta.resource import Key, Resource
from apiserver.storage.event_history import CacheEvent


def relist_events(
    resource: Resource,
    cached: Mapping[Key, CachedObject],
    cached_rv: int,
    objects: Sequence[CachedObject],
    rv: int,
    *,
    now: float,
) -> Sequence[CacheEvent]:
    """The events from the `cached` state at `cached_rv` to `objects` at `rv`, in an order in which they can have
    happened.

    A list does not contain the versions of deletions. Each deletion gets the earliest version that no other change has:
    a watch that resumes from it on another replica may receive a deletion twice, but never misses one.
    """
    listed = {obj.key: obj for obj in objects}
    changes = []
    for obj in objects:
        before = cached.get(obj.key)
        if before is None or before.uid != obj.uid:
            changes.append(CacheEvent("ADDED", obj, None, now))
        elif before.rv != obj.rv:
            changes.append(CacheEvent("MODIFIED", obj, before, now))
    deleted = [obj for key, obj in cached.items() if key not in listed or listed[key].uid != obj.uid]
    # a recreated object was deleted before; the others are sorted by key, so that replicas assign the same versions
    deleted.sort(key=lambda obj: (listed[obj.key].rv if obj.key in listed else rv + 1, obj.key))
    taken = {event.rv for event in changes}
    version = cached_rv
    for obj in deleted:
        version += 1
        while version in taken:
            version += 1
        changes.append(CacheEvent("DELETED", at_version(resource, obj, min(version, rv)), obj, now))
    return sorted(changes, key=lambda event: (event.rv, event.type != "DELETED"))
