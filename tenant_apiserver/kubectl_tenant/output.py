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
_NOT_ASCII = re.compile(r"[^\n\x20-\x7e]")
_AS_PLAIN_TEXT = "kubectl-tenant-plain"


def degrade_characters() -> None:
    """Lets stdout and stderr write each character that their encoding lacks as one of ASCII, or escaped."""
    codecs.register_error(_AS_PLAIN_TEXT, _plain)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_AS_PLAIN_TEXT)


def write(
    arguments: argparse.Namespace, document: Object, text: Callable[[], str], advice: Callable[[], str] | None = None
) -> None:
    """Writes the document in the form that -o names, or else the text. If that is empty, the advice goes to stderr, as
    kubectl's "No resources found" does, so that what reads the output gets rows alone."""
    if arguments.output in ("json", "yaml"):
        sys.stdout.flush()
        # as kubectl does, whatever the encoding of the terminal is
        sys.stdout.buffer.write(_encoded(document, arguments.output))
    elif shown := text():
        sys.stdout.write(shown)
    elif advice is not None:
        sys.stderr.write(advice())
    sys.stdout.flush()


def colour() -> bool:
    """True on a terminal, unless the user wants none."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def _encoded(document: Object, form: str) -> bytes:
    """Both forms escape what controls a terminal, or hides or turns other characters."""
    return _yaml(document) if form == "yaml" else _json(document)


def _json(document: Object) -> bytes:
    # JSON escapes those of ASCII alone, and a terminal obeys the others, too
    return (_NOT_ASCII.sub(_escaped, json.dumps(document, indent=4, ensure_ascii=False)) + "\n").encode()


def _yaml(document: Object) -> bytes:
    # imported late, because the other forms need no YAML
    from apiserver.encoding.list_formats import to_ascii_yaml, to_yaml

    text = to_yaml(json.dumps(document).encode())
    if all(line.isprintable() for line in text.decode().split("\n")):
        return text
    # YAML has one escape for all of them, and PyYAML uses it for all that is not ASCII, or for none
    return to_ascii_yaml(document)


def _escaped(found: re.Match[str]) -> str:
    return found[0] if found[0].isprintable() else json.dumps(found[0])[1:-1]


def _plain(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    missing = error.object[error.start : error.end]
    return "".join(_PLAIN.get(each) or each.encode("unicode_escape").decode() for each in missing), error.end
