"""Strings that occur in several indexes, stored once."""

from __future__ import annotations

from sys import intern
from typing import Final

_MOST_CHARACTERS: Final = 1024


def interned(text: str) -> str:
    """The same text as one object. Long ones stay as they are: names of Kubernetes are shorter, and Python 3.12 never
    frees an interned string (ATTACK-19)."""
    return intern(text) if len(text) <= _MOST_CHARACTERS else text
