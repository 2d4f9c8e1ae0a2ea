"""Decoding of request bodies in JSON and YAML (WIRE-D30, WIRE-D33, WIRE-D66, WIRE-D67, WIRE-E17)."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, Never

from apiserver.json.values import nests_deeper_than, path_text_exceeds
from apiserver.meta.errors import BadRequest, RequestEntityTooLarge, UnsupportedMediaType, first_texts
from apiserver.serializer.yaml import YamlError, decode_yaml

MAX_NESTING = 1000
MAX_VALUES = 100_000
"""The maximum number of values in one JSON body: a JSON patch of 10,000 operations has half of them. More would need
much memory, and time on the event loop (ATTACK-13)."""
MAX_PATH_TEXT = 8 * 1024 * 1024
"""The maximum number of characters in the paths of all fields together. Errors name fields by their paths, and those of
many fields below a long key would fill the memory (ATTACK-19). The largest of real objects have a third of them."""
_ACCEPTED = ("application/json", "application/yaml")
_JSON_PREFIXES = (b"{", b"[")
# The cost of a byte of YAML in bytes of JSON, and of a document with aliases, which can be any size.
_YAML_COST, _ALIASES_COST = 12, 1 << 30
_MIN_INT64, _MAX_INT64 = -(2**63), 2**63 - 1
# every value follows one of these, except for the outermost one
_VALUE_STARTS = ",[{"
# a string without an end ends with the text: scanning from each of its quotes would take quadratic time
_STRING_OR_SYMBOL = re.compile(r'"(?:[^"\\]++|\\.?)*+"?|(?P<symbol>[,\[{\]}])', re.DOTALL)
_CLOSING = frozenset("]}")
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")


@dataclass(frozen=True, slots=True)
class DecodedBody:
    """A decoded body. `strict_errors` are messages about duplicate keys, of which the last one wins; `overridden` are
    the paths and values of the others in JSON, in document order."""

    value: Any
    strict_errors: tuple[str, ...] = ()
    overridden: Sequence[tuple[str, Any]] = ()


def decode(body: bytes, media_type: str) -> DecodedBody:
    """Decodes a body. Raises BadRequest if it is malformed or nests deeper than MAX_NESTING, RequestEntityTooLarge for
    more than MAX_VALUES in JSON, and UnsupportedMediaType."""
    check_media_type(media_type)
    return _decode_json(_text(body)) if media_type == "application/json" else _decode_yaml(_text(body))


def decoding_cost(body: bytes, media_type: str) -> int:
    """Estimates the decoding time as an equivalent number of JSON bytes. YAML aliases can expand to any number of
    values."""
    if media_type == "application/json":
        return len(body)
    if b"&" in body and b"*" in body:
        return _ALIASES_COST
    return len(body) if body.lstrip()[:1] in _JSON_PREFIXES else len(body) * _YAML_COST


def check_media_type(media_type: str) -> None:
    """Raises UnsupportedMediaType if `decode` does not support the type. Callers check it before they read the body
    (WIRE-D26)."""
    if media_type not in _ACCEPTED:
        raise UnsupportedMediaType(
            f"the body of the request was in an unknown format - accepted media types include: {', '.join(_ACCEPTED)}"
        )


def _text(body: bytes) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        raise BadRequest(f"the body is not valid UTF-8: {error.reason} at byte {error.start}") from error


def _decode_json(text: str) -> DecodedBody:
    _check_number_of_values(text)
    has_duplicates = False

    def build(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal has_duplicates
        built = dict(pairs)
        if len(built) == len(pairs):
            return built
        has_duplicates = True
        return _ObjectWithDuplicates(pairs)

    overridden: list[tuple[str, Any]] = []
    try:
        value = _parse_json(text, build)
        if has_duplicates:
            if path_text_exceeds(value, MAX_PATH_TEXT, entries=_pairs):
                raise paths_too_long()
            value = _without_duplicates(value, "", overridden)
        if _SURROGATE_ESCAPE.search(text):
            value = _replace_surrogates(value)
    except RecursionError as error:
        raise _too_deep() from error
    paths = dict.fromkeys(path for path, _ in overridden)
    return DecodedBody(value, tuple(first_texts(f'duplicate field "{path}"' for path in paths)), overridden)


def _check_number_of_values(text: str) -> None:
    """Raises RequestEntityTooLarge, or BadRequest for deep nesting, before the values are created."""
    if sum(map(text.count, _VALUE_STARTS)) <= MAX_VALUES:
        return
    # some of them may be part of strings
    values = depth = 0
    for token in _STRING_OR_SYMBOL.finditer(text):
        symbol = token["symbol"]
        if symbol in _CLOSING:
            depth -= 1
        elif symbol:
            values += 1
            depth += symbol != ","
            if depth > MAX_NESTING:
                raise _too_deep()
            if values > MAX_VALUES:
                raise RequestEntityTooLarge(f"a body may contain at most {MAX_VALUES} values")


def _parse_json(text: str, build: Callable[[list[tuple[str, Any]]], dict[str, Any]]) -> Any:
    try:
        value = json.loads(
            text,
            object_pairs_hook=build,
            parse_int=_integer,
            parse_float=_number,
            parse_constant=_reject_constant,
        )
    except json.JSONDecodeError as error:
        raise BadRequest(f"json parse error: {error.msg} at line {error.lineno} column {error.colno}") from error
    if nests_deeper_than(value, MAX_NESTING):
        raise _too_deep()
    return value


def _too_deep() -> BadRequest:
    return BadRequest(f"json parse error: exceeded max depth of {MAX_NESTING}")


def paths_too_long() -> RequestEntityTooLarge:
    return RequestEntityTooLarge(f"the paths of an object's fields may have {MAX_PATH_TEXT} characters in total")


def _integer(text: str) -> int | float:
    """Converts an integer as Go does: beyond 64 bits it is a float."""
    if len(text) < 19:
        return int(text)
    if len(text) < 21 and _MIN_INT64 <= int(text) <= _MAX_INT64:
        return int(text)
    return _finite(text)


def _number(text: str) -> int | float:
    """Converts whole numbers to integers in any notation, because Go encodes 5.0 as 5."""
    number = _finite(text)
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise BadRequest(f"json parse error: number {text[:40]} is out of range")
    return number


def _reject_constant(name: str) -> Never:
    raise BadRequest(f"json parse error: {name} is not a JSON number")


class _ObjectWithDuplicates(dict[str, Any]):
    """An object with duplicate keys, and its original key-value pairs."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.pairs = pairs


