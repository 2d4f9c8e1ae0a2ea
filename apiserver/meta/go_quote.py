"""Quotes text as Go's strconv.Quote does, which is `%q` in Kubernetes' messages. Pure."""

from __future__ import annotations

_ESCAPES = {
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
    "\\": "\\\\",
    '"': '\\"',
}


def _escape(character: str) -> str:
    if character.isprintable():
        return character
    code = ord(character)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


class _Escapes(dict[int, str]):
    """The escapes by code point. Those beyond ASCII are not kept: there are a million of them."""

    def __missing__(self, code: int) -> str:
        return _escape(chr(code))


_TABLE = _Escapes({code: _ESCAPES.get(chr(code)) or _escape(chr(code)) for code in range(128)})


def go_quote(text: str) -> str:
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    # a list of escaped characters would take fifty bytes for each (ATTACK-19)
    return f'"{text.translate(_TABLE)}"'
