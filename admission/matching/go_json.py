"""JSON as Go's encoder writes it, for texts that are compared byte for byte."""

from __future__ import annotations

import json

_ESCAPED = "<>&\u2028\u2029"


def go_json(value: object) -> str:
    """Without spaces, keys in the order of `value`; what HTML would take for markup is escaped."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    for character in _ESCAPED:
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
