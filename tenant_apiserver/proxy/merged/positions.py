"""The resourceVersions that clients have been told, with what they mean for a watch that goes on from there.

The streams of a merged watch are not in step: the version of an event may be beyond that of an event of another stream
that the client never got. And since it was told, the caller may have been granted or denied namespaces.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Final

from tenant_apiserver.proxy.merged.frames import NO_FORM, Form
from tenant_apiserver.proxy.merged.told_objects import ToldObjects, union

_MAX_WEIGHT: Final = 200_000


@dataclass(frozen=True, slots=True)
class Position:
    """At `time` of the monotonic clock, or later, the client has everything up to `version`. `told` are the objects
    that it has, None if they are not known. A watch goes on to change them: a client of an earlier position gets the
    events of the objects that it does not know yet."""

    time: float
    version: int
    told: ToldObjects | None = None
    form: Form = NO_FORM


@dataclass(slots=True)
class _Counted:
    """Objects that are told, which many positions share. `size` is the last known number, `positions` that of the
    positions that have them."""

    told: ToldObjects
    size: int = 0
    positions: int = 0


class Positions:
    """Remembers the latest positions, as long as they and the objects that their clients have been told of are at most
    200,000 together. Replicas do not share them (docs/proxy.md says what that means)."""

    def __init__(self, max_weight: int = _MAX_WEIGHT) -> None:
        self._max_weight = max_weight
        # several watches of one client may have told a version, each with objects of its own
        self._positions: OrderedDict[tuple[Hashable, str], dict[int, Position]] = OrderedDict()
        self._counted: dict[int, _Counted] = {}
        self._weight = 0

    @property
    def weight(self) -> int:
        return self._weight

    def remember(self, client: Hashable, version: str, position: Position) -> None:
        """`client` stands for an identity and a list with its selectors. Of two positions at one version the earlier
        one holds."""
        positions = self._positions.setdefault((client, version), {})
        self._positions.move_to_end((client, version))
        before = positions.get(id(position.told))
        if before is None:
            self._weight += 1
        else:
            position = _earlier(before, position)
        positions[id(position.told)] = position
        if position.told is not None:
            self._count(position.told, is_new=before is None)
        while self._weight > self._max_weight:
            self._drop_oldest()

    def find(self, client: Hashable, version: str) -> Position | None:
        found = list(self._positions.get((client, version), {}).values())
        if not found:
            return None
        told = [each.told for each in found if each.told is not None]
        return Position(
            min(each.time for each in found),
            min(each.version for each in found),
            (told[0] if len(told) == 1 else union(told)) if len(told) == len(found) else None,
            found[-1].form,
        )

    def _count(self, told: ToldObjects, *, is_new: bool) -> None:
        counted = self._counted.setdefault(id(told), _Counted(told))
        counted.positions += is_new
        self._weight += told.size - counted.size
        counted.size = told.size

    def _drop_oldest(self) -> None:
        _, positions = self._positions.popitem(last=False)
        self._weight -= len(positions)
        for each in positions.values():
            if each.told is None:
                continue
            counted = self._counted[id(each.told)]
            counted.positions -= 1
            if not counted.positions:
                self._weight -= counted.size
                del self._counted[id(each.told)]


def _earlier(one: Position, other: Position) -> Position:
    return replace(other, time=min(one.time, other.time), version=min(one.version, other.version))
