"""Kubernetes quantities such as 500m, 1.5, 20Gi and 1e3, as exact numbers. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
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
# Longer quantities are rejected; larger exponents saturate to the largest or the smallest value.
_LONGEST = 128
_EXPONENT_LIMIT = 256

FORMAT_ERROR = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


def parse(quantity: str | int) -> Fraction:
    """The exact value as Kubernetes stores it: rounded away from zero to whole 1n, and limited to 2^63-1.

    Raises ValueError with the message of Kubernetes.
    """
    if isinstance(quantity, int):
        return max(-_LARGEST, min(_LARGEST, Fraction(quantity)))
    match = _QUANTITY.fullmatch(quantity) if len(quantity) <= _LONGEST else None
    if match is None:
        raise ValueError(FORMAT_ERROR)
    number = Fraction(match["number"].rstrip(".") or "0") * _scale(match["suffix"], match["exponent"])
    number = min(_LARGEST, math.ceil(number / _SMALLEST) * _SMALLEST)
    return -number if match["sign"] == "-" else number


def _scale(suffix: str, exponent: str | None) -> Fraction:
    if exponent is not None:
        return Fraction(10) ** max(-_EXPONENT_LIMIT, min(_EXPONENT_LIMIT, int(exponent)))
    if suffix in _BINARY:
        return Fraction(_BINARY[suffix])
    return Fraction(10) ** _DECIMAL[suffix]


def canonical(quantity: str | int) -> str:
    """The quantity as Kubernetes writes it back: `1024Mi` is 1Gi, `0.5` is 500m, `1000m` is 1. Raises ValueError."""
    value = parse(quantity)
    match = _QUANTITY.fullmatch(str(quantity))
    if match is not None and match["exponent"] is not None:
        return _with_suffix(value, 1000, [f"e{3 * power}" if power else "" for power in range(7)])
    # a binary suffix is used only for whole numbers from 1Ki on
    if match is not None and match["suffix"] in _BINARY and abs(value) >= 1024 and value.denominator == 1:
        return _with_suffix(value, 1024, ["", *_BINARY])
    return _with_suffix(value, 1000, ["", "k", "M", "G", "T", "P", "E"])


def _with_suffix(value: Fraction, factor: int, suffixes: Sequence[str]) -> str:
    """Formats the value with the largest suffix that leaves a whole number before it."""
    power = 0
    while value and power + 1 < len(suffixes) and (value / factor ** (power + 1)).denominator == 1:
        power += 1
    if not power:
        return to_text(value)
    return f"{(value / factor**power).numerator}{suffixes[power]}"


def to_text(value: Fraction) -> str:
    """The value as a decimal quantity: a whole number, or an exact multiple of m, u or n."""
    for suffix, factor in (("", 1), ("m", 10**3), ("u", 10**6), ("n", 10**9)):
        scaled = value * factor
        if scaled.denominator == 1:
            return f"{scaled.numerator}{suffix}"
    return f"{math.ceil(value * 10**9)}n"
