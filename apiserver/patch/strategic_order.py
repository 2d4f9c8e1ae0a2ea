"""The order of a list that a strategic merge patch has merged: the patch's own, with what it does not name between."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from apiserver.meta import field_path as fieldpath
from apiserver.meta.errors import BadRequest

_Placed = tuple[int | None, Any]
"""Where an element stood in the list before, if it did, and the element."""


@dataclass(frozen=True, slots=True)
class ElementIdentity:
    """What tells the elements of a list apart: the field `key` of objects, without one the value itself."""

    key: str = ""

    def merge_key_value(self, element: Any) -> Any:
        """Raises BadRequest for an object without its key."""
        if not self.key:
            return element
        if not isinstance(element, dict) or self.key not in element:
            raise BadRequest(f"error decoding patch: an element of a list does not contain its merge key: {self.key}")
        return element[self.key]

    def check_merge_keys(self, elements: Sequence[Any]) -> None:
        """Raises BadRequest unless all have their key."""
        for each in elements:
            self.merge_key_value(each)

    def text(self, element: Any) -> str:
        """The same for elements of one identity. Raises BadRequest as `of` does."""
        return fieldpath.value_element(self.merge_key_value(element))

    def positions(self, order: Sequence[Any]) -> dict[str, int]:
        """Where in `order` each identity stands first, by its text."""
        found: dict[str, int] = {}
        for index, each in enumerate(order):
            found.setdefault(self.text(each), index)
        return found


def restore_order(
    merged: Sequence[Any], *, held: Sequence[Any], wanted: Sequence[Any], identity: ElementIdentity
) -> list[Any]:
    """`merged` with the elements that `wanted` names in its order, and the others in that of `held`.

    One of the others comes before an element of `wanted` where it stood before it in `held`, and behind it otherwise.
    """
    asked, stood = identity.positions(wanted), identity.positions(held)
    named: list[tuple[int, _Placed]] = []
    others: list[_Placed] = []
    for each in merged:
        text = identity.text(each)
        place = asked.get(text)
        placed = stood.get(text), each
        if place is not None:
            named.append((place, placed))
        else:
            others.append(placed)
    first = [placed for _, placed in sorted(named, key=lambda pair: pair[0])]
    return _interleaved(sorted(others, key=lambda placed: placed[0] or 0), first)


def _interleaved(others: list[_Placed], named: list[_Placed]) -> list[Any]:
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
