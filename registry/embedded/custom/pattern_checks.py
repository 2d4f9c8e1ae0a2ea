"""Checks the patterns in the schemas of CustomResourceDefinitions. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from apiserver.meta import errors
from apiserver.meta.errors import FieldError
from apiserver.meta.resource import Schema
from apiserver.schema.validation import Matches


def pattern_errors(schema: Schema, path: str, matches: Matches) -> Iterator[FieldError]:
    """An error for each pattern that is no regular expression of Go's syntax. `matches` raises ValueError for it."""
    if pattern := schema.get("pattern"):
        try:
            matches(pattern, "")
        except ValueError as error:
            why = f"must be a valid regular expression, but isn't: {error}"
            yield errors.invalid(f"{path}.pattern", pattern, why)
    for name, part in (schema.get("properties") or {}).items():
        yield from pattern_errors(part, f"{path}.properties[{name}]", matches)
    for keyword in ("items", "additionalProperties", "not"):
        if isinstance(part := schema.get(keyword), Mapping):
            yield from pattern_errors(part, f"{path}.{keyword}", matches)
    for keyword in ("allOf", "anyOf", "oneOf"):
        for index, part in enumerate(schema.get(keyword) or ()):
            yield from pattern_errors(part, f"{path}.{keyword}[{index}]", matches)
