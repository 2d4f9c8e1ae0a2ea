"""The order of a list after a strategic merge: that of the patch, with the other elements in between."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from apiserver.meta import field_path as fieldpath
from apiserver.meta.errors import BadRequest

_Positioned = tuple[int | None, Any]
"""An element with its position in the list before the merge, None if it is new."""


@dataclass(frozen=True, slots=True)
class ElementIdentity:
    """Identifies the elements of a list: by the value of their merge `key` or, without a key, by the whole value."""

    key: str = ""

    def merge_key_value(self, element: Any) -> Any:
        """Raises BadRequest for an object without its key."""
        if not self.key:
            return element
        if not isinstance(element, dict) or self.key not in element:
            raise BadRequest(f"error decoding patch: an element of a list does not contain its merge key: {self.key}")
        return element[self.key]

    def check_merge_keys(self, elements: Sequence[Any]) -> None:
        """Raises BadRequest if an element has no merge key."""
        for each in elements:
            self.merge_key_value(each)

    def text(self, element: Any) -> str:
        """Returns a text that is equal for elements of one identity. Raises BadRequest for an object without its
        key."""
        return fieldpath.value_element(self.merge_key_value(element))

    def positions(self, order: Sequence[Any]) -> dict[str, int]:
        """Returns the first position of each identity in `order`, by its text."""
        found: dict[str, int] = {}
        for index, each in enumerate(order):
            found.setdefault(self.text(each), index)
        return found


def sort_merged(
    merged: Sequence[Any], *, existing: Sequence[Any], order: Sequence[Any], identity: ElementIdentity
) -> list[Any]:
    """Sorts `merged`: elements of `order` in its order, the others in the order of `existing`.

    An element that is not in `order` precedes one of `order` if it did so in `existing`, and follows it otherwise.
    """
    order_positions, existing_positions = identity.positions(order), identity.positions(existing)
    named: list[tuple[int, _Positioned]] = []
    others: list[_Positioned] = []
    for each in merged:
        text = identity.text(each)
        position = order_positions.get(text)
        positioned = existing_positions.get(text), each
        if position is not None:
            named.append((position, positioned))
        else:
            others.append(positioned)
    first = [positioned for _, positioned in sorted(named, key=lambda pair: pair[0])]
    return _interleave(sorted(others, key=lambda positioned: positioned[0] or 0), first)


def _interleave(others: list[_Positioned], named: list[_Positioned]) -> list[Any]:
    result: list[Any] = []
    left, right = 0, 0
    while left < len(others) and right < len(named):
        before, after = others[left][0], named[right][0]
        if before is not None and after is not None and before < after:
            result.append(others[left][1])
            left += 1
        else:
            result.append(named[right][1])
            right += 1
    return [*result, *(each for _, each in others[left:]), *(each for _, each in named[right:])]
