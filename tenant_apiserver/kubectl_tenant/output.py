"""Writes the output of the plugin: text for a terminal, JSON and YAML."""

from __future__ import annotations

import argparse
import codecs
import io
import json
import os
import re
import sys
from collections.abc import Callable

from apiserver.meta.resource import Object

_PLAIN = {
    "█": "#",
    "░": ".",
    "└": "`",
    "├": "|",
    "│": "|",
    "─": "-",
    "✓": "+",
    "✗": "x",
    "→": ">",
    "…": ".",
}
_CONTROLS = re.compile(r"[\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
_AS_PLAIN_TEXT = "kubectl-tenant-plain"


def degrade_characters() -> None:
    """Lets stdout and stderr write each character that their encoding lacks as one of ASCII, or escaped."""
    codecs.register_error(_AS_PLAIN_TEXT, _plain)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_AS_PLAIN_TEXT)


def write(arguments: argparse.Namespace, document: Object, text: Callable[[], str]) -> None:
    """Writes the document in the form that -o names, or else the text."""
    if arguments.output in ("json", "yaml"):
        sys.stdout.flush()
        # as kubectl does, whatever the encoding of the terminal is
        sys.stdout.buffer.write(_encoded(document, arguments.output))
    else:
        sys.stdout.write(text())
    sys.stdout.flush()


def colour() -> bool:
    """True on a terminal, unless the user wants none."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def _encoded(document: Object, form: str) -> bytes:
    if form == "yaml":
        # imported late, because the other forms need no YAML
        from apiserver.encoding.list_formats import to_yaml

        return to_yaml(json.dumps(document).encode())
    text = json.dumps(document, indent=4, ensure_ascii=False)
    # JSON escapes those of ASCII alone, and a terminal obeys the others, too
    return (_CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text) + "\n").encode(errors="backslashreplace")


def _plain(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    missing = error.object[error.start : error.end]
    return "".join(_PLAIN.get(each) or each.encode("unicode_escape").decode() for each in missing), error.end