def _pairs(value: dict[str, Any]) -> Collection[tuple[str, Any]]:
    return value.pairs if isinstance(value, _ObjectWithDuplicates) else value.items()


def _without_duplicates(value: Any, path: str, overridden: list[tuple[str, Any]]) -> Any:
    """Replaces objects with duplicate keys by plain ones, and adds the paths and the values that do not count to
    `overridden` in document order."""
    if isinstance(value, list):
        return [_without_duplicates(each, f"{path}[{index}]", overridden) for index, each in enumerate(value)]
    if not isinstance(value, dict):
        return value
    plain: dict[str, Any] = {}
    for key, each in _pairs(value):
        inside = f"{path}.{key}" if path else key
        if key in plain:
            overridden.append((inside, plain[key]))
        plain[key] = _without_duplicates(each, inside, overridden)
    return plain


def _replace_surrogates(value: Any) -> Any:
    """Replaces lone surrogates, which cannot be encoded as UTF-8, by U+FFFD as Go does."""
    if isinstance(value, dict):
        return {_replace_surrogates_in_text(key): _replace_surrogates(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_replace_surrogates(each) for each in value]
    return _replace_surrogates_in_text(value) if isinstance(value, str) else value


def _replace_surrogates_in_text(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _decode_yaml(text: str) -> DecodedBody:
    if text.lstrip()[:1].encode() in _JSON_PREFIXES:
        # most clients send JSON as YAML in applies, and the JSON decoder is much faster
        try:
            document = _decode_json(text)
            if not document.strict_errors:
                return document
        except BadRequest:
            # text that is not JSON may still be YAML, for example with a trailing comma (WIRE-J43)
            pass
    try:
        value, duplicates = decode_yaml(text, max_nesting=MAX_NESTING)
    except YamlError as error:
        raise BadRequest(f"error converting YAML to JSON: yaml: {error}") from error
    if not duplicates:
        return DecodedBody(value)
    lines = "\n".join(f"  {each}" for each in duplicates)
    return DecodedBody(value, (f"error converting YAML to JSON: yaml: unmarshal errors:\n{lines}",))
