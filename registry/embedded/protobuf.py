"""Protobuf bodies of built-in kinds, read as JSON has them: `kubectl create` and `kubectl auth` send no other.

Only what is sent is read; answers are JSON, which every client takes.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any

import orjson

from apiserver.errors import BadRequest
from apiserver.resource import Object
from registry.embedded.protomessages import MESSAGES

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"

_MAGIC = b"k8s\x00"
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_FIELD = re.compile(r"(?P<number>\d+) (?P<name>\w+) (?P<form>\*|\{\}|\?)?(?P<type>\w+)")


@dataclass(frozen=True, slots=True)
class _Field:
    """`form` is `*` for a list, `{}` for a map, `?` for what is told from its zero value, empty for anything else."""

    name: str
    form: str
    type: str


def decode(body: bytes) -> Object:
    """The object in the envelope that Kubernetes puts around a message. Raises BadRequest."""
    if not body.startswith(_MAGIC):
        raise BadRequest("the body is not a Kubernetes protobuf message: the first bytes are not 'k8s\\0'")
    try:
        envelope = _message("Unknown", body[len(_MAGIC) :])
        type_meta = envelope.get("typeMeta") or {}
        kind = type_meta.get("kind", "")
        if not _is_sent_alone(kind):
            raise BadRequest(f'a message of kind "{kind}" is not understood here: send it as JSON')
        return {**type_meta, **_message(kind, envelope.get("raw", b""))}
    except (ValueError, OverflowError, OSError) as error:
        # the last two are of times that no calendar has
        raise BadRequest(f"the body is not a valid protobuf message: {error}") from error


def _is_sent_alone(kind: str) -> bool:
    return kind == "DeleteOptions" or "metadata ObjectMeta" in MESSAGES.get(kind, "")


@cache
def _fields(message: str) -> Mapping[int, _Field]:
    fields = {}
    for text in MESSAGES[message].split(";"):
        found = _FIELD.fullmatch(text.strip())
        assert found is not None, text
        fields[int(found["number"])] = _Field(found["name"], found["form"] or "", found["type"])
    return fields


def _message(message: str, data: bytes) -> dict[str, Any]:
    """A message by its fields' JSON names; zero values are left out, as Go's `omitempty` does."""
    fields = _fields(message)
    found: dict[str, Any] = {}
    for number, raw in _wire(data):
        field = fields.get(number)
        if field is None:
            continue
        if field.form == "*":
            found.setdefault(field.name, []).append(_value(field.type, raw))
        elif field.form == "{}":
            key, value = _entry(field.type, raw)
            found.setdefault(field.name, {})[key] = value
        else:
            value = _value(field.type, raw)
            if field.form == "?" or value:
                found[field.name] = value
    return found


def _entry(type_: str, raw: int | bytes) -> tuple[str, Any]:
    """A map's entry is a message of key and value."""
    key, value = "", _value(type_, b"")
    for number, each in _wire(_as_bytes(raw)):
        if number == 1:
            key = _as_bytes(each).decode()
        elif number == 2:
            value = _value(type_, each)
    return key, value


def _value(type_: str, raw: int | bytes) -> Any:
    reader = _SCALARS.get(type_)
    if reader is not None:
        return reader(raw)
    return _message(type_, _as_bytes(raw))


def _wire(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Field numbers with their numbers or bytes, in the order in which they are sent. Raises ValueError."""
    position = 0
    while position < len(data):
        tag, position = _varint(data, position)
        number, wire_type = tag >> 3, tag & 7
        if wire_type == _VARINT:
            value, position = _varint(data, position)
            yield number, value
            continue
        if wire_type == _BYTES:
            length, position = _varint(data, position)
        elif wire_type in (_FIXED32, _FIXED64):
            length = 4 if wire_type == _FIXED32 else 8
        else:
            raise ValueError(f"unknown wire type {wire_type}")
        if position + length > len(data):
            raise ValueError("a field ends behind the message")
        yield number, data[position : position + length]
        position += length


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if position == len(data):
            raise ValueError("a number ends behind the message")
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return value, position
    raise ValueError("a number is too long")


def _as_bytes(raw: int | bytes) -> bytes:
    if isinstance(raw, int):
        raise ValueError("a number where a message was expected")
    return raw


def _text(raw: int | bytes) -> str:
    return _as_bytes(raw).decode()


def _base64(raw: int | bytes) -> str:
    return base64.b64encode(_as_bytes(raw)).decode()


def _integer(raw: int | bytes) -> int:
    """Negative numbers are sent as 64-bit two's complement."""
    if isinstance(raw, bytes):
        raise ValueError("bytes where a number was expected")
    raw &= (1 << 64) - 1
    return raw - (1 << 64) if raw >> 63 else raw


def _numbers(raw: int | bytes) -> dict[int, int | bytes]:
    return dict(_wire(_as_bytes(raw)))


def _time(raw: int | bytes) -> str:
    """Empty for the zero time."""
    parts = _numbers(raw)
    seconds = _integer(parts.get(1, 0))
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if parts else ""


def _micro_time(raw: int | bytes) -> str:
    parts = _numbers(raw)
    if not parts:
        return ""
    moment = datetime.fromtimestamp(_integer(parts.get(1, 0)), UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{_integer(parts.get(2, 0)) // 1000:06d}Z"


def _int_or_string(raw: int | bytes) -> int | str:
    parts = _numbers(raw)
    return _text(parts.get(3, b"")) if _integer(parts.get(1, 0)) else _integer(parts.get(2, 0))


def _first_text(raw: int | bytes) -> str:
    return _text(_numbers(raw).get(1, b"")) if raw else "0"


def _first_json(raw: int | bytes) -> Any:
    return orjson.loads(_as_bytes(_numbers(raw).get(1, b"{}")))


def _items(raw: int | bytes) -> list[str]:
    return [_text(value) for number, value in _wire(_as_bytes(raw)) if number == 1]


_SCALARS: Mapping[str, Callable[[int | bytes], Any]] = {
    "string": _text,
    "bytes": _base64,
    "raw": _as_bytes,
    "int": _integer,
    "bool": lambda raw: bool(_integer(raw)),
    "Time": _time,
    "MicroTime": _micro_time,
    "IntOrString": _int_or_string,
    "Quantity": _first_text,
    "FieldsV1": _first_json,
    "ExtraValue": _items,
}
