"""Protobuf messages as tables: what each field number is called in JSON. Data only; `protobuf` reads bodies by them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any


class Scalar(Enum):
    """What a field holds that is no message."""

    STRING = auto()
    BOOL = auto()
    INT = auto()
    BYTES = auto()
    """Base64 in JSON."""
    RAW = auto()
    """Bytes, for the message's `to_json` to read."""


class Shape(Enum):
    """How often a field is there."""

    ONE = auto()
    """Left out if it is zero or empty, because Go sends it all the same."""
    OPTIONAL = auto()
    """A pointer in Go: kept as it is sent, be it zero or empty."""
    LIST = auto()
    MAP = auto()
    """By string."""


def as_it_is(fields: dict[str, Any]) -> Any:
    return fields


@dataclass(frozen=True, slots=True)
class MessageTable:
    """A message. `name` is the kind of those that are objects; `to_json` gives what JSON has instead of an object with
    these fields, and raises ValueError, OverflowError or BadRequest."""

    name: str
    fields: Mapping[int, Field]
    to_json: Callable[[dict[str, Any]], Any] = as_it_is


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    type: Scalar | MessageTable = Scalar.STRING
    shape: Shape = Shape.ONE


def message(
    name: str, fields: Mapping[int, Field | str], to_json: Callable[[dict[str, Any]], Any] = as_it_is
) -> MessageTable:
    """A table; fields that are given as a name only are strings."""
    full = {number: Field(field) if isinstance(field, str) else field for number, field in fields.items()}
    return MessageTable(name, full, to_json)


def optional(name: str, type_: Scalar | MessageTable = Scalar.STRING) -> Field:
    return Field(name, type_, Shape.OPTIONAL)


def list_of(name: str, type_: Scalar | MessageTable = Scalar.STRING) -> Field:
    return Field(name, type_, Shape.LIST)


def map_of(name: str, type_: Scalar | MessageTable = Scalar.STRING) -> Field:
    return Field(name, type_, Shape.MAP)
