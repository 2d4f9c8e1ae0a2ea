"""Protobuf messages as tables: what each field number is called in JSON. Data only; `protobuf` reads bodies by them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any


class ScalarType(Enum):
    """What a field holds that is no message."""

    STRING = auto()
    BOOL = auto()
    INT = auto()
    BYTES = auto()
    """Base64 in JSON."""
    RAW = auto()
    """Bytes, for the message's `to_json` to read."""


class Cardinality(Enum):
    """How often a field is there."""

    SINGULAR = auto()
    """Left out if it is zero or empty, because Go sends it all the same."""
    OPTIONAL = auto()
    """A pointer in Go: kept as it is sent, be it zero or empty."""
    REPEATED = auto()
    MAP = auto()
    """By string."""


def unchanged(fields: dict[str, Any]) -> Any:
    return fields


@dataclass(frozen=True, slots=True)
class MessageDescriptor:
    """A message. `name` is the kind of those that are objects; `to_json` gives what JSON has instead of an object with
    these fields, and raises ValueError, OverflowError or BadRequest."""

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
    """A table; fields that are given as a name only are strings."""
    full = {number: FieldDescriptor(field) if isinstance(field, str) else field for number, field in fields.items()}
    return MessageDescriptor(name, full, to_json)


def optional(name: str, type_: ScalarType | MessageDescriptor = ScalarType.STRING) -> FieldDescriptor:
    return FieldDescriptor(name, type_, Cardinality.OPTIONAL)


def repeated(name: str, type_: ScalarType | MessageDescriptor = ScalarType.STRING) -> FieldDescriptor:
    return FieldDescriptor(name, type_, Cardinality.REPEATED)


def map_of(name: str, type_: ScalarType | MessageDescriptor = ScalarType.STRING) -> FieldDescriptor:
    return FieldDescriptor(name, type_, Cardinality.MAP)
