"""Kubernetes quantities such as 500m, 1.5, 20Gi and 1e3, as exact numbers. Pure."""

from __future__ import annotations

import math
import re
from fractions import Fraction

_QUANTITY = re.compile(
    r"(?P<sign>[+-]?)(?P<number>[0-9]+(\.[0-9]*)?|\.[0-9]+)"
    r"(?P<suffix>[KMGTPE]i|[numkMGTPE]|[eE](?P<exponent>[+-]?[0-9]+)|)",
    re.ASCII,
)
_BINARY = {suffix: 2 ** (10 * power) for power, suffix in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), start=1)}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_LARGEST = Fraction(2**63 - 1)
_SMALLEST = Fraction(1, 10**9)
# Beyond these, a quantity is the largest or the smallest there is, whatever its digits.
_LONGEST = 128
_EXPONENT_LIMIT = 256

RULE = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


def parse(quantity: str | int) -> Fraction:
    """The exact value, as Kubernetes keeps it: no finer than 1n (rounded away from zero), no more than 2^63-1.

    Raises ValueError with Kubernetes' rule as its text.
    """
    if isinstance(quantity, int):
        return max(-_LARGEST, min(_LARGEST, Fraction(quantity)))
    match = _QUANTITY.fullmatch(quantity) if len(quantity) <= _LONGEST else None
    if match is None:
        raise ValueError(RULE)
    number = Fraction(match["number"].rstrip(".") or "0") * _scale(match["suffix"], match["exponent"])
    number = min(_LARGEST, math.ceil(number / _SMALLEST) * _SMALLEST)
    return -number if match["sign"] == "-" else number


def _scale(suffix: str, exponent: str | None) -> Fraction:
    if exponent is not None:
        return Fraction(10) ** max(-_EXPONENT_LIMIT, min(_EXPONENT_LIMIT, int(exponent)))
    if suffix in _BINARY:
        return Fraction(_BINARY[suffix])
    return Fraction(10) ** _DECIMAL[suffix]


def text(value: Fraction) -> str:
    """A quantity of this value, in decimal form and exact: whole, or in m, u or n."""
    for suffix, factor in (("", 1), ("m", 10**3), ("u", 10**6), ("n", 10**9)):
        scaled = value * factor
        if scaled.denominator == 1:
            return f"{scaled.numerator}{suffix}"
    return f"{math.ceil(value * 10**9)}n"
