from __future__ import annotations

import contextlib
import json
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.encoding.offload import LARGE_BYTES
from apiserver.meta.errors import BadRequest, RequestEntityTooLarge, UnsupportedMediaType
from apiserver.serializer.decoder import MAX_NESTING, MAX_VALUES, decode, decoding_cost
from tests.cpu_time import least_ratio

JSON, YAML = "application/json", "application/yaml"
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
)


@given(json_values)
def test_json_survives_a_round_trip(value: Any) -> None:
    document = decode(json.dumps(value, ensure_ascii=False).encode(), JSON)
    assert document.value == value
    assert document.strict_errors == ()


@given(st.binary(max_size=40))
def test_any_bytes_are_a_value_or_a_bad_request(body: bytes) -> None:
    for media_type in (JSON, YAML):
        with contextlib.suppress(BadRequest):
            orjson.dumps(decode(body, media_type).value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("5.0", 5, id="a whole number is an integer"),
        pytest.param("1e3", 1000, id="a whole number in exponent notation"),
        pytest.param("0.5", 0.5, id="a fraction"),
        pytest.param("9223372036854775807", 2**63 - 1, id="the greatest integer"),
        pytest.param("9223372036854775808", 9223372036854775808.0, id="a larger integer is a float"),
        pytest.param("-9223372036854775808", -(2**63), id="the least integer"),
        pytest.param("1" + "0" * 300, 1e300, id="300 digits"),
        pytest.param('"\\ud83d\\ude00"', "\N{GRINNING FACE}", id="a surrogate pair"),
        pytest.param('{"\\ud800": ["a\\udc00"]}', {"\ufffd": ["a\ufffd"]}, id="lone surrogates"),
    ],
)
def test_numbers_and_text_are_decoded_like_in_go(text: str, value: Any) -> None:
    found = decode(text.encode(), JSON).value
    assert found == value
    assert type(found) is type(value)
    orjson.dumps(found)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"{", id="an object that is not closed"),
        pytest.param(b'{"a":1,}', id="a trailing comma"),
        pytest.param(b"{'a':1}", id="single quotes"),
        pytest.param(b"NaN", id="NaN"),
        pytest.param(b'{"a":Infinity}', id="Infinity"),
        pytest.param(b'{"a":-Infinity}', id="minus Infinity"),
        pytest.param(b"1e999", id="a float out of range"),
        pytest.param(b"9" * 400, id="an integer out of range"),
        pytest.param(b"9" * 5000, id="an integer that Python refuses"),
        pytest.param(b'{"a":"\xff"}', id="invalid UTF-8"),
        pytest.param(b'\xef\xbb\xbf{"a":1}', id="a byte order mark"),
        pytest.param(b'{"a":"\x01"}', id="a control character"),
        pytest.param(b"{} {}", id="two documents"),
    ],
)
def test_invalid_json_is_a_bad_request(body: bytes) -> None:
    with pytest.raises(BadRequest):
        decode(body, JSON)


@pytest.mark.parametrize("media_type", [pytest.param(JSON, id="JSON"), pytest.param(YAML, id="YAML")])
@pytest.mark.parametrize(
    "levels", [pytest.param(MAX_NESTING + 1, id="one too deep"), pytest.param(200_000, id="much too deep")]
)
@pytest.mark.parametrize(
    ("opening", "closing"), [pytest.param("[", "]", id="lists"), pytest.param('{"a":', "}", id="objects")]
)
def test_deep_nesting_is_a_bad_request(media_type: str, levels: int, opening: str, closing: str) -> None:
    with pytest.raises(BadRequest):
        decode((opening * levels + "1" + closing * levels).encode(), media_type)


@pytest.mark.parametrize("media_type", [pytest.param(JSON, id="JSON"), pytest.param(YAML, id="YAML")])
def test_moderate_nesting_is_decoded(media_type: str) -> None:
    value = decode(b"[" * 300 + b"]" * 300, media_type).value
    for _ in range(299):
        (value,) = value
    assert value == []


@pytest.mark.parametrize(
    ("text", "value", "duplicates"),
    [
        pytest.param('{"a":1,"a":2}', {"a": 2}, ['duplicate field "a"'], id="at the top level"),
        pytest.param(
            '{"spec":{"b":1,"x":[{"c":1,"c":2}],"b":3,"b":4}}',
            {"spec": {"b": 4, "x": [{"c": 2}]}},
            ['duplicate field "spec.x[0].c"', 'duplicate field "spec.b"'],
            id="nested, each once, in document order",
        ),
        pytest.param(
            '{"a":{"x":1,"x":2},"a":{"x":3}}',
            {"a": {"x": 3}},
            ['duplicate field "a.x"', 'duplicate field "a"'],
            id="in a value whose key is itself duplicated",
        ),
    ],
)
def test_duplicate_keys_are_reported_and_the_last_value_wins(text: str, value: Any, duplicates: list[str]) -> None:
    document = decode(text.encode(), JSON)
    assert document.value == value
    assert list(document.strict_errors) == duplicates
    assert type(document.value) is dict


