"""The table of a custom resource (apiextensions-apiserver/pkg/registry/customresource/tableconvertor). Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from apiserver.encoding.encoded_object import epoch, to_json
from apiserver.encoding.table import NAME
from apiserver.meta.resource import Age, Column, Object
from registry.embedded.custom.json_path import JsonPath, json_path

AGE: Object = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}
"""The only column of a version that declares none."""


def columns(declared: Sequence[Object]) -> tuple[Column, ...]:
    """Returns all columns, the name first. Columns end before the first one with an unrecognized path."""
    return (NAME, *(_column(each) for each, _ in _recognized(declared)))


def cells(declared: Sequence[Object]) -> Callable[[Object], Sequence[object]]:
    """Returns the function that computes the cells of all columns. A cell without a value is None."""
    paths = [(path, each["type"]) for each, path in _recognized(declared)]

    def compute(obj: Object) -> Sequence[object]:
        found = [(path(obj), type_) for path, type_ in paths]
        name = obj["metadata"].get("name", "")
        return [name, *(_cell(type_, values[0]) if values else None for values, type_ in found)]

    return compute


def _recognized(declared: Sequence[Object]) -> Sequence[tuple[Object, JsonPath]]:
    found: list[tuple[Object, JsonPath]] = []
    for each in declared or (AGE,):
        try:
            found.append((each, json_path(each["jsonPath"])))
        except ValueError:
            break
    return found


def _column(declared: Object) -> Column:
    path = declared["jsonPath"]
    return Column(
        declared["name"],
        declared["type"],
        format=declared.get("format") or "",
        description=declared.get("description") or f"Custom resource definition column (in JSONPath format): {path}",
        priority=declared.get("priority") or 0,
    )


def _cell(type_: str, value: Any) -> object:
    if type_ == "string":
        return _text(value)
    if isinstance(value, bool):
        return value if type_ == "boolean" else None
    if isinstance(value, (int, float)):
        return int(value) if type_ == "integer" else float(value) if type_ == "number" else None
    if type_ == "date" and isinstance(value, str):
        since = epoch(value)
        return Age(since) if since else "<invalid>"
    return None


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if value is None:
        return "<nil>"
    return to_json(value).decode()
