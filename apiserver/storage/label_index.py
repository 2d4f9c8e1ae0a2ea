"""The keys of a cache's objects by the values of labels, for label keys that lists select by again and again.

A scan of 50,000 objects takes 20 ms, in which no other request is served.
"""

from __future__ import annotations

import time
from bisect import bisect_left, insort
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Final

from apiserver.encoding.encoded_object import CachedObject
from apiserver.meta.resource import Key
from apiserver.meta.selectors import LabelSelector, Requirement

_SELECTIVE: Final = ("In", "Exists")


@dataclass(frozen=True, slots=True)
class LabelIndexLimits:
    """`objects` are the least for which an index is worth its memory of about 60 bytes an object and label. A label is
    indexed from the second list that selects by it. Beyond `labels`, it waits until no list has selected by another one
    for `idle_seconds`."""

    objects: int = 1000
    labels: int = 8
    idle_seconds: float = 60.0


_DEFAULT_LIMITS: Final = LabelIndexLimits()
_REMEMBERED: Final = 64


@dataclass(slots=True)
class _Values:
    """The sorted keys of the objects that have a label, by its value."""

    used: float
    keys: dict[str, list[Key]] = field(default_factory=dict)

    def add(self, value: str, key: Key) -> None:
        insort(self.keys.setdefault(value, []), key)

    def remove(self, value: str, key: Key) -> None:
        keys = self.keys[value]
        del keys[bisect_left(keys, key)]
        if not keys:
            del self.keys[value]

    def matching(self, requirement: Requirement) -> list[list[Key]]:
        if requirement.operator == "Exists":
            return list(self.keys.values())
        return [self.keys[value] for value in set(requirement.values) & self.keys.keys()]


class LabelIndex:
    def __init__(
        self, *, limits: LabelIndexLimits = _DEFAULT_LIMITS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._limits = limits
        self._clock = clock
        self._labels: dict[str, _Values] = {}
        # labels that one list has selected by, the latest ones
        self._asked: OrderedDict[str, None] = OrderedDict()

    def find(self, selector: LabelSelector, objects: Sequence[CachedObject]) -> Sequence[Key] | None:
        """The sorted keys of objects of which all that match the selector are some; None if all `objects`, which are
        sorted, have to be looked at. The requirement that the fewest objects meet decides."""
        if len(objects) < self._limits.objects:
            return None
        found: list[list[Key]] | None = None
        count = len(objects) // 2
        for requirement in selector.requirements:
            values = self._values(requirement.key, objects) if requirement.operator in _SELECTIVE else None
            if values is None:
                continue
            matching = values.matching(requirement)
            if (total := sum(map(len, matching))) <= count:
                found, count = matching, total
        if found is None:
            return None
        return found[0] if len(found) == 1 else sorted(chain.from_iterable(found))

    def update(self, before: CachedObject | None, after: CachedObject | None) -> None:
        """Has to be called with each object that is replaced, added or removed."""
        for label, values in self._labels.items():
            old = before.labels.get(label) if before is not None else None
            new = after.labels.get(label) if after is not None else None
            if old == new:
                continue
            if before is not None and old is not None:
                values.remove(old, before.key)
            if after is not None and new is not None:
                values.add(new, after.key)

    def _values(self, label: str, objects: Iterable[CachedObject]) -> _Values | None:
        """The values of a label, None if it is not worth an index yet."""
        values, now = self._labels.get(label), self._clock()
        if values is not None:
            values.used = now
            return values
        if label not in self._asked:
            self._asked[label] = None
            if len(self._asked) > _REMEMBERED:
                self._asked.popitem(last=False)
            return None
        if not self._has_room(now):
            return None
        del self._asked[label]
        values = self._labels[label] = _Values(now)
        for each in objects:
            if (value := each.labels.get(label)) is not None:
                values.keys.setdefault(value, []).append(each.key)
        return values

    def _has_room(self, now: float) -> bool:
        if len(self._labels) < self._limits.labels:
            return True
        oldest = min(self._labels, key=lambda label: self._labels[label].used)
        if now - self._labels[oldest].used < self._limits.idle_seconds:
            return False
        del self._labels[oldest]
        return True
