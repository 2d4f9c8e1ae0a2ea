"""JSON values as Kubernetes compares them: a bool is no number, and 1 equals 1.0."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

MAX_OBJECT_NESTING = 128
"""What an object may nest. Bodies may nest deeper, and are then cut by pruning or refused: objects are walked
recursively, and encoders have limits of their own."""


def equal(left: Any, right: Any) -> bool:
    """Whether two JSON values are the same: numbers by value, objects without regard to the order of keys."""
    if isinstance(left, dict):
        if not isinstance(right, dict) or len(left) != len(right):
            return False
        return all(key in right and equal(value, right[key]) for key, value in left.items())
    if isinstance(left, list):
        if not isinstance(right, list) or len(left) != len(right):
            return False
        return all(equal(a, b) for a, b in zip(left, right, strict=True))
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    return bool(left == right)


def nests_deeper_than(value: Any, limit: int) -> bool:
    """Whether objects and lists nest deeper than `limit`. Iterative, so that depth itself does no harm."""
    level = _containers([value])
    for _ in range(limit):
        if not level:
            return False
        level = [child for parent in level for child in _containers(_children(parent))]
    return bool(level)


def contains_more_than(value: Any, limit: int) -> bool:
    """Whether `value` holds more than `limit` values, at any depth; looks at no more than it has to."""
    count, waiting = 0, _containers([value])
    while waiting:
        container = waiting.pop()
        count += len(container)
        if count > limit:
            return True
        waiting.extend(_containers(_children(container)))
    return False


def _containers(values: Iterable[Any]) -> list[Any]:
    return [value for value in values if isinstance(value, (dict, list))]


def _children(container: dict[str, Any] | list[Any]) -> Iterable[Any]:
    return container.values() if isinstance(container, dict) else container
