"""Decoding of protobuf messages with a small descriptor: fields, unknown fields and invalid messages."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.endpoints.handlers.request_body import parse
from apiserver.meta.errors import BadRequest, UnsupportedMediaType
from apiserver.meta.protobuf_message import (
    FieldDescriptor,
    MessageDescriptor,
    ScalarType,
    map_of,
    message,
    optional,
    repeated,
)
from apiserver.serializer.protobuf import MAX_DEPTH, MAX_FIELDS, MEDIA_TYPE, decode
from apiserver.serializer.protobuf_meta import INT_OR_STRING, MICRO_TIME, OBJECT_META, QUANTITY, TIME
from tests.protobuf_encoder import MAGIC, bytes_field, envelope, number_field, varint

_INNER = message("Inner", {1: "text"})
THING = message(
    "Thing",
    {
        1: "text",
        2: FieldDescriptor("count", ScalarType.INT),
        3: FieldDescriptor("on", ScalarType.BOOL),
        4: FieldDescriptor("secret", ScalarType.BYTES),
        5: FieldDescriptor("inner", _INNER),
        6: optional("maybe", ScalarType.INT),
        7: optional("inside", _INNER),
        8: repeated("inners", _INNER),
        9: map_of("labels"),
        10: map_of("counts", ScalarType.INT),
        11: FieldDescriptor("at", TIME),
        12: FieldDescriptor("exactly", MICRO_TIME),
        13: FieldDescriptor("port", INT_OR_STRING),
        14: map_of("hard", QUANTITY),
        200: "far",
    },
)


def thing(raw: bytes) -> bytes:
    return envelope(raw, kind="Thing")


def entry(key: bytes, value: bytes) -> bytes:
    return bytes_field(1, key) + value


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        pytest.param(b"", {}, id="no fields"),
        pytest.param(bytes_field(1, "grün".encode()), {"text": "grün"}, id="a string"),
        pytest.param(bytes_field(1, b""), {}, id="an empty string is omitted"),
        pytest.param(bytes_field(1, b"a") + bytes_field(1, b"b"), {"text": "b"}, id="the last value wins"),
        pytest.param(bytes_field(1, b"a") + bytes_field(1, b""), {}, id="the last value wins, even if it is empty"),
        pytest.param(number_field(2, 300), {"count": 300}, id="a number of two bytes"),
        pytest.param(number_field(2, -1), {"count": -1}, id="a negative number"),
        pytest.param(number_field(2, -(2**63)), {"count": -(2**63)}, id="the least number"),
        pytest.param(number_field(3, 1) + number_field(2, 0), {"on": True}, id="a boolean, and an omitted zero"),
        pytest.param(bytes_field(4, b"\xff\x00"), {"secret": "/wA="}, id="bytes"),
        pytest.param(bytes_field(5, bytes_field(1, b"a")), {"inner": {"text": "a"}}, id="a message"),
        pytest.param(bytes_field(5, b""), {}, id="an empty message is omitted"),
        pytest.param(number_field(6, 0), {"maybe": 0}, id="a zero of a pointer is retained"),
        pytest.param(bytes_field(7, b""), {"inside": {}}, id="an empty message of a pointer is retained"),
        pytest.param(
            bytes_field(8, b"") + number_field(2, 1) + bytes_field(8, bytes_field(1, b"a")),
            {"inners": [{}, {"text": "a"}], "count": 1},
            id="a list with another field in between",
        ),
        pytest.param(
            bytes_field(9, entry(b"a", bytes_field(2, b"b"))) + bytes_field(9, entry(b"c", b"")),
            {"labels": {"a": "b", "c": ""}},
            id="a map with an omitted value",
        ),
        pytest.param(bytes_field(9, b""), {"labels": {"": ""}}, id="an entry without key and value"),
        pytest.param(bytes_field(10, entry(b"a", b"")), {"counts": {"a": 0}}, id="an entry without a number"),
        pytest.param(bytes_field(11, number_field(1, 60)), {"at": "1970-01-01T00:01:00Z"}, id="a time"),
        pytest.param(bytes_field(11, number_field(1, 0)), {"at": "1970-01-01T00:00:00Z"}, id="1970 is not zero"),
        pytest.param(bytes_field(11, number_field(1, -62135596799)), {"at": "0001-01-01T00:00:01Z"}, id="year 1"),
        pytest.param(bytes_field(11, b""), {}, id="the zero time"),
        pytest.param(
            bytes_field(12, number_field(1, 60) + number_field(2, 1_000_999)),
            {"exactly": "1970-01-01T00:01:00.001000Z"},
            id="a time with microseconds",
        ),
        pytest.param(bytes_field(13, number_field(1, 0) + number_field(2, 80)), {"port": 80}, id="a port's number"),
        pytest.param(bytes_field(13, number_field(1, 1) + bytes_field(3, b"web")), {"port": "web"}, id="a port's name"),
        pytest.param(
            bytes_field(14, entry(b"cpu", bytes_field(2, bytes_field(1, b"1")))) + bytes_field(14, entry(b"pods", b"")),
            {"hard": {"cpu": "1", "pods": "0"}},
            id="quantities",
        ),
        pytest.param(bytes_field(200, b"a"), {"far": "a"}, id="a field number of two bytes"),
        pytest.param(
            bytes_field(99, b"\xff") + number_field(98, 1) + varint(97 << 3 | 1) + bytes(8) + varint(96 << 3 | 5)
            + bytes(4) + bytes_field(1, b"a"),
            {"text": "a"},
            id="unknown fields of every wire type are skipped",
        ),
    ],
)  # fmt: skip
def test_fields_become_json(raw: bytes, expected: dict[str, Any]) -> None:
    assert decode(thing(raw), THING) == {"apiVersion": "v1", "kind": "Thing", **expected}


def test_only_the_type_of_another_kind_is_decoded() -> None:
    body = envelope(b"\xff\xff", kind="Other", api_version="other/v1")
    assert decode(body, THING) == {"apiVersion": "other/v1", "kind": "Other"}


def test_a_message_without_a_type_is_decoded_as_the_expected_kind() -> None:
    assert decode(MAGIC + bytes_field(2, bytes_field(1, b"a")), THING) == {"text": "a"}


@pytest.mark.parametrize(
    ("body", "why"),
    [
        pytest.param(b"", r"expected prefix \[107 56 115 0\]", id="empty"),
        pytest.param(b'{"kind":"Thing"}', r"expected prefix \[107 56 115 0\]", id="JSON"),
        pytest.param(MAGIC + b"\x0a\x05", "ends within a field", id="a truncated envelope"),
        pytest.param(MAGIC + bytes_field(3, b"gzip"), "content is encoded", id="a compressed message"),
        pytest.param(thing(b"\x0a"), "ends within a number", id="a field without a length"),
        pytest.param(thing(b"\x0a\xff\xff\xff\xff\x0f"), "ends within a field", id="a length beyond the end"),
        pytest.param(thing(b"\x10" + b"\xff" * 10 + b"\x00"), "more than 64 bits", id="a number of 11 bytes"),
        pytest.param(thing(b"\x02\x00"), "the number 0", id="field number 0"),
        pytest.param(thing(b"\x0b"), "wire type 3", id="a group"),
        pytest.param(thing(b"\x0f"), "wire type 7", id="an unknown wire type"),
        pytest.param(thing(number_field(1, 1)), "a number instead of bytes", id="a number for a string"),
        pytest.param(
            thing(varint(1 << 3 | 5) + bytes(4)), "a number instead of bytes", id="a fixed-size number for a string"
        ),
        pytest.param(
            thing(varint(2 << 3 | 1) + bytes(8)), "does not hold a number", id="a fixed-size number for a varint"
        ),
        pytest.param(thing(bytes_field(2, b"1")), "does not hold a number", id="a string for a number"),
        pytest.param(thing(number_field(5, 1)), "a number instead of bytes", id="a number for a message"),
        pytest.param(thing(number_field(9, 1)), "a number instead of bytes", id="a number for an entry"),
        pytest.param(thing(bytes_field(1, b"pass\xff")), "not valid UTF-8: invalid start byte$", id="invalid UTF-8"),
        pytest.param(
            thing(bytes_field(11, number_field(1, 2**62))), "not a valid protobuf message", id="a time out of range"
        ),
        pytest.param(
            thing(bytes_field(12, number_field(2, 10**9))), "1000000000 nanoseconds", id="too many nanoseconds"
        ),
    ],
)
def test_an_invalid_protobuf_message_is_a_bad_request(body: bytes, why: str) -> None:
    with pytest.raises(BadRequest, match=why):
        decode(body, THING)


def nested(levels: int) -> MessageDescriptor:
    descriptor = message("Thing", {})
    for _ in range(levels - 1):
        descriptor = message("Thing", {1: optional("deeper", descriptor)})
    return descriptor


def nested_body(levels: int) -> bytes:
    raw = b""
    for _ in range(levels - 1):
        raw = bytes_field(1, raw)
    return thing(raw)


def test_the_nesting_of_messages_is_bounded() -> None:
    assert decode(nested_body(MAX_DEPTH), nested(MAX_DEPTH))["deeper"]
    with pytest.raises(BadRequest, match=f"more than {MAX_DEPTH} levels"):
        decode(nested_body(MAX_DEPTH + 1), nested(MAX_DEPTH + 1))


def test_the_number_of_fields_is_bounded() -> None:
    envelope_fields = 6
    most = MAX_FIELDS - envelope_fields
    assert decode(thing(number_field(2, 1) * most), THING)["count"] == 1
    with pytest.raises(BadRequest, match=f"more than {MAX_FIELDS} fields"):
        decode(thing(number_field(2, 1) * (most + 1)), THING)


def test_fields_of_nested_messages_count_towards_the_limit() -> None:
    half = MAX_FIELDS // 2
    with pytest.raises(BadRequest, match=f"more than {MAX_FIELDS} fields"):
        decode(thing(bytes_field(8, number_field(99, 1) * half) + bytes_field(8, number_field(99, 1) * half)), THING)


@pytest.mark.parametrize(
    "document",
    [pytest.param(b"{", id="truncated"), pytest.param(b"[" * 100_000, id="deep"), pytest.param(b"NaN", id="NaN")],
)
def test_json_within_protobuf_is_as_strict_as_json(document: bytes) -> None:
    descriptor = message("Thing", {1: FieldDescriptor("metadata", OBJECT_META)})
    fields_v1 = bytes_field(7, bytes_field(1, document))
    with pytest.raises(BadRequest, match="json parse error"):
        decode(thing(bytes_field(1, bytes_field(17, fields_v1))), descriptor)


@given(raw=st.binary(max_size=200), wrapped=st.booleans())
def test_random_bytes_are_decoded_or_a_bad_request(raw: bytes, wrapped: bool) -> None:
    try:
        decoded = decode(thing(raw) if wrapped else MAGIC + raw, THING)
    except BadRequest:
        return
    assert isinstance(decoded, dict)


def test_a_protobuf_body_is_decoded_if_the_kind_has_a_descriptor() -> None:
    body = thing(bytes_field(1, b"a"))
    assert parse(body, MEDIA_TYPE, THING).value == {"apiVersion": "v1", "kind": "Thing", "text": "a"}


def test_a_json_body_is_decoded_even_if_the_kind_has_a_descriptor() -> None:
    assert parse(b'{"text": "a"}', "application/json", THING).value == {"text": "a"}


def test_a_protobuf_body_is_a_415_if_the_kind_has_no_descriptor() -> None:
    with pytest.raises(UnsupportedMediaType, match="unknown format"):
        parse(thing(b""), MEDIA_TYPE, None)
