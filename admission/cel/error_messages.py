"""The CEL library's errors in Kubernetes' words, as far as the two can be told to mean the same. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from admission.cel.tokenizer import select_chains

_STATUS = re.compile(r"\A(?P<code>[A-Z_]+): (?P<text>.*?)(?: \[[A-Z_]+\])?\Z", re.DOTALL)
_NO_OVERLOAD = "no such overload"
_CANCELLED = "operation cancelled: actual cost limit exceeded"
_REGEX = {
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
# functions of CEL's extensions: their errors name the function and what it was given
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
_TYPES = {"int64": "int", "uint64": "uint"}


def _no_overload(found: re.Match[str]) -> str:
    call = _CALL.fullmatch(found["call"])
    if found["call"] == "<iter_range>":
        return "expected iterable type"
    if call is None:
        return _NO_OVERLOAD
    if call["name"] == "size":
        return f"{_NO_OVERLOAD}: size"
    if call["name"] in _EXTENSIONS:
        given = [each for each in (call["target"], *call["arguments"].split(", ")) if each]
        return f"{_NO_OVERLOAD}: {call['name']}({', '.join(_TYPES.get(each, each) for each in given)})"
    return _NO_OVERLOAD


def _regex(found: re.Match[str]) -> str:
    why, _, part = found["why"].rpartition(": ")
    return f"error parsing regexp: {_REGEX.get(why, why)}: `{part}`"


_WORDS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str]], ...] = tuple(
    (re.compile(pattern, re.DOTALL), word)
    for pattern, word in (
        (r'Key not found in map : "?(?P<key>.*?)"?', lambda found: f"no such key: {found['key']}"),
        (r"No matching overloads found : (?P<call>.*)", _no_overload),
        (r"Index error: index=(?P<index>-?\d+) size=\d+", lambda found: f"index out of bounds: {found['index']}"),
        (r"divide by zero", lambda found: "division by zero"),
        (r"modulus by zero", lambda found: "modulus by zero"),
        (r"(?:double|int64|uint64) out of u?int64 range", lambda found: "integer overflow"),
        (r"(?:int|uint|integer|unsigned integer) overflow", lambda found: "integer overflow"),
        (r"Iteration budget exceeded", lambda found: _CANCELLED),
        (
            r"String to (?P<wanted>Timestamp|Duration) conversion failed",
            lambda found: f"type conversion error from 'string' to 'google.protobuf.{found['wanted']}'",
        ),
        (
            r"Index error: expected integer type, got (?P<given>\w+)",
            lambda found: f"unsupported index type '{found['given']}' in list",
        ),
        (
            r"decimal clause can only be used on numbers, (?P<given>.*)",
            lambda found: f"error during formatting: decimal clause can only be used on integers, {found['given']}",
        ),
        (r"malformed UTF-8 bytes", lambda found: "invalid UTF-8 in bytes, cannot convert to string"),
        (
            r"(?:cannot convert|Type conversion error from) '?(?P<given>string|bytes|double)'? to '?(?P<wanted>\w+)'?",
            lambda found: f"type conversion error from '{found['given']}' to '{found['wanted']}'",
        ),
        (r"invalid regular expression: (?P<why>.*)", _regex),
    )
)


def kubernetes_words(error: str) -> str:
    """`error` is a status of the library: a code, a colon, a text. What is not known stays as it is."""
    found = _STATUS.match(error)
    text = found["text"] if found else error
    for pattern, word in _WORDS:
        if known := pattern.fullmatch(text):
            return word(known)
    return text


def is_selection(error: str) -> bool:
    """Whether a field was read of what has none; the library does not say which."""
    return "Applying SELECT to non-message type" in error


def selection_words(expression: str, values: Mapping[str, Any]) -> str:
    """Which field it was: the first in the expression that the values lack in this way."""
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
    # of a variable of a macro: the only field that it can be, if it is only one
    others = {field for root, fields in chains if root not in values for field in fields[:1]}
    return f"no such key: {others.pop()}" if len(others) == 1 else _NO_OVERLOAD
