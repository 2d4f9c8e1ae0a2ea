"""Quantities with the form in which Kubernetes stores them (apimachinery/pkg/api/resource), on which the results of
`isInteger` and `asInteger` depend: `1000m` is equal to `1`, but no integer. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from registry import quantity

# the text is a valid quantity
_PARTS = re.compile(r"[+-]?0*(?P<whole>[0-9]*)(?:\.(?P<fraction>[0-9]*))?(?P<suffix>.*)", re.DOTALL)
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {suffix: 10 * power for power, suffix in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), start=1)}
_MOST_DIGITS = 18
_NANO = -9
# No integer that is not zero has a larger power of ten.
_LARGEST_SCALE = 40


@dataclass(frozen=True, slots=True)
class Amount:
    """`value` is a 64-bit integer times 10^scale; if `scale` is None, Kubernetes stores it with any precision."""

    value: Fraction
    scale: int | None

    def as_int64(self) -> int | None:
        """The integer, None if Kubernetes does not take the amount for one."""
        if self.scale is None or self.scale < 0 or not _fits(self.value):
            return None
        return self.value.numerator


def parse_amount(text: str) -> Amount:
    """Raises ValueError with the message of Kubernetes."""
    return Amount(quantity.parse(text), _scale_of(text))


def of_integer(number: int) -> Amount:
    return Amount(Fraction(number), 0)


def add(left: Amount, right: Amount) -> Amount:
    return Amount(left.value + right.value, _scale_of_sum(left, right))


def subtract(left: Amount, right: Amount) -> Amount:
    return add(left, Amount(-right.value, right.scale))


def _scale_of(text: str) -> int | None:
    parts = _PARTS.fullmatch(text)
    assert parts is not None
    whole, fraction, suffix = parts["whole"] or "0", parts["fraction"] or "", parts["suffix"]
    if (binary := _BINARY.get(suffix)) is not None:
        # an estimate of the digits, and not for 1.0Ki
        return 0 if not fraction and len(whole) + int(binary * 3 / 10) < 15 else None
    if len(whole) + len(fraction) > _MOST_DIGITS:
        return None
    scale = (_DECIMAL[suffix] if suffix in _DECIMAL else _exponent(suffix[1:])) - len(fraction)
    return min(scale, _LARGEST_SCALE) if scale >= _NANO else None


def _exponent(digits: str) -> int:
    """The exponent, limited to a size that decides nothing."""
    significant = digits.lstrip("+-").lstrip("0")
    size = int(significant or "0") if len(significant) < 4 else 1000
    return -size if digits.startswith("-") else size


def _scale_of_sum(left: Amount, right: Amount) -> int | None:
    if left.scale is None or right.scale is None:
        return None
    if not right.value:
        return left.scale
    if not left.value:
        return right.scale
    scale = min(left.scale, right.scale)
    unit = Fraction(10) ** scale
    fits = all(_fits(each / unit) for each in (left.value, right.value, left.value + right.value))
    return scale if fits else None


def _fits(number: Fraction) -> bool:
    return number.denominator == 1 and -(2**63) <= number.numerator < 2**63
