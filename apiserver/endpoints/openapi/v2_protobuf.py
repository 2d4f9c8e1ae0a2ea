"""Encodes OpenAPI v2 as protobuf, the only format that kubectl accepts; it validates Lists with it (WIRE-C35).

Field numbers are those of gnostic's OpenAPIv2.proto. Only definitions are encoded: kubectl reads nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

MEDIA_TYPE = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
"""The Content-Type of the response. Clients request it with `@` in place of a dot, which is invalid in a media type."""

REQUEST_MEDIA_TYPE = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"

_SWAGGER, _INFO, _PATHS, _DEFINITIONS = 1, 2, 8, 9
_TITLE, _VERSION = 1, 2
_NAME, _VALUE = 1, 2
_REF, _FORMAT, _DESCRIPTION = 1, 2, 4
_REQUIRED, _ADDITIONAL, _TYPE, _ITEMS, _PROPERTIES, _EXTENSION = 19, 21, 22, 23, 25, 31
# the YAML of an Any, which clients read
_YAML = 2
# the only field of messages that wrap a single value
_ONLY = 1
_STRINGS: Mapping[str, int] = {"$ref": _REF, "format": _FORMAT, "description": _DESCRIPTION}


def encode(document: Mapping[str, Any]) -> bytes:
    """The protobuf of an OpenAPI v2 document."""
    info = document["info"]
    definitions = (_named_value(name, _schema(schema)) for name, schema in document["definitions"].items())
    return b"".join(
        (
            _string_field(_SWAGGER, document["swagger"]),
            _message_field(_INFO, _string_field(_TITLE, info["title"]) + _string_field(_VERSION, info["version"])),
            _message_field(_PATHS, b""),
            _message_field(_DEFINITIONS, b"".join(_message_field(_ONLY, each) for each in definitions)),
        )
    )


def _schema(schema: Mapping[str, Any]) -> bytes:
    return b"".join(_fields(schema))


def _fields(schema: Mapping[str, Any]) -> Iterable[bytes]:
    for keyword, value in schema.items():
        if keyword in _STRINGS:
            yield _string_field(_STRINGS[keyword], value)
        elif keyword in _STRUCTURE:
            yield _STRUCTURE[keyword](value)
        elif keyword.startswith("x-"):
            yield _message_field(_EXTENSION, _named_value(keyword, _string_field(_YAML, json.dumps(value))))


def _required(names: Iterable[str]) -> bytes:
    return b"".join(_string_field(_REQUIRED, name) for name in names)


def _type(name: str) -> bytes:
    return _message_field(_TYPE, _string_field(_ONLY, name))


def _items(schema: Mapping[str, Any]) -> bytes:
    return _message_field(_ITEMS, _message_field(_ONLY, _schema(schema)))


def _additional(schema: Mapping[str, Any]) -> bytes:
    return _message_field(_ADDITIONAL, _message_field(_ONLY, _schema(schema)))


def _properties(properties: Mapping[str, Mapping[str, Any]]) -> bytes:
    each = (_message_field(_ONLY, _named_value(name, _schema(schema))) for name, schema in properties.items())
    return _message_field(_PROPERTIES, b"".join(each))


_STRUCTURE: Mapping[str, Callable[[Any], bytes]] = {
    "required": _required,
    "type": _type,
    "items": _items,
    "additionalProperties": _additional,
    "properties": _properties,
}


def _named_value(name: str, value: bytes) -> bytes:
    return _string_field(_NAME, name) + _message_field(_VALUE, value)


def _string_field(number: int, text: str) -> bytes:
    return _message_field(number, text.encode())


def _message_field(number: int, content: bytes) -> bytes:
    """A length-delimited field."""
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*encoded, number])