@pytest.mark.parametrize("media_type", ["application/cbor", "text/yaml", "application/vnd.kubernetes.protobuf", ""])
def test_other_media_types_are_unsupported(media_type: str) -> None:
    with pytest.raises(UnsupportedMediaType, match="accepted media types include: application/json, application/yaml"):
        decode(b"{}", media_type)


def test_json_sent_as_yaml_may_have_trailing_commas() -> None:
    assert decode(b'{"a": [1, 2,], "b": {"c": 1,},}', YAML).value == {"a": [1, 2], "b": {"c": 1}}


def test_duplicate_keys_in_yaml_are_reported_with_their_lines() -> None:
    text = "\napiVersion: v1\nmetadata:\n  labels:\n    a: b\n  labels:\n    a: c\nspec:\n  foo: 1\n  foo: 2\n"
    document = decode(text.encode(), YAML)
    assert document.value["spec"] == {"foo": 2}
    assert document.strict_errors == (
        (
            "error converting YAML to JSON: yaml: unmarshal errors:\n"
            '  line 7: key "labels" already set in map\n'
            '  line 10: key "foo" already set in map'
        ),
    )


def test_duplicate_keys_in_json_sent_as_yaml_have_the_yaml_error() -> None:
    assert decode(b'{"a": 1, "a": 2}', YAML).strict_errors == (
        'error converting YAML to JSON: yaml: unmarshal errors:\n  line 1: key "a" already set in map',
    )


@pytest.mark.parametrize("media_type", [JSON, YAML])
@pytest.mark.parametrize(
    "item", [pytest.param(each, id=each.decode()) for each in (b"{}", b"[]", b"[[[[[]]]]]", b"0", b'","', b'{"a":1}')]
)
def test_a_body_of_too_many_values_is_rejected_before_they_are_created(media_type: str, item: bytes) -> None:
    body = b"[" + (item + b",") * MAX_VALUES + item + b"]"
    with pytest.raises(RequestEntityTooLarge, match="may contain at most 100000 values"):
        decode(body, media_type)
    assert len(decode(b"[" + (item + b",") * 9_999 + item + b"]", media_type).value) == 10_000


def test_the_duplicates_under_a_long_key_are_told_within_bounds() -> None:
    """ATTACK-19: each quotes the key, and a body has room for tens of thousands."""

    def decoded(key: int, duplicates: int) -> tuple[str, ...]:
        fields = ",".join(f'"f{number}":1,"f{number}":2' for number in range(duplicates))
        document = decode(f'{{"{"k" * key}":{{{fields}}}}}'.encode(), JSON)
        assert document.value == {"k" * key: {f"f{number}": 2 for number in range(duplicates)}}
        return document.strict_errors

    assert len(decoded(10, 99)) == 99
    assert len(decoded(10, 200)) == 100
    assert len(decoded(50_000, 70)) == 6
    with pytest.raises(RequestEntityTooLarge, match="the paths of an object's fields may have 8388608 characters"):
        decoded(50_000, 100)


@pytest.mark.parametrize("text", [",[{" * 100_000, '\\"' * 200_000, "\\" * 200_000, ',"' * 200_000])
def test_text_in_strings_does_not_count_as_values(text: str) -> None:
    assert decode(json.dumps({"a": text}).encode(), JSON).value == {"a": text}


@pytest.mark.parametrize("end", ["", "\\", '"', '\\"'])
def test_values_are_counted_in_linear_time(end: str) -> None:
    """ATTACK-19: also in text that is not JSON."""
    body = ("[" * 100_001 + '"' + '\\"' * 700_000 + end).encode()

    def rejected() -> None:
        with pytest.raises((BadRequest, RequestEntityTooLarge)):
            decode(body, JSON)

    assert least_ratio(rejected, lambda: sum(body), below=20) < 20


@pytest.mark.parametrize(
    ("body", "media_type", "large"),
    [
        pytest.param(b'{"a":"%s"}' % (b"x" * 20_000), "application/json", False, id="JSON"),
        pytest.param(b'{"a":"%s"}' % (b"x" * 20_000), "application/yaml", False, id="JSON as YAML"),
        pytest.param(b"a: %s" % (b"x" * 20_000), "application/yaml", True, id="YAML"),
        pytest.param(b"a: x", "application/yaml", False, id="a short YAML document"),
        pytest.param(b"a: &a [x]\nb: *a", "application/yaml", True, id="an alias"),
        pytest.param(b'{"a": &a [x], "b": *a}', "application/yaml", True, id="an alias in text that looks like JSON"),
    ],
)
def test_the_decoding_cost_is_estimated_from_the_body(body: bytes, media_type: str, large: bool) -> None:
    assert (decoding_cost(body, media_type) > LARGE_BYTES) is large
