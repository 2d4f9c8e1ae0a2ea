"""Resolution of YAML 1.1 scalars as in go-yaml: no sexagesimal numbers, no dates, and only JSON numbers."""

from __future__ import annotations

import base64
import binascii
import math
import re
from typing import Any, Final

import yaml

MERGE_KEY: Final = object()
"""The key `<<`."""

_PREFIX = "tag:yaml.org,2002:"
_CONSTANTS: dict[str, Any] = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
}
_NON_JSON_NUMBERS = re.compile(r"\.(nan|NaN|NAN)|[-+]?\.(inf|Inf|INF)")
_INTEGER = re.compile(r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_TYPES: dict[str, tuple[type, ...]] = {
    "null": (type(None),),
    "bool": (bool,),
    "int": (int,),
    "float": (int, float),
}
_INT64 = range(-(2**63), 2**63)
# Longer integers are floats anyway; int() is slow for very long texts, and Python rejects them
_MAX_DIGITS = 70


def resolve_scalar(event: yaml.ScalarEvent, *, is_key: bool) -> Any:
    """Returns the JSON value of a scalar, or MERGE_KEY. Raises ValueError if the value does not match its tag."""
    text: str = event.value
    tag: str | None = event.tag
    if tag is None:
        if not event.implicit[0]:
            return text
        return MERGE_KEY if is_key and text == "<<" else _resolve(text)
    name = tag.removeprefix(_PREFIX)
    if name == "merge" and is_key and text == "<<":
        return MERGE_KEY
    if name == "binary":
        return _binary(text)
    if name not in _TYPES:
        return text
    value = _resolve(text)
    if not isinstance(value, _TYPES[name]) or (name != "bool" and isinstance(value, bool)):
        raise ValueError(f"cannot decode {_tag_of(value)} `{text}` as a !!{name}")
    return value


def _resolve(text: str) -> Any:
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if text[0] not in "+-.0123456789":
        return text
    if _NON_JSON_NUMBERS.fullmatch(text):
        raise ValueError(f"unsupported value: {text} is not a JSON number")
    plain = text.replace("_", "")
    if match := _INTEGER.fullmatch(plain):
        return _integer(match, plain)
    return _float(plain, text) if _FLOAT.fullmatch(plain) else text


def _integer(match: re.Match[str], plain: str) -> int | float | str:
    sign, hexadecimal, binary, octal, decimal = match.groups()
    digits, base = next(
        (digits, base)
        for digits, base in ((hexadecimal, 16), (binary, 2), (octal, 8), (decimal, 10))
        if digits is not None
    )
    if len(digits) > _MAX_DIGITS:
        return _float(plain, plain) if base in (8, 10) else plain
    number = int(digits, base) * (-1 if sign == "-" else 1)
    if number in _INT64:
        return number
    # an octal number beyond Go's integers is parsed as a decimal float
    return _float(plain, plain) if base == 8 else float(number)


def _float(plain: str, text: str) -> int | float | str:
    try:
        number = float(plain)
    except ValueError:
        return text
    if math.isinf(number):
        return text
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


def _binary(text: str) -> str:
    try:
        return base64.b64decode("".join(text.split()), validate=True).decode("utf-8", "replace")
    except binascii.Error as error:
        raise ValueError("!!binary value contains invalid base64 data") from error


def _tag_of(value: Any) -> str:
    if isinstance(value, bool):
        return "!!bool"
    if value is None:
        return "!!null"
    return {int: "!!int", float: "!!float"}.get(type(value), "!!str")
