"""The resourceVersions that clients have been told, with what they mean for a watch that goes on from there.

The streams of a merged watch are not in step: the version of an event may be beyond that of an event of another stream
that the client never got. And since it was told, the caller may have been granted or denied namespaces.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final

from tenant_apiserver.proxy.merged.frames import NO_FORM, Form, Told

_MAX_WEIGHT: Final = 200_000


@dataclass(frozen=True, slots=True)
class Position:
    """At `time` of the monotonic clock, or later, the client has everything up to `version`. `told` are the objects
    that it has, None if they are not known."""

    time: float
    version: int
    told: Told | None = None
    form: Form = NO_FORM


class Positions:
    """Remembers the latest positions: about 200,000, less the objects of lists. Replicas do not share them
    (docs/proxy.md says what that means)."""

    def __init__(self, max_weight: int = _MAX_WEIGHT) -> None:
        self._max_weight = max_weight
        self._positions: OrderedDict[tuple[Hashable, str], tuple[Position, int]] = OrderedDict()
        self._weight = 0

    def remember(self, client: Hashable, version: str, position: Position, *, weight: int = 1) -> None:
        """`client` stands for an identity and a list with its selectors. Of two positions at one version the earlier
        one holds."""
        key = (client, version)
        before, weight_before = self._positions.pop(key, (None, 0))
        self._weight += weight
        self._positions[key] = (position if before is None else _earlier(before, position), weight_before + weight)
        while self._weight > self._max_weight:
            _, (_, dropped) = self._positions.popitem(last=False)
            self._weight -= dropped

    def find(self, client: Hashable, version: str) -> Position | None:
        found = self._positions.get((client, version))
        return found[0] if found is not None else None


def _earlier(one: Position, other: Position) -> Position:
    told = _union(one.told, other.told)
    return Position(min(one.time, other.time), min(one.version, other.version), told, other.form)


def _union(one: Told | None, other: Told | None) -> Told | None:
    if one is other or one is None or other is None:
        return one if one is other else None
    return {name: {**one.get(name, {}), **other.get(name, {})} for name in {*one, *other}}
