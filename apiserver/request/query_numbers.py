"""Parsing of numbers in query parameters, with the errors of Go (WIRE-D54, WIRE-D64)."""

from __future__ import annotations

import re

from apiserver.meta.errors import BadRequest
from apiserver.request.request_info import Query

_INTEGER = re.compile(r"[+-]?[0-9]+")
_DIGITS = re.compile(r"[0-9]+")
_MAX_DIGITS = 20


def parse_resource_version(query: Query) -> int | None:
    """Parses the resourceVersion parameter; None if it is absent or empty. Raises BadRequest."""
    text = query.get("resourceVersion")
    if not text:
        return None
    problem = ""
    if not _DIGITS.fullmatch(text):
        problem = "invalid syntax"
    elif len(text) > _MAX_DIGITS or int(text) >= 2**64:
        problem = "value out of range"
    if problem:
        why = f'Invalid value: "{text}": strconv.ParseUint: parsing "{text}": {problem}'
        raise BadRequest(f"invalid resource version: resourceVersion: {why}")
    return int(text)


def parse_int64(query: Query, name: str) -> int | None:
    """Parses an integer parameter; None if it is absent. Raises BadRequest, also for an empty value."""
    if name not in query:
        return None
    text = query.get(name)
    problem = ""
    if not _INTEGER.fullmatch(text):
        problem = "invalid syntax"
    elif len(text) > _MAX_DIGITS or not -(2**63) <= int(text) < 2**63:
        problem = "value out of range"
    if problem:
        raise BadRequest(f'strconv.ParseInt: parsing "{text}": {problem}')
    return int(text)
