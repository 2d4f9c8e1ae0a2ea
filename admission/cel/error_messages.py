"""Translates errors of the CEL library into Kubernetes' messages, as far as they correspond. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from admission.cel.loops import LIST, TEST
from admission.cel.tokenizer import REPLACE, select_chains

_CODE, _CODE_AGAIN = re.compile(r"[A-Z_]+: "), re.compile(r" \[[A-Z_]+\]")
_NO_OVERLOAD = "no such overload"
COST_EXCEEDED = "operation cancelled: actual cost limit exceeded"
_LOOPS = (f"{TEST}(", f"{LIST}(")
_REGEX_MESSAGES = {
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "unexpected )": "unexpected )",
    "no argument for repetition operator": "missing argument to repetition operator",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid repetition size": "invalid repeat count",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid escape sequence": "invalid escape sequence",
    "invalid character class range": "invalid character class range",
}
# functions of CEL's extensions: their errors name the function and the types of its arguments
_EXTENSIONS = frozenset(
    (
        "charAt",
        "indexOf",
        "lastIndexOf",
        "join",
        "lowerAscii",
        "upperAscii",
        "replace",
        "split",
        "substring",
        "trim",
        "sum",
    )
)
_CALL = re.compile(r"(?:\((?P<target>\w+)\)\.)?(?P<name>[\w.]+)\((?P<arguments>.*)\)")
_TYPE_NAMES = {"int64": "int", "uint64": "uint"}


def _no_overload_message(found: re.Match[str]) -> str:
    call = _CALL.fullmatch(found["call"])
    if found["call"] == "<iter_range>" or found["call"].startswith(_LOOPS):
        return "expected iterable type"
    if call is None:
        return _NO_OVERLOAD
    name = "replace" if call["name"] == REPLACE else call["name"]
    if name == "size":
        return f"{_NO_OVERLOAD}: size"
    if name in _EXTENSIONS:
        actual = [each for each in (call["target"], *call["arguments"].split(", ")) if each]
        return f"{_NO_OVERLOAD}: {name}({', '.join(_TYPE_NAMES.get(each, each) for each in actual)})"
    return _NO_OVERLOAD


def _regex_message(found: re.Match[str]) -> str:
    why, _, part = found["why"].rpartition(": ")
    return f"error parsing regexp: {_REGEX_MESSAGES.get(why, why)}: `{part}`"


_CONVERSIONS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str]], ...] = tuple(
    (re.compile(pattern, re.DOTALL), convert)
    for pattern, convert in (
        (r'Key not found in map : "?(?P<key>.*?)"?', lambda found: f"no such key: {found['key']}"),
        (r"No matching overloads found : (?P<call>.*)", _no_overload_message),
        (r"Index error: index=(?P<index>-?\d+) size=\d+", lambda found: f"index out of bounds: {found['index']}"),
        (r"divide by zero", lambda found: "division by zero"),
        (r"modulus by zero", lambda found: "modulus by zero"),
        (r"(?:double|int64|uint64) out of u?int64 range", lambda found: "integer overflow"),
        (r"(?:int|uint|integer|unsigned integer) overflow", lambda found: "integer overflow"),
        (
            r"String to (?P<wanted>Timestamp|Duration) conversion failed",
            lambda found: f"type conversion error from 'string' to 'google.protobuf.{found['wanted']}'",
        ),
        (
            r"Index error: expected integer type, got (?P<actual>\w+)",
            lambda found: f"unsupported index type '{found['actual']}' in list",
        ),
        (
            r"decimal clause can only be used on numbers, (?P<actual>.*)",
            lambda found: f"error during formatting: decimal clause can only be used on integers, {found['actual']}",
        ),
        (r"malformed UTF-8 bytes", lambda found: "invalid UTF-8 in bytes, cannot convert to string"),
        (
            r"(?:cannot convert|Type conversion error from) '?(?P<actual>string|bytes|double)'? to '?(?P<wanted>\w+)'?",
            lambda found: f"type conversion error from '{found['actual']}' to '{found['wanted']}'",
        ),
        (r"invalid regular expression: (?P<why>.*)", _regex_message),
    )
)


def text_of_status(error: str) -> str:
    """The text of a status of the library, `CODE: text` or `CODE: text [CODE]`."""
    found = _CODE.match(error)
    if found is None:
        return error
    end = max(error.rfind(" ["), found.end())
    return error[found.end() : end if _CODE_AGAIN.fullmatch(error, end) else None]


def to_kubernetes_message(error: str) -> str:
    """`error` is a status of the library. A text without a counterpart is returned as it is."""
    text = text_of_status(error)
    for pattern, convert in _CONVERSIONS:
        if matched := pattern.fullmatch(text):
            return convert(matched)
    return text


def is_field_selection_error(error: str) -> bool:
    """Reports whether a field of a value without fields was selected; the library does not say which field."""
    return "Applying SELECT to non-message type" in error


def missing_field_message(expression: str, values: Mapping[str, Any]) -> str:
    """The message for a field selection error: it names the first field in the expression whose operand is not a
    map."""
    chains = select_chains(expression)
    for root, fields in chains:
        value = values.get(root)
        if root not in values:
            continue
        for field in fields:
            if not isinstance(value, dict):
                return f"no such key: {field}"
            if field not in value:
                break
            value = value[field]
    # the operand is a variable of a macro: the field is known only if just one is selected
    others = {field for root, fields in chains if root not in values for field in fields[:1]}
    return f"no such key: {others.pop()}" if len(others) == 1 else _NO_OVERLOAD
