"""Walks an object together with its structural schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from apiserver.meta.resource import Schema


def nested_values(schema: Schema, value: Any, path: str) -> Iterator[tuple[Schema, Any, str]]:
    """Yields each object and each list with its schema and path, the outer ones first."""
    if isinstance(value, dict):
        yield schema, value, path
        properties = schema.get("properties") or {}
        additional = schema.get("additionalProperties")
        for name, each in value.items():
            if not isinstance(each, (dict, list)):
                continue
            if name in properties:
                yield from nested_values(properties[name], each, f"{path}.{name}" if path else name)
            elif isinstance(additional, Mapping):
                yield from nested_values(additional, each, f"{path}[{name}]")
    elif isinstance(value, list):
        yield schema, value, path
        items = schema.get("items")
        if isinstance(items, Mapping) and items.get("type", "object") in ("object", "array"):
            for index, each in enumerate(value):
                yield from nested_values(items, each, f"{path}[{index}]")
