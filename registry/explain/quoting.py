"""Names of users and groups in texts: any text is a name, also one that looks like several. Pure."""

from __future__ import annotations

import re
from shlex import quote

from apiserver.meta.go_quote import go_quote

_PLAIN = re.compile(r"[^\s,;\"'\\]+")


def quoted_name(name: str) -> str:
    """The name, in quotes if a reader could take it for several, or for more than a name."""
    return name if name.isprintable() and _PLAIN.fullmatch(name) else go_quote(name)


def quoted_argument(name: str) -> str:
    """The name as a word of a shell command that can be printed: $'…' (POSIX.1-2024, 2.2.4), with the bytes of other
    characters in octal, which has the same meaning whatever follows."""
    if name.isprintable():
        return quote(name)
    return f"$'{''.join(map(_escaped, name))}'"


def _escaped(character: str) -> str:
    if character in "\\'":
        return f"\\{character}"
    if character.isprintable():
        return character
    return "".join(f"\\{byte:03o}" for byte in character.encode("utf-8", "surrogatepass"))
