"""JSON of any nesting depth: values that nest too deeply to be encoded are not parsed but stored as text.

Kubernetes accepts objects with ten thousand levels (sigs.k8s.io/json), while orjson parses at most 1024 levels and
encodes at most 254. One such object in a list must not hide the other objects, nor stop the event loop: brackets are
counted in blocks, by functions written in C, and large texts are parsed in a thread. `loads` takes 0.02 to 0.3 s for
1.3 MB of brackets; one match of a regular expression for each bracket takes 0.2 to 0.9 s (ATTACK-13).
"""

from __future__ import annotations

import re
import secrets
from array import array
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import orjson

from apiserver.json.values import MAX_OBJECT_NESTING

# The first byte of a stored value that contains RawJson: JSON of orjson does not begin with white space.
_STORED_RAW_JSON = b" "
_TOO_DEEP = 255
# The level below which a value that is too deep is stored as text: no field that we read is that deep, and the fewer
# levels are parsed, the fewer have to be searched for the values that were left out.
_PARSED_LEVELS = 16
_BLOCK_BYTES = 256
# a union would be built anew for each of a million values
_CONTAINERS = (dict, list)
_OPENING, _CLOSING = 1, 0xFF
# the change of the nesting level by each character, as a signed byte
_STEPS = bytes(_OPENING if each in b"[{" else _CLOSING if each in b"]}" else 0 for each in range(256))
_WITHOUT_BRACKETS = bytes(ord(" ") if each in b"[]{}" else each for each in range(256))
_NO_BRACKETS_IN_STRINGS = re.compile(rb'(?:[^"]*+"[^"\[\]{}]*+")*+[^"]*+')


class RawJson(NamedTuple):
    """The text of an object or list that is too deep to be parsed, below _PARSED_LEVELS levels."""

    text: str


def loads(text: bytes | str) -> Any:
    """Parses JSON. Values that nest too deeply become RawJson. Raises ValueError."""
    try:
        value = orjson.loads(text)
        if may_be_deep(text):
            # parsing succeeded; encoding is the fastest check whether it can be encoded again
            orjson.dumps(value)
    except (ValueError, TypeError):
        return _parse_partly(text if isinstance(text, bytes) else text.encode())
    return value


def dumps(value: Any) -> bytes:
    """Encodes a result of `loads`, or any value that orjson supports, as compact JSON. Raises TypeError."""
    try:
        return orjson.dumps(value)
    except TypeError:
        data, marker, texts = _dump_with_placeholders(value)
    return re.sub(f'"{marker}([0-9]+)"'.encode(), lambda found: texts[int(found[1])].encode(), data)


def to_stored(value: Any) -> bytes:
    """Encodes a value like `dumps`, for `from_stored`. JSON if the value contains no RawJson. Raises TypeError."""
    try:
        return orjson.dumps(value)
    except TypeError:
        data, marker, texts = _dump_with_placeholders(value)
    return b"".join((_STORED_RAW_JSON, b"[", orjson.dumps(marker), b",", orjson.dumps(texts), b",", data, b"]"))


def from_stored(data: bytes) -> Any:
    """Parses a result of `to_stored`, without searching it for deep values again."""
    if not data.startswith(_STORED_RAW_JSON):
        return orjson.loads(data)
    marker, texts, value = orjson.loads(data)
    return _with_raw_json(value, {f"{marker}{index}": RawJson(text) for index, text in enumerate(texts)})


def may_be_deep(text: bytes | str) -> bool:
    """A fast check by the number of brackets; False if the nesting cannot exceed MAX_OBJECT_NESTING levels."""
    if isinstance(text, bytes):
        return text.count(b"{") + text.count(b"[") > MAX_OBJECT_NESTING
    return text.count("{") + text.count("[") > MAX_OBJECT_NESTING


def find_container_end(text: str, start: int) -> int | None:
    """Returns the end of the object or list that begins at `start`, None if it is not closed."""
    # one byte for each character, so that positions are equal
    for block in _blocks(text[start:].encode("latin-1", errors="replace")):
        if block.lowest <= 0:
            end = _index(block.levels(), 0, at=0 if block.offset else 1)
            if end is not None:
                return start + block.offset + end
    return None


def _parse_partly(text: bytes) -> Any:
    """Parses with a random string in place of each deep value, and replaces these strings by RawJson afterwards."""
    marker, raw, pieces, position = secrets.token_hex(), dict[str, RawJson](), list[bytes](), 0
    for start, end in _find_deep_values(text):
        placeholder = f"{marker}{start}"
        raw[placeholder] = RawJson(text[start:end].decode())
        pieces += (text[position:start], f'"{placeholder}"'.encode())
        position = end
    return _with_raw_json(orjson.loads(b"".join((*pieces, text[position:]))), raw)


