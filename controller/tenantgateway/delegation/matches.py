"""Matches of rules, and which of them lie within others, segment by segment. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from controller.tenantgateway.delegation.model import DelegatedMatch
from controller.tenantgateway.parse import mapping, mappings, string

EVERYTHING = DelegatedMatch(())
"""The selection of a rule without matches."""


def covers(delegated: DelegatedMatch, wanted: DelegatedMatch) -> bool:
    """True if `delegated` selects every request that `wanted` does. `/fin` does not cover `/finance` (R-350)."""
    if delegated.hostname != wanted.hostname or not delegated.constraints <= wanted.constraints:
        return False
    if delegated.exact:
        return wanted.exact and wanted.segments == delegated.segments
    return wanted.segments[: len(delegated.segments)] == delegated.segments


def parse_match(match: Mapping[str, Any]) -> DelegatedMatch | None:
    """A match of an HTTPRoute; None if its path is a regular expression, or one that servers read in several ways."""
    path = mapping(match.get("path"))
    type_, value = string(path, "type") or "PathPrefix", string(path, "value") or "/"
    if type_ not in ("PathPrefix", "Exact") or not value.startswith("/") or _is_ambiguous(value):
        return None
    segments = value.split("/")[1:]
    if type_ == "PathPrefix" and not segments[-1]:
        # `/finance/` and `/finance` are the same prefix
        segments.pop()
    if not all(segments[:-1]):
        return None
    if type_ == "PathPrefix" and segments and not segments[-1]:
        return None
    return DelegatedMatch(tuple(segments), type_ == "Exact", frozenset(_constraints(match)))


def _is_ambiguous(path: str) -> bool:
    """True if a server that decodes a path, or takes a backslash for a slash, may find other segments in it: Gateway
    API's own rules forbid `/../`, but not `/%2e%2e/`."""
    decoded = unquote(path)
    if "\\" in decoded or decoded.count("/") != path.count("/"):
        return True
    return any(each in (".", "..") for each in decoded.split("/"))


def parse_method_match(match: Mapping[str, Any]) -> DelegatedMatch | None:
    """A match of a GRPCRoute; None if its method is a regular expression. A method without a service is one of every
    service."""
    called = mapping(match.get("method"))
    service, method = string(called, "service"), string(called, "method")
    if (string(called, "type") or "Exact") != "Exact" or "/" in service or "/" in method:
        return None
    segments = (service, *([method] if method else [])) if service else ()
    headers = {**match, "method": method, "queryParams": None}
    return DelegatedMatch(segments, bool(service and method), frozenset(_constraints(headers)))


def whole(hostname: str) -> DelegatedMatch:
    """The selection of a TLSRoute's rule."""
    return DelegatedMatch((), exact=True, hostname=hostname)


def _constraints(match: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """Of several entries for one header or parameter, only the first counts (Gateway API)."""
    if method := string(match, "method"):
        yield "method", method
    seen = set()
    for field in ("headers", "queryParams"):
        for each in mappings(match.get(field)):
            name = string(each, "name")
            name = name.lower() if field == "headers" else name
            if (field, name) not in seen:
                seen.add((field, name))
                yield field, name, string(each, "type") or "Exact", string(each, "value")
