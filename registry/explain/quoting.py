"""Names of users and groups in texts: any text is a name, also one that looks like several. Pure."""

from __future__ import annotations

import re

from apiserver.meta.go_quote import go_quote

_PLAIN = re.compile(r"[^\s,;\"'\\]+")


def quoted_name(name: str) -> str:
    """The name, in quotes if a reader could take it for several, or for more than a name."""
    return name if name.isprintable() and _PLAIN.fullmatch(name) else go_quote(name)
