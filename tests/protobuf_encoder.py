"""Encodes JSON objects in protobuf like Go clients do, the inverse of apiserver.serializer.protobuf."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from apiserver.meta.protobuf_message import Cardinality, FieldDescriptor, MessageDescriptor, ScalarType

MAGIC = b"k8s\x00"


def varint(number: int) -> bytes:
    """Encodes a varint; negative numbers as a 64-bit two's complement."""
    number %= 1 << 64
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*encoded, number])


def number_field(number: int, value: int) -> bytes:
    return varint(number << 3) + varint(value)


def bytes_field(number: int, value: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(value)) + value


def envelope(raw: bytes, *, kind: str = "", api_version: str = "v1") -> bytes:
    """Returns a request body with the message `raw`."""
    type_meta = bytes_field(1, api_version.encode()) + bytes_field(2, kind.encode())
    return MAGIC + bytes_field(1, type_meta) + bytes_field(2, raw) + bytes_field(3, b"") + bytes_field(4, b"")


def encode(obj: Mapping[str, Any], descriptor: MessageDescriptor) -> bytes:
    """Encodes the fields of `obj` that the descriptor has."""
    named = [(number, field, obj[field.name]) for number, field in descriptor.fields.items() if field.name in obj]
    return b"".join(_field(number, field, value) for number, field, value in named)


def _field(number: int, field: FieldDescriptor, value: Any) -> bytes:
    if field.cardinality is Cardinality.REPEATED:
        return b"".join(_single(number, field.type, each) for each in value)
    if field.cardinality is Cardinality.MAP:
        entries = (_single(1, ScalarType.STRING, key) + _single(2, field.type, each) for key, each in value.items())
        return b"".join(bytes_field(number, entry) for entry in entries)
    return _single(number, field.type, value)


def _single(number: int, type_: ScalarType | MessageDescriptor, value: Any) -> bytes:
    if isinstance(type_, MessageDescriptor):
        fields = _FROM_JSON.get(type_.name, dict)(value)
        return bytes_field(number, encode(fields, type_))
    if type_ in (ScalarType.INT, ScalarType.BOOL):
        return number_field(number, int(value))
    if type_ is ScalarType.STRING:
        return bytes_field(number, value.encode())
    return bytes_field(number, base64.b64decode(value) if type_ is ScalarType.BYTES else value)


def _timestamp(text: str) -> dict[str, Any]:
    moment = datetime.fromisoformat(text)
    seconds = int((moment.replace(microsecond=0) - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds())
    return {"seconds": seconds, "nanos": moment.microsecond * 1000}


_FROM_JSON: Mapping[str, Callable[[Any], dict[str, Any]]] = {
    "Time": _timestamp,
    "MicroTime": _timestamp,
    "Quantity": lambda text: {"string": text},
    "IntOrString": lambda value: (
        {"type": 0, "intVal": value} if isinstance(value, int) else {"type": 1, "strVal": value}
    ),
    "ExtraValue": lambda items: {"items": items},
    "FieldsV1": lambda document: {"raw": json.dumps(document).encode()},
}
