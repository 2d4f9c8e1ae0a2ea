"""Matching of labels or fields with the requirements of a selector.

The requirements of one key become one test, and keys that may be absent are looked up only if an object has them. So
matching takes time by the labels of an object, not by the requirements of the selector: each event is compared with the
selector of every watch, and a list compares each object (ATTACK-19).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar

# thousands of digits are no integer that Python reads
_INTEGER = re.compile(r"([+-]?)0*([0-9]{1,19})")
_LEAST, _GREATEST = -(2**63), 2**63 - 1


class Labelled(Protocol):
    @property
    def labels(self) -> Mapping[str, str]: ...


L = TypeVar("L", bound=Labelled)


@dataclass(frozen=True, slots=True)
class Requirement:
    """One term of a selector. `operator` is In, NotIn, Exists, DoesNotExist, Gt or Lt; `=` becomes In, `!=` becomes
    NotIn."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _KeyTest:
    """`allowed` are the only values that match, None if only `forbidden` and the limits restrict them. With `optional`,
    objects without the key match, too."""

    optional: bool
    allowed: frozenset[str] | None
    forbidden: frozenset[str]
    limits: tuple[int, int] | None

    def matches(self, value: str) -> bool:
        if self.allowed is not None:
            return value in self.allowed
        return value not in self.forbidden and (self.limits is None or _is_within(value, self.limits))

    def select(self, key: str, objects: Iterable[L]) -> list[L]:
        """Returns the objects whose value of `key` matches, without a call for each of ten thousand objects."""
        if self.allowed is not None and not self.optional:
            allowed = self.allowed
            # a set of strings does not contain None
            return [each for each in objects if each.labels.get(key) in allowed]
        forbidden = self.forbidden
        if self.optional:
            if self.allowed is not None:
                return [each for each in objects if key not in each.labels]
            return [each for each in objects if each.labels.get(key) not in forbidden]
        found = [each for each in objects if key in each.labels and each.labels[key] not in forbidden]
        limits = self.limits
        return found if limits is None else [each for each in found if _is_within(each.labels[key], limits)]


class Matcher:
    """Matches all of some requirements."""

    __slots__ = ("_optional", "_required")

    def __init__(self, requirements: Iterable[Requirement]) -> None:
        by_key: dict[str, list[Requirement]] = {}
        for requirement in requirements:
            by_key.setdefault(requirement.key, []).append(requirement)
        tests = {key: _key_test(of_key) for key, of_key in by_key.items()}
        self._required = [(key, test) for key, test in tests.items() if not test.optional]
        self._optional = {key: test for key, test in tests.items() if test.optional}

    def matches(self, values: Mapping[str, str]) -> bool:
        for key, test in self._required:
            value = values.get(key)
            if value is None or not test.matches(value):
                return False
        return not self._optional or self._has_only_matching(values)

    def select(self, objects: Iterable[L]) -> list[L]:
        """Returns the objects whose labels match."""
        # an object takes part in as many of these as it has labels, and one
        for key, test in self._required:
            objects = test.select(key, objects)
        optional = self._optional
        if len(optional) == 1:
            ((key, test),) = optional.items()
            return test.select(key, objects)
        if optional:
            has_none = optional.keys().isdisjoint
            return [each for each in objects if has_none(each.labels) or self._has_only_matching(each.labels)]
        return list(objects)

    def _has_only_matching(self, values: Mapping[str, str]) -> bool:
        """True if no value of a key that may be absent fails the test of that key."""
        optional = self._optional
        return all(optional[key].matches(values[key]) for key in values if key in optional)


MATCH_EVERYTHING: Final = Matcher(())


def int64(text: str) -> int | None:
    """Returns the integer that `text` is, None if it is not one or does not fit into 64 bits."""
    found = _INTEGER.fullmatch(text)
    if found is None:
        return None
    number = int(found[1] + found[2])
    return number if _LEAST <= number <= _GREATEST else None


def _is_within(value: str, limits: tuple[int, int]) -> bool:
    """True for an integer between the two `limits`, which are inclusive."""
    number = int64(value)
    return number is not None and limits[0] <= number <= limits[1]


def _key_test(requirements: Iterable[Requirement]) -> _KeyTest:
    """The test for the requirements of one key."""
    optional = True
    allowed: frozenset[str] | None = None
    forbidden: set[str] = set()
    limits: tuple[int, int] | None = None
    for each in requirements:
        match each.operator:
            case "In":
                allowed = frozenset(each.values) if allowed is None else allowed.intersection(each.values)
                optional = False
            case "NotIn":
                forbidden.update(each.values)
            case "Exists":
                optional = False
            case "DoesNotExist":
                allowed = frozenset()
            case _:
                limits = _narrowed(limits or (_LEAST, _GREATEST), each)
                optional = False
    if allowed:
        allowed = frozenset(v for v in allowed if v not in forbidden and (limits is None or _is_within(v, limits)))
    return _KeyTest(optional, allowed, frozenset(forbidden), limits)


def _narrowed(limits: tuple[int, int], requirement: Requirement) -> tuple[int, int]:
    """The limits of integers that also meet a requirement with the operator Gt or Lt."""
    low, high = limits
    bound = int64(requirement.values[0])
    if bound is None:
        return 1, 0
    return (max(low, bound + 1), high) if requirement.operator == "Gt" else (low, min(high, bound - 1))
