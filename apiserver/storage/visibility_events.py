"""What a watch is told when its reader comes to see more, or less, than before (ATTACK-05). Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from apiserver.encoding.encoded_object import CachedObject, bare
from apiserver.meta.resource import Key, Resource
from apiserver.storage.event_history import Disclosure, Event
from apiserver.storage.visibility import SightChange, place_of


def disclosures(
    resource: Resource,
    objects: Iterable[CachedObject],
    change: SightChange,
    *,
    at: int,
    unknown: Collection[Key] = (),
) -> list[Disclosure]:
    """ADDED of what has come into sight, and of what has left it DELETED, with no more than the name of it. The
    reader has never been told of what is `unknown`. `at` is how far the cache is."""
    told = []
    for obj in objects:
        place = place_of(resource, obj.key)
        if change.gained(place):
            told.append(Disclosure("ADDED", obj, at))
        elif change.lost(place) and obj.key not in unknown:
            told.append(_hidden(resource, obj, change, at))
    return told


def disclosures_of_absence(
    resource: Resource, missed: Sequence[Event], change: SightChange, *, at: int
) -> list[Disclosure]:
    """DELETED of what has left both sight and the cache while the reader was away."""
    new = unknown_since(missed)
    gone = [event.object for event in missed if event.type == "DELETED" and event.object.key not in new]
    return [_hidden(resource, obj, change, at) for obj in gone if change.lost(place_of(resource, obj.key))]


def unknown_since(missed: Sequence[Event]) -> frozenset[Key]:
    """What was not there yet when the reader left."""
    return frozenset(event.object.key for event in missed if event.previous is None)


def _hidden(resource: Resource, obj: CachedObject, change: SightChange, at: int) -> Disclosure:
    return Disclosure("DELETED", bare(resource, obj, change.rv), at)
