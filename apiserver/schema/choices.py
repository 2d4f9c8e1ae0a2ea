"""The work that a schema may cause for each value: patterns and alternatives are tried one after the other. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from apiserver.meta.resource import Schema

MANY_CHECKS = 16
"""Checks of a value above which a thread validates an object: 32 KiB of JSON have about eight thousand values."""
_REPEATED = ("items", "additionalProperties")
_PATTERN = 10
"""A pattern takes as long as ten other checks."""


def alternatives_of_one_value(schema: Schema) -> int:
    """The most alternatives, by anyOf, oneOf, allOf and not, that a value or a part of it may be judged by."""
    return _judgements(schema, pattern=0)


def has_many_checks(schema: Schema) -> bool:
    """True if the validation of a small object may take long: some part of it may be judged by many alternatives or
    patterns, or each of many parts by a pattern. `schema` must be a tree."""
    return _judgements(schema, pattern=_PATTERN) > MANY_CHECKS or _repeats_patterns(schema)


def _judgements(schema: Schema, *, pattern: int) -> int:
    """Those of this value, or of one of its parts: each part is judged by one schema here, and by one of every
    alternative."""
    own = pattern if schema.get("pattern") else 0
    below = max((_judgements(each, pattern=pattern) for each in _parts(schema)), default=0)
    return max(own, below) + sum(1 + _judgements(each, pattern=pattern) for each in _alternatives(schema))


def _repeats_patterns(schema: Schema, is_repeated: bool = False) -> bool:
    """True if the items of a list or the values of a map are matched with a pattern, themselves or their parts."""
    if is_repeated and schema.get("pattern"):
        return True
    same = (*(schema.get("properties") or {}).values(), *_alternatives(schema))
    many = (each for name in _REPEATED if isinstance(each := schema.get(name), Mapping))
    return any(_repeats_patterns(each, is_repeated) for each in same) or any(_repeats_patterns(e, True) for e in many)


def _parts(schema: Schema) -> Iterator[Schema]:
    yield from (schema.get("properties") or {}).values()
    yield from (each for name in _REPEATED if isinstance(each := schema.get(name), Mapping))


def _alternatives(schema: Schema) -> Iterator[Schema]:
    for keyword in ("anyOf", "oneOf", "allOf"):
        yield from schema.get(keyword) or ()
    if negated := schema.get("not"):
        yield negated
