"""Tables, bars and colours of the plugin's output. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

_COLOURS = {"True": "32", "False": "31", "Unknown": "33"}
_BAR = 10


def printable(text: str) -> str:
    """The text with every character escaped that could control a terminal, or hide others: messages and names come
    from objects, and anybody may have written them. kubectl does the same."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def printable_lines(text: str) -> str:
    """The text with each of its lines printable."""
    return "\n".join(printable(each) for each in text.split("\n"))


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns three blanks apart, as kubectl prints them; the last one is not padded."""
    lines = [list(columns), *([printable(cell) or "-" for cell in row] for row in rows)]
    widths = [max(len(line[at]) for line in lines) for at in range(len(columns))]
    padded = ("   ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines)
    return "".join(f"{line.rstrip()}\n" for line in padded)


def bar(used: Fraction, limit: Fraction) -> str:
    """Ten places, filled in proportion; any use fills at least one, and only a full quota all of them."""
    share = min(used / limit, Fraction(1)) if limit > 0 else Fraction(1)
    filled = int(share * _BAR)
    if 0 < share < Fraction(1, _BAR):
        filled = 1
    return "█" * filled + "░" * (_BAR - filled)


def coloured(text: str, status: str, *, colour: bool) -> str:
    """The text in the colour of a status: green, red or yellow."""
    return f"\x1b[{_COLOURS[status]}m{text}\x1b[0m" if colour and status in _COLOURS else text
