"""Decides whether two routes of one hostname may receive the same request, from the paths that they match. Pure.

Headers, query parameters and methods are not compared: routes that differ in nothing else overlap.
"""

from __future__ import annotations

from collections.abc import Iterable

from controller.tenantgateway.model import PathMatch


def first_overlap(paths: Iterable[PathMatch], others: Iterable[PathMatch]) -> PathMatch | None:
    """The first of `paths` that overlaps one of `others`; None if they are disjoint."""
    compared = tuple(others)
    return next((each for each in paths if any(overlaps(each, other) for other in compared)), None)


def overlaps(one: PathMatch, other: PathMatch) -> bool:
    """True if a path exists that both match. A pattern that is not understood may match everything."""
    if "Any" in (one.type, other.type):
        return True
    if one.type == other.type == "Exact":
        return one.value == other.value
    if one.type == "Exact":
        return lies_below(one.value, other.value)
    if other.type == "Exact":
        return lies_below(other.value, one.value)
    return lies_below(one.value, other.value) or lies_below(other.value, one.value)


def lies_below(path: str, prefix: str) -> bool:
    """True if a PathPrefix match of `prefix` matches `path`: segment by segment, and a slash at its end means
    nothing."""
    stem = prefix.rstrip("/")
    return path.rstrip("/") == stem or path.startswith(f"{stem}/")
