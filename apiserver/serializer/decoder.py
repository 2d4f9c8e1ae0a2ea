"""Bodies of requests as values: JSON here, YAML in yaml_decoding (WIRE-D30, WIRE-D33, WIRE-D66, WIRE-D67, WIRE-E17)."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Never

from apiserver.json.values import nests_deeper_than
from apiserver.meta.errors import BadRequest, RequestEntityTooLarge, UnsupportedMediaType
from apiserver.serializer.yaml import YamlError, decode_yaml

MAX_NESTING = 1000
MAX_OBJECTS = 100_000
"""In one body: ten times what a JSON patch may have operations. To read more would keep everybody waiting
(ATTACK-13)."""
_ACCEPTED = ("application/json", "application/yaml")
_JSON_BEGINS = (b"{", b"[")
# What a byte of YAML takes, in bytes of JSON; and a document whose length says nothing.
_YAML_COST, _ALIASED = 12, 1 << 30
_MIN_INT64, _MAX_INT64 = -(2**63), 2**63 - 1
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")


@dataclass(frozen=True, slots=True)
class DecodedBody:
    """A decoded body. `duplicates` are the texts of strict errors: keys that are there twice, of which the last
    counts."""

    value: Any
    strict_errors: tuple[str, ...] = ()


def decode(body: bytes, media_type: str) -> DecodedBody:
    """The value of a body. Raises BadRequest for what is not well-formed or nests deeper than MAX_NESTING,
    RequestEntityTooLarge for more than MAX_OBJECTS in JSON, and UnsupportedMediaType."""
    check_media_type(media_type)
    return _decode_json(_text(body)) if media_type == "application/json" else _decode_yaml(_text(body))


def decoding_cost(body: bytes, media_type: str) -> int:
    """The bytes of JSON that take about as long to decode: aliases of YAML can stand for any number of values."""
    if media_type == "application/json":
        return len(body)
    if b"&" in body and b"*" in body:
        return _ALIASED
    return len(body) if body.lstrip()[:1] in _JSON_BEGINS else len(body) * _YAML_COST


def check_media_type(media_type: str) -> None:
    """Raises UnsupportedMediaType for what `decode` cannot read; for callers that ask before there is a body
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
    repeated, objects = False, 0

    def build(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal repeated, objects
        objects += 1
        if objects > MAX_OBJECTS:
            raise RequestEntityTooLarge(f"a body may hold {MAX_OBJECTS} JSON objects")
        built = dict(pairs)
        if len(built) == len(pairs):
            return built
        repeated = True
        return _Repeated(pairs)

    found: dict[str, None] = {}
    try:
        value = _parse_json(text, build)
        if repeated:
            value = _plain(value, "", found)
        if _SURROGATE_ESCAPE.search(text):
            value = _with_valid_text(value)
    except RecursionError as error:
        raise _too_deep() from error
    return DecodedBody(value, tuple(f'duplicate field "{path}"' for path in found))


def _parse_json(text: str, build: Callable[[list[tuple[str, Any]]], dict[str, Any]]) -> Any:
    try:
        value = json.loads(
            text,
            object_pairs_hook=build,
            parse_int=_integer,
            parse_float=_number,
            parse_constant=_refuse_constant,
        )
    except json.JSONDecodeError as error:
        raise BadRequest(f"json parse error: {error.msg} at line {error.lineno} column {error.colno}") from error
    if nests_deeper_than(value, MAX_NESTING):
        raise _too_deep()
    return value


def _too_deep() -> BadRequest:
    return BadRequest(f"json parse error: exceeded max depth of {MAX_NESTING}")


def _integer(text: str) -> int | float:
    """Integers as Go keeps them: beyond 64 bits they are floats."""
    if len(text) < 19:
        return int(text)
    if len(text) < 21 and _MIN_INT64 <= int(text) <= _MAX_INT64:
        return int(text)
    return _finite(text)


def _number(text: str) -> int | float:
    """Numbers that are whole are integers, however they are written: Go writes 5.0 as 5."""
    number = _finite(text)
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise BadRequest(f"json parse error: number {text[:40]} is out of range")
    return number


def _refuse_constant(name: str) -> Never:
    raise BadRequest(f"json parse error: {name} is no number in JSON")


class _Repeated(dict[str, Any]):
    """An object with a key more than once, as it came."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.pairs = pairs


def _plain(value: Any, path: str, duplicates: dict[str, None]) -> Any:
    """`value` with plain objects; `duplicates` gains the paths of repeated keys, in document order."""
    if isinstance(value, list):
        return [_plain(each, f"{path}[{index}]", duplicates) for index, each in enumerate(value)]
    if not isinstance(value, dict):
        return value
    plain: dict[str, Any] = {}
    for key, each in value.pairs if isinstance(value, _Repeated) else value.items():
        inside = f"{path}.{key}" if path else key
        if key in plain:
            duplicates[inside] = None
        plain[key] = _plain(each, inside, duplicates)
    return plain


def _with_valid_text(value: Any) -> Any:
    """Halves of surrogate pairs become U+FFFD, as Go reads them: they cannot be written as UTF-8."""
    if isinstance(value, dict):
        return {_valid(key): _with_valid_text(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_with_valid_text(each) for each in value]
    return _valid(value) if isinstance(value, str) else value


def _valid(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _decode_yaml(text: str) -> DecodedBody:
    if text.lstrip()[:1].encode() in _JSON_BEGINS:
        # JSON is YAML, and most clients that apply send it: it is read much faster as what it is
        try:
            document = _decode_json(text)
            if not document.strict_errors:
                return document
        except BadRequest:
            # what is no JSON may be YAML all the same, as with a trailing comma (WIRE-J43)
            pass
    try:
        value, duplicates = decode_yaml(text, max_nesting=MAX_NESTING)
    except YamlError as error:
        raise BadRequest(f"error converting YAML to JSON: yaml: {error}") from error
    if not duplicates:
        return DecodedBody(value)
    lines = "\n".join(f"  {each}" for each in duplicates)
    return DecodedBody(value, (f"error converting YAML to JSON: yaml: unmarshal errors:\n{lines}",))
