"""The items of a List document, one at a time, out of a byte stream that may be cut anywhere. Pure.

A List of everything can be a hundred times the size of what is kept of it: it is never held as a whole.

Where an item ends is guessed from how items begin, for orjson is several times as fast as the parser that can tell
where a value ends. A guess is right if what it cuts out is an object: no beginning of one is an object itself.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator
from enum import Enum, auto
from typing import Any

from apiserver.json import deep as deepjson
from apiserver.meta.resource import Object
from registry.cluster.watch_decoder import MAX_OBJECT_SIZE, MalformedStream

_DECODER = json.JSONDecoder()
_SPACE = " \t\r\n"
# Items of a list begin alike, up to here at most.
_METADATA = '"metadata":{'
_BEGINNING = 200


class _Expected(Enum):
    DOCUMENT = auto()
    FIELD = auto()
    ITEM = auto()
    NOTHING = auto()


class _Incomplete(Exception):
    """What is looked at has no end yet."""


class ListDecoder:
    """`limit` is the most that may be left over between two chunks: one item, and what stands around it."""

    def __init__(self, *, limit: int = MAX_OBJECT_SIZE) -> None:
        self._utf8 = codecs.getincrementaldecoder("utf-8")()
        self._text = ""
        self._at = 0
        self._limit = limit
        self._expected = _Expected.DOCUMENT
        self._fields: Object = {}
        self._between = ""

    def feed(self, chunk: bytes) -> Iterator[Object]:
        """The items that are whole now. Raises MalformedStream."""
        try:
            self._text = self._text[self._at :] + self._utf8.decode(chunk)
        except UnicodeDecodeError as e:
            raise MalformedStream("the host sent a list that is not UTF-8") from e
        self._at = 0
        while self._expected is not _Expected.NOTHING:
            start = self._at
            try:
                item = self._step()
            except _Incomplete:
                self._at = start
                break
            if item is not None:
                yield item
        if len(self._text) - self._at > self._limit:
            raise MalformedStream(f"the host sent a list with an item of more than {self._limit} characters")

    def metadata(self) -> Object:
        """The List's own metadata, once all was fed. Raises MalformedStream if it was no whole List."""
        metadata = self._fields.get("metadata")
        if self._expected is not _Expected.NOTHING:
            raise MalformedStream("the host sent a list without an end")
        if not isinstance(metadata, dict) or not metadata.get("resourceVersion"):
            raise MalformedStream("the host sent a list without a version")
        return metadata

    def _step(self) -> Object | None:
        if self._expected is _Expected.DOCUMENT:
            self._punctuation("{")
            self._expected = _Expected.FIELD
        elif self._expected is _Expected.FIELD:
            self._field()
        elif self._next() in ",]":
            if self._punctuation(",]") == "]":
                self._expected = _Expected.FIELD
        else:
            return self._item()
        return None

    def _field(self) -> None:
        if self._next() in ",}":
            if self._punctuation(",}") == "}":
                self._expected = _Expected.NOTHING
            return
        name = self._value()
        self._punctuation(":")
        if name == "items" and self._next() == "[":
            self._punctuation("[")
            self._expected = _Expected.ITEM
        else:
            self._fields[name] = self._value()

    def _item(self) -> Object:
        item = self._guessed()
        if item is None:
            start = self._at
            item = self._value()
            self._learn(start)
        if not isinstance(item, dict):
            raise MalformedStream("the host sent a list with an item that is no object")
        return item

    def _guessed(self) -> Any:
        """The item up to where the next one seems to begin, None if that is not its end."""
        end = self._text.find(self._between, self._at) if self._between else -1
        if end < 0:
            return None
        try:
            item = deepjson.loads(self._text[self._at : end + len("}")])
        except ValueError:
            return None
        self._at = end + len("},")
        return item

    def _learn(self, start: int) -> None:
        end = self._text.find(_METADATA, start, min(start + _BEGINNING, self._at))
        if end >= 0:
            self._between = f"}},{self._text[start : end + len(_METADATA)]}"

    def _next(self) -> str:
        text, at = self._text, self._at
        while at < len(text) and text[at] in _SPACE:
            at += 1
        self._at = at
        if at == len(text):
            raise _Incomplete
        return text[at]

    def _punctuation(self, allowed: str) -> str:
        found = self._next()
        if found not in allowed:
            raise MalformedStream("the host sent something that is no list")
        self._at += 1
        return found

    def _value(self) -> Any:
        self._next()
        start = self._at
        end = _end(self._text, start)
        if end is None or end == len(self._text):
            # a number may go on
            raise _Incomplete
        try:
            # as everything else of the host is read: a number beyond 64 bits is one with a fraction, as it is there
            value = deepjson.loads(self._text[start:end])
        except ValueError as e:
            raise MalformedStream("the host sent a list with a value that is no JSON") from e
        self._at = end
        return value


def _end(text: str, start: int) -> int | None:
    """Where the value ends that begins there, None if that is not to be seen yet."""
    try:
        return _DECODER.raw_decode(text, start)[1]
    except ValueError:
        return None
    except RecursionError:
        return deepjson.find_container_end(text, start)
