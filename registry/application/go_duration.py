"""Durations in Go's notation, as Flux reads and writes them. Pure."""

from __future__ import annotations

import re
from fractions import Fraction

_DURATION = re.compile(r"(?:[0-9]+(?:\.[0-9]+)?(?:ms|s|m|h))+")
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h)")
_UNITS = {"ms": Fraction(1, 1000), "s": Fraction(1), "m": Fraction(60), "h": Fraction(3600)}
_MAX_LENGTH = 64
_MAX_SECONDS = 2**63 // 10**9


def canonical_duration(text: str) -> str:
    """The duration as Go prints it: 15m is 15m0s. Raises ValueError for a text that is no duration."""
    if len(text) > _MAX_LENGTH or not _DURATION.fullmatch(text):
        raise ValueError(f'"{text[:_MAX_LENGTH]}" is no duration such as 15m or 1h30m')
    seconds = sum((Fraction(number) * _UNITS[unit] for number, unit in _PART.findall(text)), Fraction(0))
    if seconds >= _MAX_SECONDS:
        raise ValueError(f'"{text}" is too long a duration')
    if seconds < 1:
        return f"{_number(seconds * 1000)}ms" if seconds else "0s"
    hours, rest = divmod(seconds, 3600)
    minutes, rest = divmod(rest, 60)
    prefix = f"{hours}h{minutes}m" if hours else f"{minutes}m" if minutes else ""
    return f"{prefix}{_number(rest)}s"


def _number(value: Fraction) -> str:
    """At most nanoseconds, without zeros at the end."""
    whole, fraction = divmod(int(value * 10**9), 10**9)
    return f"{whole}.{fraction:09d}".rstrip("0") if fraction else str(whole)
