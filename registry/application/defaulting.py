"""The defaults of a schema, added to a stored value as clients see it. Pure.

They are bounded: a body of 40 kB with twenty thousand items, each with defaults of 4 KiB, would be shown as one of
80 MB, to every client that lists or watches the kind.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import orjson

from apiserver.json.values import deep_copy
from apiserver.meta.resource import Schema

MAX_ADDED_KIB = 256
"""The kinds of Cozystack add at most 2 KiB, and 113 bytes for an item of a list."""
_OPEN: Schema = {}
# quotes, a colon and a comma
_PUNCTUATION: Final = 4


class TooManyDefaults(ValueError):
    """The defaults would add more than MAX_ADDED_KIB to a value."""


def with_defaults(schema: Schema, value: Any) -> Any:
    """A copy of a stored value as clients see it. A property that is missing or null gets its default, and null becomes
    an empty object or list where one belongs; nothing else changes, not even what has a wrong type. Raises
    TooManyDefaults."""
    return _Filling().filled(schema, value, counts=True)


def with_defaults_if_few(schema: Schema, value: Any) -> Any:
    """As `with_defaults`, but a value to which too much would be added gets none at all: what is shown then depends on
    the value alone, and a client that sends it back stores nothing else."""
    try:
        return with_defaults(schema, value)
    except TooManyDefaults:
        return deep_copy(value)


class _Filling:
    """Fills in the defaults of one value, and counts the bytes of JSON, about, that they add."""

    __slots__ = ("_defaulted", "_left", "_sizes")

    def __init__(self) -> None:
        self._left = MAX_ADDED_KIB * 1024
        self._sizes: dict[int, int] = {}
        self._defaulted: dict[int, Sequence[tuple[str, Schema]]] = {}

    def filled(self, schema: Schema, value: Any, *, counts: bool) -> Any:
        """`counts` is False within a default, which is counted as a whole. Raises TooManyDefaults."""
        if value is None:
            made = self._of_null(schema)
            if counts and made is not None:
                self._count(schema, made)
            return made
        if isinstance(value, list):
            items = schema.get("items")
            if not isinstance(items, dict):
                return deep_copy(value)
            return [self.filled(items, each, counts=counts) for each in value]
        if not isinstance(value, dict):
            return value
        properties = schema.get("properties") or {}
        additional = schema.get("additionalProperties")
        others = additional if isinstance(additional, dict) else _OPEN
        shown = {name: self.filled(properties.get(name, others), each, counts=counts) for name, each in value.items()}
        for name, child in self._properties_with_defaults(schema):
            if name not in value:
                if counts:
                    self._add(len(name) + _PUNCTUATION)
                shown[name] = self.filled(child, None, counts=counts)
        return shown

    def _of_null(self, schema: Schema) -> Any:
        default = schema.get("default")
        if default is not None:
            return self.filled(schema, default, counts=False)
        return {"object": {}, "array": []}.get(schema.get("type", ""))

    def _properties_with_defaults(self, schema: Schema) -> Sequence[tuple[str, Schema]]:
        """Looked for once: each of many items of a list may have thousands of properties without any."""
        found = self._defaulted.get(id(schema))
        if found is None:
            properties = schema.get("properties") or {}
            found = [(name, child) for name, child in properties.items() if child.get("default") is not None]
            self._defaulted[id(schema)] = found
        return found

    def _count(self, schema: Schema, made: Any) -> None:
        """`made` is the same for the same part of a schema."""
        size = self._sizes.get(id(schema))
        if size is None:
            size = self._sizes[id(schema)] = len(orjson.dumps(made))
        self._add(size)

    def _add(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise TooManyDefaults(f"the defaults of its schema would add more than {MAX_ADDED_KIB} KiB")
