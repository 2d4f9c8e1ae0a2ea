"""The size that defaults give to a value: what is null in a default has a default of its own, so a short schema can
describe one that fills the memory. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from apiserver.meta.resource import Schema

MAX_KIB = 64
MAX_REPEATED_KIB = 4
"""Of the items of a list and the values of a map, of which a client can send many. Those of Cozystack have 113."""
_OPEN: Schema = {}
_NULL = 4


def oversized_default(schema: Schema) -> str:
    """The path of the first part of a checked schema whose defaults are too large, with the reason; empty if none."""
    sizes = _DefaultSizes()
    for path, part, is_repeated in _defaulted_parts(schema, "", False):
        most = MAX_REPEATED_KIB if is_repeated else MAX_KIB
        if max(sizes.of_null(part), sizes.of_missing(part)) > most * 1024:
            return f"{path or '.'}: its defaults have more than {most} KiB"
    return ""


def _defaulted_parts(schema: Schema, path: str, is_repeated: bool) -> Iterator[tuple[str, Schema, bool]]:
    """The parts whose defaults are added, and whether a value can have many of them."""
    yield path, schema, is_repeated
    for name, each in (schema.get("properties") or {}).items():
        yield from _defaulted_parts(each, f"{path}.{name}" if path else name, is_repeated)
    for keyword in ("items", "additionalProperties"):
        if isinstance(each := schema.get(keyword), dict):
            yield from _defaulted_parts(each, f"{path}.{keyword}" if path else keyword, True)


class _DefaultSizes:
    """Bytes of JSON, about, of what `with_defaults` makes. Each part is counted once, however often it is used."""

    def __init__(self) -> None:
        self._of_null: dict[int, int] = {}
        self._of_missing: dict[int, int] = {}

    def of_null(self, schema: Schema) -> int:
        """Of a part that a client leaves out, or sends null for."""
        known = self._of_null.get(id(schema))
        if known is None:
            default = schema.get("default")
            known = self._of_null[id(schema)] = _NULL if default is None else self._of_value(schema, default)
        return known

    def of_missing(self, schema: Schema) -> int:
        """Of the properties of an empty object."""
        known = self._of_missing.get(id(schema))
        if known is None:
            properties = (schema.get("properties") or {}).items()
            known = sum(self._of_property(name, each) for name, each in properties)
            self._of_missing[id(schema)] = known
        return known

    def _of_property(self, name: str, schema: Schema) -> int:
        return len(name) + _NULL + self.of_null(schema) if schema.get("default") is not None else 0

    def _of_value(self, schema: Schema, value: Any) -> int:
        if value is None:
            return self.of_null(schema)
        if isinstance(value, list):
            items = schema.get("items")
            each_item = items if isinstance(items, dict) else _OPEN
            return 2 + sum(1 + self._of_value(each_item, each) for each in value)
        if not isinstance(value, dict):
            return len(orjson.dumps(value))
        properties = schema.get("properties") or {}
        additional = schema.get("additionalProperties")
        others = additional if isinstance(additional, dict) else _OPEN
        size = 2 + self.of_missing(schema)
        for name, each in value.items():
            if name in properties:
                size -= self._of_property(name, properties[name])
            size += len(name) + _NULL + self._of_value(properties.get(name, others), each)
        return size
