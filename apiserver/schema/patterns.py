"""Regular expressions in Go's syntax, for Python's `re`. Pure."""

from __future__ import annotations

import re
from functools import lru_cache

# escapes and classes stay as they are; only anchors and the names of classes differ between the two
_PART = re.compile(r"\\z|\\.|\[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*\]|\$", re.DOTALL)
_NAMED_CLASS = re.compile(r"\[:(\^?)(\w+):\]")
_CLASSES = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "digit": "0-9",
    "lower": "a-z",
    "space": r"\t\n\v\f\r ",
    "upper": "A-Z",
    "word": r"0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}


@lru_cache(maxsize=4096)
def go_pattern(pattern: str) -> re.Pattern[str]:
    """Compiles a pattern. Without (?m), Go's `$` matches at the end of the text only, and its classes such as \\d have
    only ASCII characters. Raises ValueError for a pattern that `re` does not support."""
    multiline = "(?m" in pattern or "(?im" in pattern or "(?sm" in pattern
    try:
        return re.compile(_PART.sub(lambda found: _convert(found[0], multiline=multiline), pattern), re.ASCII)
    except re.error as error:
        raise ValueError(str(error)) from error


def _convert(part: str, *, multiline: bool) -> str:
    if part == "$":
        return part if multiline else r"\Z"
    if part == r"\z":
        return r"\Z"
    if part.startswith("["):
        return _NAMED_CLASS.sub(_named_class, part)
    return part


def _named_class(found: re.Match[str]) -> str:
    if found[1] or found[2] not in _CLASSES:
        raise ValueError(f"invalid character class range: `{found[0]}`")
    return _CLASSES[found[2]]
