"""Kubernetes' CEL functions for quantities and semantic versions; the names of their comparisons are the same."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from admission.cel.library.opaque_types import (
    FunctionError,
    Functions,
    OpaqueValue,
    Type,
    by_kind,
    expect,
    function,
    make,
    method,
    overload,
)
from admission.cel.library.quantity_amount import Amount, add, of_integer, parse_amount, subtract

QUANTITY = "kubernetes.Quantity"
SEMVER = "kubernetes.Semver"
_BLANK = re.compile(r"\s")
_IDENTIFIER = re.compile(r"[0-9A-Za-z-]+", re.ASCII)
_NUMBER = re.compile(r"[0-9]+", re.ASCII)
_MAX_DIGITS = len(str(2**64))
_SCALE_BITS = 6
_SCALE_OFFSET = 9
_NO_SCALE = 2**_SCALE_BITS - 1


def parse_quantity(text: str) -> OpaqueValue:
    try:
        return _quantity(parse_amount(text))
    except ValueError as error:
        raise FunctionError(str(error)) from error


def _quantity(amount: Amount) -> OpaqueValue:
    value = amount.value
    return make(
        QUANTITY, numerator=str(value.numerator), denominator=str(value.denominator), scale=_encoded(amount.scale)
    )


def _encoded(scale: int | None) -> list[int | float]:
    """The scale as bits that are 0 or 0.0, which are equal in CEL but not for Python: quantities of one value are equal
    whatever their scale."""
    number = _NO_SCALE if scale is None else scale + _SCALE_OFFSET
    return [0.0 if number >> bit & 1 else 0 for bit in range(_SCALE_BITS)]


def _amount(value: object) -> Amount:
    found = expect(value, QUANTITY)
    number = sum(1 << bit for bit, each in enumerate(found["scale"]) if isinstance(each, float))
    scale = None if number == _NO_SCALE else number - _SCALE_OFFSET
    return Amount(Fraction(int(found["numerator"]), int(found["denominator"])), scale)


def is_integer(value: object) -> bool:
    return _amount(value).as_int64() is not None


def as_integer(value: object) -> int:
    number = _amount(value).as_int64()
    if number is None:
        raise FunctionError("cannot convert value to integer")
    return number


def as_approximate_float(value: object) -> float:
    number = _amount(value).value
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def _operand(value: object) -> Amount:
    return of_integer(value) if isinstance(value, int) else _amount(value)


def parse_semver(text: str, normalize: bool = False) -> OpaqueValue:
    """Raises FunctionError with the messages of blang/semver, which Kubernetes uses."""
    return _semver(_normalized(text) if normalize else text)


def _normalized(text: str) -> str:
    parts = text.removeprefix("v").split(".", 2)
    parts = [_trimmed(part) if len(part) > 1 else part for part in parts]
    if len(parts) < 3:
        if re.search(r"[+-]", parts[-1]):
            raise FunctionError("short version cannot contain PreRelease/Build meta data")
        parts += ["0"] * (3 - len(parts))
    return ".".join(parts)


def _trimmed(part: str) -> str:
    rest = part.lstrip("0")
    return rest if rest[:1].isdigit() else f"0{rest}"


def _semver(text: str) -> OpaqueValue:
    if not text:
        raise FunctionError("Version string empty")
    parts = text.split(".", 2)
    if len(parts) != 3:
        raise FunctionError("No Major.Minor.Patch elements found")
    found = re.match(r"(?P<patch>[^+-]*)(?:-(?P<pre>[^+]*))?(?:\+(?P<build>.*))?\Z", parts[2], re.DOTALL)
    assert found is not None
    numbers = [
        _number(part, name)
        for part, name in zip((parts[0], parts[1], found["patch"]), ("Major", "Minor", "Patch"), strict=True)
    ]
    pre = _identifiers(found["pre"], "Prerelease")
    for each in filter(_NUMBER.fullmatch, pre):
        if len(each) > 1 and each[0] == "0":
            raise FunctionError(f'Numeric PreRelease version must not contain leading zeroes "{each}"')
        _parse_unsigned(each, 2**64)
    build = _identifiers(found["build"], "Build meta data")
    return make(SEMVER, major=numbers[0], minor=numbers[1], patch=numbers[2], pre=pre, build=build)


def _number(text: str, name: str) -> int:
    if not _NUMBER.fullmatch(text):
        raise FunctionError(f'Invalid character(s) found in {name.lower()} number "{text}"')
    if len(text) > 1 and text[0] == "0":
        raise FunctionError(f'{name} number must not contain leading zeroes "{text}"')
    return _parse_unsigned(text, 2**63)


def _parse_unsigned(text: str, bound: int) -> int:
    """The number that the digits stand for. Raises FunctionError if it is not below `bound`, at most 2^64."""
    if len(text) > _MAX_DIGITS or int(text) >= bound:
        raise FunctionError(f'strconv.ParseUint: parsing "{text}": value out of range')
    return int(text)


def _identifiers(text: str | None, name: str) -> list[str]:
    if text is None:
        return []
    parts = text.split(".")
    for part in parts:
        if not part:
            raise FunctionError(f"{name} is empty")
        if not _IDENTIFIER.fullmatch(part):
            raise FunctionError(f'Invalid character(s) found in {name.lower()} "{part}"')
    return parts


def _sort_key(value: object) -> tuple[Any, ...]:
    """The sort key of a version; build metadata does not count."""
    found = expect(value, SEMVER)
    pre = [(0, int(each), "") if _NUMBER.fullmatch(each) else (1, 0, each) for each in found["pre"]]
    return found["major"], found["minor"], found["patch"], not pre, pre


def _compare_values(left: Any, right: Any) -> int:
    return int(left > right) - int(left < right)


def compare(left: object, right: object) -> int:
    impl: Callable[..., int] = by_kind(
        **{
            QUANTITY: lambda one, other: _compare_values(_amount(one).value, _amount(other).value),
            SEMVER: lambda one, other: _compare_values(_sort_key(one), _sort_key(other)),
        }
    )
    return impl(left, right)


def _succeeds(parse: Callable[..., OpaqueValue], *arguments: Any) -> bool:
    try:
        parse(*arguments)
    except FunctionError:
        return False
    return True


def functions() -> Functions:
    text, truth, number, opaque = Type.STRING, Type.BOOL, Type.INT, Type.MAP

    def arithmetic(name: str, operation: Callable[[Amount, Amount], Amount]) -> Any:
        def impl(left: object, right: object) -> OpaqueValue:
            return _quantity(operation(_amount(left), _operand(right)))

        return function(
            name,
            overload(opaque, opaque, opaque, impl=impl, member=True),
            overload(opaque, opaque, number, impl=impl, member=True),
        )

    def part(name: str) -> Any:
        return method(name, number, impl=lambda value: expect(value, SEMVER)[name])

    return (
        function("quantity", overload(opaque, text, impl=parse_quantity)),
        function("isQuantity", overload(truth, text, impl=lambda value: _succeeds(parse_quantity, value))),
        method("isInteger", truth, impl=is_integer),
        method("asInteger", number, impl=as_integer),
        method("asApproximateFloat", Type.DOUBLE, impl=as_approximate_float),
        function("sign", overload(number, opaque, impl=lambda value: _compare_values(_amount(value).value, 0))),
        arithmetic("add", add),
        arithmetic("sub", subtract),
        function(
            "semver",
            overload(opaque, text, impl=parse_semver),
            overload(opaque, text, truth, impl=parse_semver),
        ),
        function(
            "isSemver",
            overload(truth, text, impl=lambda value: _succeeds(parse_semver, value)),
            overload(truth, text, truth, impl=lambda value, loose: _succeeds(parse_semver, value, loose)),
        ),
        part("major"),
        part("minor"),
        part("patch"),
        method("isGreaterThan", truth, opaque, impl=lambda left, right: compare(left, right) > 0),
        method("isLessThan", truth, opaque, impl=lambda left, right: compare(left, right) < 0),
        method("compareTo", number, opaque, impl=compare),
    )
