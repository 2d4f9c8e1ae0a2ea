"""JSON of any nesting depth: values below MAX_OBJECT_NESTING levels are not parsed but stored as text.

Kubernetes accepts objects with ten thousand levels (sigs.k8s.io/json), while orjson parses at most 1024 levels and
encodes at most 254. One such object in a list must not hide the other objects.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import orjson

from apiserver.json.values import MAX_OBJECT_NESTING

# Prefix of dumped text that contains RawJson. Leading white space has no meaning in JSON.
_RAW_JSON_PREFIX = b" "
_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+"|[\[\]{}]', re.DOTALL)


class RawJson(NamedTuple):
    """The text of an object or list below MAX_OBJECT_NESTING levels, in a value that is too deep to be parsed
    completely."""

    text: str


def loads(text: bytes | str) -> Any:
    """Parses JSON. Values that nest too deeply become RawJson. Raises ValueError."""
    try:
        value = orjson.loads(text)
        if may_be_deep(text):
            # parsing succeeded; encoding is the fastest check whether it can be encoded again
            orjson.dumps(value)
    except (ValueError, TypeError):
        return _parse_partly(text if isinstance(text, str) else text.decode())
    return value


def loads_dumped(text: bytes) -> Any:
    """Parses the result of `dumps`, without scanning it for deep nesting."""
    return _parse_partly(text.decode()) if text.startswith(_RAW_JSON_PREFIX) else orjson.loads(text)


def dumps(value: Any) -> bytes:
    """Encodes a result of `loads`, or any value that orjson supports, as compact JSON. Raises TypeError."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return _dump_with_raw_json(value)


def may_be_deep(text: bytes | str) -> bool:
    """A fast check by the number of brackets; False if the nesting cannot exceed MAX_OBJECT_NESTING levels."""
    if isinstance(text, bytes):
        return text.count(b"{") + text.count(b"[") > MAX_OBJECT_NESTING
    return text.count("{") + text.count("[") > MAX_OBJECT_NESTING


def find_container_end(text: str, start: int) -> int | None:
    """Returns the end of the object or list that begins at `start`, None if it is not closed."""
    depth = 0
    for token in _TOKEN.finditer(text, start):
        if token[0] in "[{":
            depth += 1
        elif token[0] in "]}":
            depth -= 1
            if not depth:
                return token.end()
    return None


def _parse_partly(text: str) -> Any:
    """Parses with a random string in place of each deep value, and replaces these strings by RawJson afterwards."""
    marker, raw, pieces, position = secrets.token_hex(), dict[str, RawJson](), list[str](), 0
    for start, end in _find_deep_values(text):
        placeholder = f"{marker}{start}"
        raw[placeholder] = RawJson(text[start:end])
        pieces += (text[position:start], f'"{placeholder}"')
        position = end
    value = orjson.loads("".join((*pieces, text[position:])))
    _insert_raw_json([value], raw)
    return value


def _dump_with_raw_json(value: Any) -> bytes:
    # not orjson.Fragment: in orjson 3.13 it writes out of bounds if 70 levels of brackets are closed after it
    marker, texts = secrets.token_hex(), list[bytes]()

    def to_placeholder(each: object) -> str:
        if not isinstance(each, RawJson):
            raise TypeError(f"{type(each).__name__} is not JSON serializable")
        texts.append(each.text.encode())
        return f"{marker}{len(texts) - 1}"

    data = _RAW_JSON_PREFIX + orjson.dumps(value, default=to_placeholder)
    return re.sub(f'"{marker}([0-9]+)"'.encode(), lambda found: texts[int(found[1])], data)


def _find_deep_values(text: str) -> Iterator[tuple[int, int]]:
    """Returns start and end of the outermost values below MAX_OBJECT_NESTING levels."""
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


def _insert_raw_json(value: Any, raw: Mapping[str, RawJson]) -> None:
    pending = [value]
    while pending:
        container = pending.pop()
        for key, each in _entries(container):
            if isinstance(each, dict | list):
                pending.append(each)
            elif isinstance(each, str) and each in raw:
                container[key] = raw[each]


def _entries(container: dict[str, Any] | list[Any]) -> Iterable[tuple[Any, Any]]:
    return tuple(container.items()) if isinstance(container, dict) else enumerate(container)
