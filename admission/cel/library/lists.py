"""Kubernetes' CEL functions for lists (pkg/cel/library/lists.go)."""

from __future__ import annotations

import datetime
import functools
import itertools
from collections.abc import Sequence
from typing import Any

from admission.cel.library.opaque_types import NO_OVERLOAD, FunctionError, Functions, Type, function, overload
from admission.cel.tokenizer import BOUNDED, INDEX_OF_NULL

_LONGEST_RANGE = 100_000
_NUMBERS = (int, float, datetime.timedelta)
_COMPARED = (bool, int, float, str, bytes, bytearray, datetime.datetime, datetime.timedelta)


def is_sorted(items: Sequence[Any]) -> bool:
    _check_element_types(items, _COMPARED)
    return all(not later < earlier for earlier, later in itertools.pairwise(items))


def total(items: Sequence[Any]) -> Any:
    """0 for an empty list, whose element type is unknown."""
    _check_element_types(items, _NUMBERS)
    if any(isinstance(item, bool) for item in items):
        raise FunctionError(NO_OVERLOAD)
    if not items:
        return 0
    summed = functools.reduce(lambda left, right: left + right, items)
    if isinstance(summed, int) and not -(2**63) <= summed < 2**63:
        raise FunctionError("integer overflow")
    return summed


def smallest(items: Sequence[Any]) -> Any:
    return min(_require_non_empty(items, "min"))


def largest(items: Sequence[Any]) -> Any:
    return max(_require_non_empty(items, "max"))


def index_of(items: Sequence[Any], item: Any) -> int:
    return next((index for index, each in enumerate(items) if _equal(each, item)), -1)


def last_index_of(items: Sequence[Any], item: Any) -> int:
    return next((index for index in range(len(items) - 1, -1, -1) if _equal(items[index], item)), -1)


def _index_of_null(items: Sequence[Any]) -> int:
    return index_of(items, None)


def _last_index_of_null(items: Sequence[Any]) -> int:
    return last_index_of(items, None)


def _require_non_empty(items: Sequence[Any], name: str) -> Sequence[Any]:
    if not items:
        raise FunctionError(f"{name} called on empty list")
    _check_element_types(items, _COMPARED)
    return items


def _check_element_types(items: Sequence[Any], types: tuple[type, ...]) -> None:
    kinds = {"number" if type(item) in (int, float) else type(item).__name__ for item in items}
    if len(kinds) > 1 or any(not isinstance(item, types) for item in items):
        raise FunctionError(NO_OVERLOAD)


def _equal(left: Any, right: Any) -> bool:
    # in Python, True == 1
    return bool(isinstance(left, bool) == isinstance(right, bool) and left == right)


def sort_by(items: Sequence[Any], keys: Sequence[Any]) -> list[Any]:
    """The items in the order of their keys."""
    _check_element_types(keys, _COMPARED)
    order = sorted(range(len(items)), key=lambda index: keys[index])
    return [items[index] for index in order]


def bounded(number: int) -> int:
    """Limits the argument of `lists.range`, as Kubernetes' cost budget limits the size of its result."""
    if number > _LONGEST_RANGE:
        raise FunctionError("operation cancelled: actual cost limit exceeded")
    return number


def functions() -> Functions:
    items, dyn = Type.List(Type.DYN), Type.DYN
    # those that can be converted: not optionals; null would collide with bool
    kinds = (
        Type.BOOL, Type.BYTES, Type.DOUBLE, Type.DURATION, Type.INT, items, Type.MAP, Type.STRING, Type.TIMESTAMP,
        Type.UINT,
    )  # fmt: skip
    return (
        function(BOUNDED, overload(Type.INT, Type.INT, impl=bounded)),
        function("isSorted", overload(Type.BOOL, items, impl=is_sorted, member=True)),
        function("sum", overload(dyn, items, impl=total, member=True)),
        function("min", overload(dyn, items, impl=smallest, member=True)),
        function("max", overload(dyn, items, impl=largest, member=True)),
        function("indexOf", *(overload(Type.INT, items, kind, impl=index_of, member=True) for kind in kinds)),
        function("lastIndexOf", *(overload(Type.INT, items, kind, impl=last_index_of, member=True) for kind in kinds)),
        function(INDEX_OF_NULL["indexOf"], overload(Type.INT, items, impl=_index_of_null, member=True)),
        function(INDEX_OF_NULL["lastIndexOf"], overload(Type.INT, items, impl=_last_index_of_null, member=True)),
    )
