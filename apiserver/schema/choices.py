"""The work that a schema may cause for each value: patterns and alternatives are tried one after the other. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from apiserver.meta.resource import Schema

MANY_CHECKS = 16
"""Checks of a value above which a thread validates an object: 32 KiB of JSON have about eight thousand values."""
_PATTERN = 10
"""A pattern takes as long as ten other checks."""


def alternatives_of_one_value(schema: Schema) -> int:
    """The most alternatives, by anyOf, oneOf, allOf and not, that a value or a part of it may be judged by."""
    return _judgements(schema, pattern=0)


def has_many_checks(schema: Schema) -> bool:
    """True if the validation of a small object may take long: some part of it may be judged by many alternatives or
    patterns. `schema` must be a tree."""
    return _judgements(schema, pattern=_PATTERN) > MANY_CHECKS


def _judgements(schema: Schema, *, pattern: int) -> int:
    """Those of this value, or of one of its parts: each part is judged by one schema here, and by one of every
    alternative."""
    own = pattern if schema.get("pattern") else 0
    below = max((_judgements(each, pattern=pattern) for each in _parts(schema)), default=0)
    return max(own, below) + sum(1 + _judgements(each, pattern=pattern) for each in _alternatives(schema))


def _parts(schema: Schema) -> Iterator[Schema]:
    yield from (schema.get("properties") or {}).values()
    yield from (each for name in ("items", "additionalProperties") if isinstance(each := schema.get(name), Mapping))


def _alternatives(schema: Schema) -> Iterator[Schema]:
    for keyword in ("anyOf", "oneOf", "allOf"):
        yield from schema.get(keyword) or ()
    if negated := schema.get("not"):
        yield negated
