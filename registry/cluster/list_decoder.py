"""Decodes the items of a List document one at a time from a byte stream, so that it is never in memory as a whole.

orjson is several times as fast as a parser that reports where a value ends, but has to be passed exactly one value. So
the end of an item is guessed: at the next occurrence of the text with which items of this list begin. The guess is
right if the text up to there parses as an object, because no proper prefix of a JSON object is one.
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
# The text with which all items of a list begin: it ends with _METADATA, and has at most _MAX_BEGINNING characters.
_METADATA = '"metadata":{'
_MAX_BEGINNING = 200
# of a List, and of a Table
_ITEMS = ("items", "rows")


class _Expected(Enum):
    DOCUMENT = auto()
    FIELD = auto()
    ITEM = auto()
    NOTHING = auto()


class _Incomplete(Exception):
    """The value that is being parsed continues in a later chunk."""


class ListDecoder:
    """`limit` bounds the characters that are buffered between two chunks: about one item."""

    def __init__(self, *, limit: int = MAX_OBJECT_SIZE) -> None:
        self._utf8 = codecs.getincrementaldecoder("utf-8")()
        self._text = ""
        self._position = 0
        self._limit = limit
        self._expected = _Expected.DOCUMENT
        self._fields: Object = {}
        self._separator = ""

    def feed(self, chunk: bytes) -> Iterator[Object]:
        """Yields the items that `chunk` completes. Raises MalformedStream."""
        try:
            self._text = self._text[self._position :] + self._utf8.decode(chunk)
        except UnicodeDecodeError as e:
            raise MalformedStream("received a list that is not UTF-8") from e
        self._position = 0
        while self._expected is not _Expected.NOTHING:
            start = self._position
            try:
                item = self._step()
            except _Incomplete:
                self._position = start
                break
            if item is not None:
                yield item
        if len(self._text) - self._position > self._limit:
            raise MalformedStream(f"received a list with an item of more than {self._limit} characters")

    @property
    def buffered(self) -> int:
        """The characters of an item that is incomplete so far."""
        return len(self._text) - self._position

    @property
    def is_complete(self) -> bool:
        """True after the end of the List."""
        return self._expected is _Expected.NOTHING

    def metadata(self) -> Object:
        """The metadata of the List, after its last chunk. Raises MalformedStream if the List is incomplete."""
        metadata = self.head().get("metadata")
        if not isinstance(metadata, dict) or not metadata.get("resourceVersion"):
            raise MalformedStream("received a list without a resourceVersion")
        return metadata

    def head(self) -> Object:
        """The List without its items, after its last chunk. Raises MalformedStream if it is incomplete."""
        if self._expected is not _Expected.NOTHING:
            raise MalformedStream("received a list that is truncated")
        return dict(self._fields)

    def _step(self) -> Object | None:
        if self._expected is _Expected.DOCUMENT:
            self._punctuation("{")
            self._expected = _Expected.FIELD
        elif self._expected is _Expected.FIELD:
            self._field()
        elif self._peek() in ",]":
            if self._punctuation(",]") == "]":
                self._expected = _Expected.FIELD
        else:
            return self._item()
        return None

    def _field(self) -> None:
        if self._peek() in ",}":
            if self._punctuation(",}") == "}":
                self._expected = _Expected.NOTHING
            return
        name = self._value()
        self._punctuation(":")
        if name in _ITEMS and self._peek() == "[":
            self._punctuation("[")
            self._expected = _Expected.ITEM
        else:
            self._fields[name] = self._value()

    def _item(self) -> Object:
        item = self._parse_up_to_next_item()
        if item is None:
            start = self._position
            item = self._value()
            self._learn_item_beginning(start)
        if not isinstance(item, dict):
            raise MalformedStream("received a list with an item that is not an object")
        return item

    def _parse_up_to_next_item(self) -> Any:
        """Parses up to the apparent start of the next item. None if that is not the end of this item."""
        end = self._text.find(self._separator, self._position) if self._separator else -1
        if end < 0:
            return None
        try:
            item = deepjson.loads(self._text[self._position : end + len("}")])
        except ValueError:
            return None
        self._position = end + len("},")
        return item

    def _learn_item_beginning(self, start: int) -> None:
        end = self._text.find(_METADATA, start, min(start + _MAX_BEGINNING, self._position))
        if end >= 0:
            self._separator = f"}},{self._text[start : end + len(_METADATA)]}"

    def _peek(self) -> str:
        text, at = self._text, self._position
        while at < len(text) and text[at] in _SPACE:
            at += 1
        self._position = at
        if at == len(text):
            raise _Incomplete
        return text[at]

    def _punctuation(self, allowed: str) -> str:
        found = self._peek()
        if found not in allowed:
            raise MalformedStream("received a document that is not a list")
        self._position += 1
        return found

    def _value(self) -> Any:
        self._peek()
        start = self._position
        end = _end_of_value(self._text, start)
        if end is None or end == len(self._text):
            # a number may continue in the next chunk
            raise _Incomplete
        try:
            # decoded like all other responses, so that integers beyond 64 bits become floats here too
            value = deepjson.loads(self._text[start:end])
        except ValueError as e:
            raise MalformedStream("received a list with invalid JSON") from e
        self._position = end
        return value


def _end_of_value(text: str, start: int) -> int | None:
    """The position after the value that begins at `start`, None if it is incomplete."""
    try:
        return _DECODER.raw_decode(text, start)[1]
    except ValueError:
        return None
    except RecursionError:
        return deepjson.find_container_end(text, start)