def _dump_with_placeholders(value: Any) -> tuple[bytes, str, Sequence[str]]:
    """The JSON of a value with a placeholder for each RawJson: a string of a random marker and its index in the texts,
    which are returned, too. Raises TypeError."""
    # not orjson.Fragment: in orjson 3.13 it writes out of bounds if 70 levels of brackets are closed after it
    marker, texts = secrets.token_hex(), list[str]()

    def to_placeholder(each: object) -> str:
        if not isinstance(each, RawJson):
            raise TypeError(f"{type(each).__name__} is not JSON serializable")
        texts.append(each.text)
        return f"{marker}{len(texts) - 1}"

    return orjson.dumps(value, default=to_placeholder), marker, texts


class _Block(NamedTuple):
    """A part of a text: the changes of the nesting level by its characters, and the level before the first of them."""

    offset: int
    steps: bytes
    level: int

    @property
    def lowest(self) -> int:
        """A level that the block does not fall below."""
        return self.level - self.steps.count(_CLOSING)

    @property
    def highest(self) -> int:
        """A level that the block does not rise above."""
        return self.level + self.steps.count(_OPENING)

    @property
    def end(self) -> int:
        """The level after the block."""
        return self.highest + self.lowest - self.level

    def levels(self) -> list[int]:
        """The levels before each character, and after the last one."""
        return list(accumulate(array("b", self.steps), initial=self.level))


def _blocks(text: bytes) -> Iterator[_Block]:
    """Splits a text into blocks. They are small, so that most of them are far from a given level by their bounds
    already, and their levels need not be computed."""
    steps, level = _without_brackets_in_strings(text).translate(_STEPS), 0
    for offset in range(0, len(steps), _BLOCK_BYTES):
        block = _Block(offset, steps[offset : offset + _BLOCK_BYTES], level)
        yield block
        level = block.end


def _without_brackets_in_strings(text: bytes) -> bytes:
    """The text with blanks in place of these brackets, of escaped characters, and of NUL, which JSON does not have."""
    text = text.replace(b"\\\\", b"  ").replace(b'\\"', b"  ").replace(b"\0", b" ")
    if _NO_BRACKETS_IN_STRINGS.fullmatch(text):
        return text
    parts = text.split(b'"')
    parts[1::2] = b"\0".join(parts[1::2]).translate(_WITHOUT_BRACKETS).split(b"\0")
    return b'"'.join(parts)


def _find_deep_values(text: bytes) -> Iterator[tuple[int, int]]:
    """Returns start and end of each value below _PARSED_LEVELS levels that is too deep to be encoded."""
    start, is_inside = 0, False
    for block in _blocks(text):
        if block.lowest > _PARSED_LEVELS and (is_inside or block.highest < _TOO_DEEP):
            continue
        if block.highest < _TOO_DEEP and block.end <= _PARSED_LEVELS and not is_inside:
            # a deep value that begins later begins behind this block
            continue
        levels, at = block.levels(), 0
        while True:
            if not is_inside:
                deep = _index(levels, _TOO_DEEP, at)
                before = levels[at:deep]
                if (back := _index(before[::-1], _PARSED_LEVELS, 0)) is not None:
                    start = block.offset + at + len(before) - 1 - back
                if deep is None:
                    break
                at, is_inside = deep, True
            end = _index(levels, _PARSED_LEVELS, at)
            if end is None:
                break
            yield start, block.offset + end
            at, is_inside = end, False


def _index(levels: list[int], level: int, at: int) -> int | None:
    """The first position of the level, from `at` on."""
    try:
        return levels.index(level, at)
    except ValueError:
        return None


def _with_raw_json(value: Any, raw: Mapping[str, RawJson]) -> Any:
    """`value` with the entries of `raw` in place of the strings that are their keys. Changes `value`."""
    whole: list[Any] = [value]
    pending: list[Any] = [whole]
    missing = len(raw)
    while pending and missing:
        container = pending.pop()
        for key, each in container.items() if isinstance(container, dict) else enumerate(container):
            if isinstance(each, str):
                if each in raw:
                    container[key] = raw[each]
                    missing -= 1
            elif each and isinstance(each, _CONTAINERS):
                pending.append(each)
    return whole[0]
