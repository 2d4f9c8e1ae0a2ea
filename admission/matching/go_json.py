"""JSON exactly as Go's encoding/json writes it, for audit annotations that match Kubernetes' byte for byte."""

from __future__ import annotations

import json

_ESCAPED = "<>&\u2028\u2029"


def go_json(value: object) -> str:
    """Compact JSON with keys in the order of `value` and with <, > and & escaped."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    for character in _ESCAPED:
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
