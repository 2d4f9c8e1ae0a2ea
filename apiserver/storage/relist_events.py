"""What happened between a held state and a list: the events of a source that was not heard for a while."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from apiserver.encoding.encoded_object import CachedObject, at_version
from apiserver.meta.resource import Key, Resource
from apiserver.storage.event_history import Event


def relist_events(
    resource: Resource,
    held: Mapping[Key, CachedObject],
    held_rv: int,
    objects: Sequence[CachedObject],
    rv: int,
    *,
    now: float,
) -> Sequence[Event]:
    """The events from `held` at `held_rv` to `objects` at `rv`, in an order in which they can have happened.

    A deletion's version is not in the list. It gets the earliest one that no other change has: who resumes from it
    elsewhere may hear of a deletion twice, but never misses one.
    """
    listed = {obj.key: obj for obj in objects}
    changes = []
    for obj in objects:
        before = held.get(obj.key)
        if before is None or before.uid != obj.uid:
            changes.append(Event("ADDED", obj, None, now))
        elif before.rv != obj.rv:
            changes.append(Event("MODIFIED", obj, before, now))
    gone = [obj for key, obj in held.items() if key not in listed or listed[key].uid != obj.uid]
    # what was made anew had to be deleted first; the rest in key order, for replicas that see the same to tell the same
    gone.sort(key=lambda obj: (listed[obj.key].rv if obj.key in listed else rv + 1, obj.key))
    taken = {event.rv for event in changes}
    version = held_rv
    for obj in gone:
        version += 1
        while version in taken:
            version += 1
        changes.append(Event("DELETED", at_version(resource, obj, min(version, rv)), obj, now))
    return sorted(changes, key=lambda event: (event.rv, event.type != "DELETED"))
