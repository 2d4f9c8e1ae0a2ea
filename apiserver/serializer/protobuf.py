"""Decoding of request bodies in Kubernetes' protobuf, which typed Go clients send for built-in kinds, into JSON values.

Responses are never protobuf but JSON, which every client accepts.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from apiserver.meta.errors import BadRequest
from apiserver.meta.protobuf_message import Cardinality, FieldDescriptor, MessageDescriptor, ScalarType, message
from apiserver.meta.resource import Object

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
MAX_DEPTH = 32
# a field has at least 2 bytes, and decoding it takes about a microsecond of the event loop
MAX_FIELDS = 100_000

_MAGIC = b"k8s\x00"
_TYPE_META = message("TypeMeta", {1: "apiVersion", 2: "kind"})
_UNKNOWN = message(
    "Unknown",
    {
        1: FieldDescriptor("typeMeta", _TYPE_META),
        2: FieldDescriptor("raw", ScalarType.RAW),
        3: "contentEncoding",
        4: "contentType",
    },
)

_Wire = int | bytes | None
"""An encoded field: a varint, length-delimited bytes, or None for a fixed-size number, which no descriptor uses."""


def decode(body: bytes, descriptor: MessageDescriptor) -> Object:
    """Decodes the object in the envelope around a message of `descriptor`.

    For a message of another kind only apiVersion and kind are decoded, because its fields have another meaning.
    Raises BadRequest.
    """
    if not body.startswith(_MAGIC):
        raise BadRequest(
            f"provided data does not appear to be a protobuf message, expected prefix [{' '.join(map(str, _MAGIC))}]"
        )
    decoder = _Decoder()
    try:
        envelope = decoder.message(_UNKNOWN, body[len(_MAGIC) :])
        if envelope.get("contentEncoding"):
            raise ValueError("its content is encoded")
        type_meta: Object = envelope.get("typeMeta", {})
        if type_meta.get("kind", descriptor.name) != descriptor.name:
            return type_meta
        return {**type_meta, **decoder.message(descriptor, envelope.get("raw", b""))}
    except (ValueError, OverflowError) as error:
        raise BadRequest(f"the body is not a valid protobuf message: {error}") from error


class _Decoder:
    """Decodes the messages of one body, with at most MAX_FIELDS fields in total. Raises ValueError."""

    def __init__(self) -> None:
        self._fields_left = MAX_FIELDS

    def message(self, descriptor: MessageDescriptor, data: bytes, depth: int = MAX_DEPTH) -> Any:
        if depth == 0:
            raise ValueError(f"messages are nested more than {MAX_DEPTH} levels deep")
        found: dict[str, Any] = {}
        for number, wire in self._fields(data):
            field = descriptor.fields.get(number)
            if field is not None:
                self._add(found, field, wire, depth - 1)
        return descriptor.to_json(found)

    def _add(self, found: dict[str, Any], field: FieldDescriptor, wire: _Wire, depth: int) -> None:
        if field.cardinality is Cardinality.MAP:
            key, value = self._entry(field.type, wire, depth)
            found.setdefault(field.name, {})[key] = value
            return
        value = self._value(field.type, wire, depth)
        if field.cardinality is Cardinality.REPEATED:
            found.setdefault(field.name, []).append(value)
        elif value or field.cardinality is Cardinality.OPTIONAL:
            found[field.name] = value
        else:
            # the last of several values wins, and it is zero
            found.pop(field.name, None)

    def _entry(self, type_: ScalarType | MessageDescriptor, wire: _Wire, depth: int) -> tuple[str, Any]:
        """Decodes a map entry: a message of a key and a value, either of which is omitted if it is empty."""
        empty: _Wire = 0 if type_ in (ScalarType.INT, ScalarType.BOOL) else b""
        entry = {1: b"", 2: empty, **dict(self._fields(_bytes(wire)))}
        return _text(entry[1]), self._value(type_, entry[2], depth)

    def _value(self, type_: ScalarType | MessageDescriptor, wire: _Wire, depth: int) -> Any:
        if isinstance(type_, MessageDescriptor):
            return self.message(type_, _bytes(wire), depth)
        return _SCALARS[type_](wire)

    def _fields(self, data: bytes) -> Iterator[tuple[int, _Wire]]:
        """Iterates over the numbers and contents of the fields, in the order of the message."""
        position = 0
        while position < len(data):
            if self._fields_left == 0:
                raise ValueError(f"it has more than {MAX_FIELDS} fields")
            self._fields_left -= 1
            tag, position = _varint(data, position)
            number, wire, position = tag >> 3, *_content(tag & 7, data, position)
            if number == 0:
                raise ValueError("a field has the number 0")
            yield number, wire


def _content(wire_type: int, data: bytes, position: int) -> tuple[_Wire, int]:
    """Returns the content of a field and the position of the next field."""
    if wire_type == 0:
        return _varint(data, position)
    if wire_type == 2:
        length, start = _varint(data, position)
        end = start + length
    elif wire_type in (1, 5):
        start, end = position, position + (8 if wire_type == 1 else 4)
    else:
        raise ValueError(f"a field has the wire type {wire_type}")
    if end > len(data):
        raise ValueError("it ends within a field")
    return data[start:end] if wire_type == 2 else None, end


def _varint(data: bytes, position: int) -> tuple[int, int]:
    """Returns a number of at most 64 bits and the position after it."""
    value = 0
    for shift in range(0, 70, 7):
        if position == len(data):
            raise ValueError("it ends within a number")
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, position
    raise ValueError("a number has more than 64 bits")


def _bytes(wire: _Wire) -> bytes:
    if not isinstance(wire, bytes):
        raise ValueError("a field holds a number instead of bytes")
    return wire


def _text(wire: _Wire) -> str:
    try:
        return _bytes(wire).decode()
    except UnicodeDecodeError as error:
        # the text of the UnicodeDecodeError quotes the content, which may be secret
        raise ValueError(f"a text is not valid UTF-8: {error.reason}") from None


def _base64(wire: _Wire) -> str:
    return base64.b64encode(_bytes(wire)).decode()


def _integer(wire: _Wire) -> int:
    """Converts a varint; negative numbers are encoded as a 64-bit two's complement."""
    if not isinstance(wire, int):
        raise ValueError("a field does not hold a number")
    return wire - (1 << 64) if wire >> 63 else wire


def _boolean(wire: _Wire) -> bool:
    return _integer(wire) != 0


_SCALARS: Mapping[ScalarType, Callable[[_Wire], Any]] = {
    ScalarType.STRING: _text,
    ScalarType.BOOL: _boolean,
    ScalarType.INT: _integer,
    ScalarType.BYTES: _base64,
    ScalarType.RAW: _bytes,
}
