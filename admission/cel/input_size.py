"""Decides from the size of a request whether an expression takes long. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from admission.cel.budget import CutOff
from admission.cel.loops import LoopShape
from apiserver.encoding.encoded_object import to_json

# The values are converted, and functions may read a text as a whole.
_LONGEST_TEXT = 64 * 1024
_MOST_VALUES = 10_000
_NUL = b"\\u0000"
# On the event loop, about five milliseconds.
_STEPS = 20_000
# The CEL library ends an evaluation after 9,999.
_ITERATIONS = 5_000


@dataclass(frozen=True, slots=True)
class InputSize:
    """The length of the longest list or map, the length of the longest text, the number of all values, and whether a
    text contains a NUL character."""

    longest: int = 0
    longest_text: int = 0
    total: int = 0
    has_nul: bool = False


class EvaluationInput:
    """JSON values that expressions read."""

    def __init__(self, *values: Any) -> None:
        self._values = values

    def including(self, value: Any) -> EvaluationInput:
        return EvaluationInput(*self._values, value)

    def is_short(self, shape: LoopShape) -> bool:
        """True if expressions of this shape take a few milliseconds at most: they are evaluated on the event loop."""
        return is_short(shape, self._upper_bound) or is_short(shape, self._size)

    def require_no_nul(self) -> None:
        """Raises CutOff if a text contains a NUL character, because the CEL library truncates it there."""
        if self._upper_bound.has_nul and self._size.has_nul:
            raise CutOff("the object contains a NUL character, which expressions cannot read")

    @cached_property
    def _upper_bound(self) -> InputSize:
        """Nothing is larger than this. It takes a tenth of the time of `_size`."""
        json = to_json(self._values)
        return InputSize(len(json) // 2, len(json), len(json) // 2, _NUL in json)

    @cached_property
    def _size(self) -> InputSize:
        return input_size(list(self._values))


def input_size(value: Any) -> InputSize:
    """Measures a JSON value."""
    longest = longest_text = total = 0
    has_nul = False
    pending = [value]
    while pending:
        each = pending.pop()
        total += 1
        if isinstance(each, str):
            if len(each) > longest_text:
                longest_text = len(each)
            has_nul = has_nul or "\0" in each
        elif isinstance(each, dict):
            if len(each) > longest:
                longest = len(each)
            pending += each
            pending += each.values()
        elif isinstance(each, list):
            if len(each) > longest:
                longest = len(each)
            pending += each
    return InputSize(longest, longest_text, total, has_nul)


def require_no_nul(size: InputSize) -> None:
    """Raises CutOff if expressions would read a truncated text."""
    if size.has_nul:
        raise CutOff("the object contains a NUL character, which expressions cannot read")


def is_short(shape: LoopShape, size: InputSize) -> bool:
    if size.longest_text > _LONGEST_TEXT or size.total > _MOST_VALUES:
        return False
    if not shape.depth:
        return True
    if shape.unbounded:
        return False
    length = max(size.longest, shape.literals)
    if shape.splits_text:
        length = max(length, size.longest_text)
    if shape.flattens:
        length = max(length, size.total)
    iterations: int = length**shape.depth
    return iterations <= _ITERATIONS and iterations * (length if shape.builds_list else 1) <= _STEPS
