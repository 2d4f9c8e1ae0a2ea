"""Descriptors of protobuf messages, which map field numbers to JSON names. Data only, for
apiserver.serializer.protobuf."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any


class ScalarType(Enum):
    """The type of a field that is not a message."""

    STRING = auto()
    BOOL = auto()
    INT = auto()
    BYTES = auto()
    """Base64 in JSON."""
    RAW = auto()
    """Bytes that `to_json` of the message converts."""


class Cardinality(Enum):
    """The number of times that a field may occur."""

    SINGULAR = auto()
    """Omitted from JSON if it is zero or empty, because Go always sends it."""
    OPTIONAL = auto()
    """A pointer in Go: retained even if it is zero or empty."""
    REPEATED = auto()
    MAP = auto()
    """With string keys."""


def unchanged(fields: dict[str, Any]) -> Any:
    return fields


@dataclass(frozen=True, slots=True)
class MessageDescriptor:
    """A message. `name` is the kind if the message is an API object. `to_json` converts the fields to a JSON value
    other than an object; it raises ValueError, OverflowError or BadRequest."""

    name: str
    fields: Mapping[int, FieldDescriptor]
    to_json: Callable[[dict[str, Any]], Any] = unchanged


@dataclass(frozen=True, slots=True)
class FieldDescriptor:
    name: str
    type: ScalarType | MessageDescriptor = ScalarType.STRING
    cardinality: Cardinality = Cardinality.SINGULAR


def message(
    name: str, fields: Mapping[int, FieldDescriptor | str], to_json: Callable[[dict[str, Any]], Any] = unchanged
) -> MessageDescriptor:
    """Builds a descriptor. A field with only a name is a string."""
    full = {number: FieldDescriptor(field) if isinstance(field, str) else field for number, field in fields.items()}
    return MessageDescriptor(name, full, to_json)


def optional(name: str, type_: ScalarType | MessageDescriptor = ScalarType.STRING) -> FieldDescriptor:
    return FieldDescriptor(name, type_, Cardinality.OPTIONAL)


def repeated(name: str, type_: ScalarType | MessageDescriptor = ScalarType.STRING) -> FieldDescriptor:
    return FieldDescriptor(name, type_, Cardinality.REPEATED)


def map_of(name: str, type_: ScalarType | MessageDescriptor = ScalarType.STRING) -> FieldDescriptor:
    return FieldDescriptor(name, type_, Cardinality.MAP)
