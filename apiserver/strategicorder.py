"""The order of a list that a strategic merge patch has merged: the patch's own, with what it does not name between."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from apiserver.errors import BadRequest
from apiserver.jsonvalue import equal


@dataclass(frozen=True, slots=True)
class Identity:
    """What tells the elements of a list apart: the field `key` of objects, without one the value itself."""

    key: str = ""

    def of(self, element: Any) -> Any:
        """Raises BadRequest for an object without its key."""
        if not self.key:
            return element
        if not isinstance(element, dict) or self.key not in element:
            raise BadRequest(f"error decoding patch: an element of a list does not contain its merge key: {self.key}")
        return element[self.key]

    def check(self, elements: Sequence[Any]) -> None:
        """Raises BadRequest unless all have their key."""
        for each in elements:
            self.of(each)

    def place(self, element: Any, order: Sequence[Any]) -> int | None:
        """Where an element of this identity stands in `order`."""
        wanted = self.of(element)
        return next((index for index, each in enumerate(order) if equal(self.of(each), wanted)), None)


def ordered(merged: Sequence[Any], *, held: Sequence[Any], wanted: Sequence[Any], identity: Identity) -> list[Any]:
    """`merged` with the elements that `wanted` names in its order, and the others in that of `held`.

    One of the others comes before an element of `wanted` where it stood before it in `held`, and behind it otherwise.
    """
    named: list[tuple[int, Any]] = []
    others: list[tuple[int, Any]] = []
    for each in merged:
        place = identity.place(each, wanted)
        if place is not None:
            named.append((place, each))
        else:
            others.append((identity.place(each, held) or 0, each))
    first = [each for _, each in sorted(named, key=lambda pair: pair[0])]
    second = [each for _, each in sorted(others, key=lambda pair: pair[0])]
    return _interleaved(second, first, held, identity)


def _interleaved(others: list[Any], named: list[Any], held: Sequence[Any], identity: Identity) -> list[Any]:
    result: list[Any] = []
    left, right = 0, 0
    while left < len(others) and right < len(named):
        before, after = identity.place(others[left], held), identity.place(named[right], held)
        if before is not None and after is not None and before < after:
            result.append(others[left])
            left += 1
        else:
            result.append(named[right])
            right += 1
    return [*result, *others[left:], *named[right:]]
