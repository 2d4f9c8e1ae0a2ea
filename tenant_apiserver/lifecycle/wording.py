"""Numbers of things in the lines that operators read. Pure."""

from __future__ import annotations


def counted(number: int | None, one: str, several: str = "") -> str:
    """Such as `1 object` and `2 objects`. `several` is for plurals that do not just add an s; None is a number that is
    not known."""
    words = one if number == 1 else several or f"{one}s"
    return f"{'an unknown number of' if number is None else number} {words}"
