"""The defaults of a schema, added to a stored value as clients see it. Pure.

They are bounded: a body of 40 kB with twenty thousand items, each with defaults of 4 KiB, would be shown as one of
80 MB, to every client that lists or watches the kind.
"""

from __future__ import annotations

from typing import Any

import orjson

from apiserver.json.values import deep_copy
from apiserver.meta.resource import Schema

MAX_ADDED_KIB = 256
"""The kinds of Cozystack add at most 2 KiB, and 113 bytes for an item of a list."""
_OPEN: Schema = {}


class TooManyDefaults(ValueError):
    """The defaults would add more than MAX_ADDED_KIB to a value."""


def with_defaults(schema: Schema, value: Any) -> Any:
    """A copy of a stored value as clients see it. A property that is missing or null gets its default, and null becomes
    an empty object or list where one belongs; nothing else changes, not even what has a wrong type. Raises
    TooManyDefaults."""
    return _filled(schema, value, _Added())


def with_defaults_if_few(schema: Schema, value: Any) -> Any:
    """As `with_defaults`, but a value to which too much would be added gets none at all: what is shown then depends on
    the value alone, and a client that sends it back stores nothing else."""
    try:
        return with_defaults(schema, value)
    except TooManyDefaults:
        return deep_copy(value)


class _Added:
    """Counts the bytes of JSON, about, that defaults add to one value."""

    __slots__ = ("_left", "_sizes")

    def __init__(self) -> None:
        self._left = MAX_ADDED_KIB * 1024
        self._sizes: dict[int, int] = {}

    def count(self, schema: Schema, added: Any) -> Any:
        """Returns `added`, which is the same for the same part of a schema. Raises TooManyDefaults."""
        size = self._sizes.get(id(schema))
        if size is None:
            size = self._sizes[id(schema)] = len(orjson.dumps(added))
        self._left -= size
        if self._left < 0:
            raise TooManyDefaults(f"the defaults of its schema would add more than {MAX_ADDED_KIB} KiB")
        return added


def _filled(schema: Schema, value: Any, added: _Added | None) -> Any:
    """`added` is None within a default, which is counted as a whole."""
    if value is None:
        made = _of_null(schema)
        return made if added is None or made is None else added.count(schema, made)
    if isinstance(value, list):
        items = schema.get("items")
        return [_filled(items, each, added) for each in value] if isinstance(items, dict) else deep_copy(value)
    if not isinstance(value, dict):
        return value
    properties = schema.get("properties") or {}
    additional = schema.get("additionalProperties")
    others = additional if isinstance(additional, dict) else _OPEN
    shown = {name: _filled(properties.get(name, others), each, added) for name, each in value.items()}
    for name, child in properties.items():
        if name not in value and child.get("default") is not None:
            shown[name] = _filled(child, None, added)
    return shown


def _of_null(schema: Schema) -> Any:
    default = schema.get("default")
    if default is not None:
        return _filled(schema, default, None)
    return {"object": {}, "array": []}.get(schema.get("type", ""))
