"""Parses the Accept header into clauses, in the order in which they are tried (WIRE-E1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_MAX_CLAUSES = 100
_MAX_PARAMETERS = 10


@dataclass(frozen=True, slots=True)
class AcceptClause:
    """One media range with its parameters, without q; the keys are lower case."""

    media_range: str
    parameters: Mapping[str, str]

    def matches(self, media_type: str) -> bool:
        kind, _, subtype = self.media_range.partition("/")
        if subtype == "*":
            return kind == "*" or media_type.startswith(f"{kind}/")
        return media_type == self.media_range


def accept_clauses(accept: str) -> Sequence[AcceptClause]:
    """Best first: by q, then the more specific clause, then the order of the header. An empty header means `*/*`.

    A clause with q=0 is tried last, not excluded (WIRE-E1). Clauses and parameters beyond a number that no client sends
    are ignored (ATTACK-19).
    """
    ranked = []
    for text in accept.split(",", _MAX_CLAUSES)[:_MAX_CLAUSES]:
        media_range, *rest = (part.strip() for part in text.split(";", _MAX_PARAMETERS)[:_MAX_PARAMETERS])
        if media_range:
            pairs = (part.partition("=") for part in rest)
            parameters = {key.strip().lower(): value.strip().strip('"') for key, _, value in pairs}
            quality = _quality(parameters.pop("q", "1"))
            ranked.append((-quality, media_range.count("*"), AcceptClause(media_range.lower(), parameters)))
    ranked.sort(key=lambda entry: entry[:2])
    return [clause for *_, clause in ranked] or [AcceptClause("*/*", {})]


def _quality(text: str) -> float:
    try:
        quality = float(text)
    except ValueError:
        return 1.0
    return quality if 0 <= quality <= 1 else 1.0
