"""JSON values, compared as in Kubernetes: a boolean never equals a number, and 1 equals 1.0."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable
from typing import Any, TypeVar, cast

T = TypeVar("T")

MAX_OBJECT_NESTING = 128
"""The nesting limit of objects, which are walked recursively and encoded with limits. Request bodies may nest deeper:
they are pruned to this limit or rejected."""


def equal(left: Any, right: Any) -> bool:
    """Compares two JSON values: numbers by value, objects without regard to the order of keys."""
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


def deep_copy(value: T) -> T:
    """A copy that shares no object or list with `value`. `copy.deepcopy` takes five times as long: it looks for shared
    parts and circles, which JSON does not have."""
    copied: Any
    items: Iterable[tuple[Any, object]]
    if isinstance(value, dict):
        copied, items = value.copy(), value.items()
    elif isinstance(value, list):
        copied, items = value[:], enumerate(value)
    else:
        return value
    for position, item in items:
        if isinstance(item, (dict, list)):
            copied[position] = deep_copy(item)
    return cast(T, copied)


def comparable(value: Any) -> Hashable:
    """The same for JSON values that are `equal`, and for no others."""
    if isinstance(value, dict):
        return "object", frozenset((key, comparable(each)) for key, each in value.items())
    if isinstance(value, list):
        return "array", tuple(comparable(each) for each in value)
    return ("boolean", value) if isinstance(value, bool) else value


def nests_deeper_than(value: Any, limit: int) -> bool:
    """True if objects and lists nest deeper than `limit`. Iterative, so that any depth is safe."""
    level = _containers([value])
    for _ in range(limit):
        if not level:
            return False
        level = [child for parent in level for child in _containers(_children(parent))]
    return bool(level)


def contains_more_than(value: Any, limit: int) -> bool:
    """True if `value` contains more than `limit` values at any depth. Stops counting at the limit."""
    count, pending = 0, _containers([value])
    while pending:
        container = pending.pop()
        count += len(container)
        if count > limit:
            return True
        pending.extend(_containers(_children(container)))
    return False


def own_text(value: Any) -> int:
    """The characters of a text, or of the keys of an object, without those of the values inside."""
    if isinstance(value, str):
        return len(value)
    return sum(map(len, value)) if isinstance(value, dict) else 0


def path_text_exceeds(
    value: Any, limit: int, *, entries: Callable[[dict[str, Any]], Collection[tuple[str, Any]]] = dict.items
) -> bool:
    """True if the paths of all values inside `value`, such as `spec.a[0].b`, have more than `limit` characters
    together, without those of indexes. Stops counting at the limit. `entries` are the keys and values of an object."""
    total, pending = 0, [(value, 0)]
    while pending:
        container, length = pending.pop()
        pairs: Collection[tuple[str, Any]]
        if isinstance(container, dict):
            pairs = entries(container)
        else:
            pairs = [("", each) for each in container] if isinstance(container, list) else ()
        total += length * len(pairs) + sum(len(key) for key, _ in pairs)
        if total > limit:
            return True
        pending.extend((each, length + len(key) + 1) for key, each in pairs if isinstance(each, (dict, list)))
    return False


def _containers(values: Iterable[Any]) -> list[Any]:
    return [value for value in values if isinstance(value, (dict, list))]


def _children(container: dict[str, Any] | list[Any]) -> Iterable[Any]:
    return container.values() if isinstance(container, dict) else container
