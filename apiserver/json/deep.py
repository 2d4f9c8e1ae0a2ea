"""JSON that nests however deep: beyond what is ever looked at, it is carried along as the text that it came as.

Kubernetes takes objects that nest ten thousand levels (sigs.k8s.io/json); our parser takes none of more than 1024, and
our encoder none of more than 254. One such object may keep nobody from seeing all the others.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import orjson

from apiserver.json.values import MAX_OBJECT_NESTING

# How a text begins that holds what was not read: with a space, which means nothing in JSON.
_UNREAD_INSIDE = b" "
_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+"|[\[\]{}]', re.DOTALL)


class RawJson(NamedTuple):
    """An object or list below MAX_OBJECT_NESTING others, in a value that nests too deeply to be read as a whole."""

    text: str


def loads(text: bytes | str) -> Any:
    """The value of a JSON text, in which an Unread stands for what nests too deeply. Raises ValueError."""
    try:
        value = orjson.loads(text)
        if may_be_deep(text):
            # it can be read; this is the fastest way to know whether it can be written again
            orjson.dumps(value)
    except (ValueError, TypeError):
        return _partly_read(text if isinstance(text, str) else text.decode())
    return value


def loads_dumped(text: bytes) -> Any:
    """`loads` of what `dumps` gave: without a look at all of it for what nests too deeply."""
    return _partly_read(text.decode()) if text.startswith(_UNREAD_INSIDE) else orjson.loads(text)


def dumps(value: Any) -> bytes:
    """Compact JSON of what `loads` gave, or of anything else that orjson takes. Raises TypeError."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return _with_unread(value)


def may_be_deep(text: bytes | str) -> bool:
    """Whether what it says can nest more than MAX_OBJECT_NESTING levels; False for all but few."""
    if isinstance(text, bytes):
        return text.count(b"{") + text.count(b"[") > MAX_OBJECT_NESTING
    return text.count("{") + text.count("[") > MAX_OBJECT_NESTING


def find_container_end(text: str, start: int) -> int | None:
    """Where the object or list ends that begins there, None if it has no end."""
    depth = 0
    for token in _TOKEN.finditer(text, start):
        if token[0] in "[{":
            depth += 1
        elif token[0] in "]}":
            depth -= 1
            if not depth:
                return token.end()
    return None


def _partly_read(text: str) -> Any:
    """Each deep value gives its place to a string that nobody can have foreseen, and is put there again."""
    mark, unread, pieces, at = secrets.token_hex(), dict[str, RawJson](), list[str](), 0
    for start, end in _deep(text):
        name = f"{mark}{start}"
        unread[name] = RawJson(text[start:end])
        pieces += (text[at:start], f'"{name}"')
        at = end
    value = orjson.loads("".join((*pieces, text[at:])))
    _put_back([value], unread)
    return value


def _with_unread(value: Any) -> bytes:
    # not by orjson.Fragment: that of 3.13 writes beyond its memory where brackets of 70 levels close after it
    mark, texts = secrets.token_hex(), list[bytes]()

    def take(each: object) -> str:
        if not isinstance(each, RawJson):
            raise TypeError(f"{type(each).__name__} is no JSON")
        texts.append(each.text.encode())
        return f"{mark}{len(texts) - 1}"

    data = _UNREAD_INSIDE + orjson.dumps(value, default=take)
    return re.sub(f'"{mark}([0-9]+)"'.encode(), lambda found: texts[int(found[1])], data)


def _deep(text: str) -> Iterator[tuple[int, int]]:
    """Where the outermost values are that stand below MAX_OBJECT_NESTING others."""
    depth, start = 0, 0
    for token in _TOKEN.finditer(text):
        if token[0] in "[{":
            depth += 1
            if depth == MAX_OBJECT_NESTING + 1:
                start = token.start()
        elif token[0] in "]}":
            if depth == MAX_OBJECT_NESTING + 1:
                yield start, token.end()
            depth -= 1


def _put_back(value: Any, unread: Mapping[str, RawJson]) -> None:
    waiting = [value]
    while waiting:
        container = waiting.pop()
        for key, each in _entries(container):
            if isinstance(each, dict | list):
                waiting.append(each)
            elif isinstance(each, str) and each in unread:
                container[key] = unread[each]


def _entries(container: dict[str, Any] | list[Any]) -> Iterable[tuple[Any, Any]]:
    return tuple(container.items()) if isinstance(container, dict) else enumerate(container)
