from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.json.deep import RawJson, dumps, find_container_end, from_stored, loads, may_be_deep, to_stored
from apiserver.json.values import MAX_OBJECT_NESTING, nests_deeper_than
from tests.cpu_time import least_ratio

OBJECTS, LISTS = ('{"a":', "}"), ("[", "]")


def nested(levels: int, inside: str = "1", kind: tuple[str, str] = OBJECTS) -> str:
    return kind[0] * levels + inside + kind[1] * levels


@pytest.mark.parametrize("kind", [pytest.param(OBJECTS, id="objects"), pytest.param(LISTS, id="lists")])
@pytest.mark.parametrize("levels", [1, 127, 128, 129, 253, 254, 255, 1000, 1023, 1024, 1025, 10_000, 100_000])
def test_a_value_of_any_depth_is_written_as_it_was_read(levels: int, kind: tuple[str, str]) -> None:
    text = nested(levels, kind=kind)
    for value in (loads(text), loads(text.encode())):
        assert dumps(value) == text.encode()
        assert from_stored(to_stored(value)) == value


@pytest.mark.parametrize("levels", [255, 1024, 1025])
def test_a_deep_value_is_loaded_no_deeper_than_the_object_limit(levels: int) -> None:
    value = loads(f'{{"name":"x","deep":{nested(levels)},"list":[{nested(levels, kind=LISTS)},2]}}')
    assert value["name"] == "x"
    assert value["list"][1] == 2
    assert not nests_deeper_than(value, MAX_OBJECT_NESTING)


def test_a_value_at_the_limit_is_parsed_completely() -> None:
    value = loads(nested(MAX_OBJECT_NESTING))
    for _ in range(MAX_OBJECT_NESTING):
        value = value["a"]
    assert value == 1


@pytest.mark.parametrize(
    "inside",
    [
        pytest.param('"}]"', id="brackets"),
        pytest.param(r'"\"}"', id="a quote"),
        pytest.param(r'"\\"', id="a backslash"),
        pytest.param(r'"\\\"]\\"', id="a quote after a backslash"),
        pytest.param('"ä€"', id="non-ASCII text"),
        pytest.param("1e999", id="a number out of range"),
    ],
)
def test_brackets_in_strings_are_ignored(inside: str) -> None:
    text = f'{{"a":{nested(300, inside)},"b":{{"c":"x"}}}}'
    value = loads(text)
    assert value["b"] == {"c": "x"}
    assert dumps(value) == text.encode()


def test_many_deep_values_are_loaded_in_linear_time() -> None:
    """A search of its own for each value would take minutes."""
    text = nested(MAX_OBJECT_NESTING, f"[{','.join(['[[]]'] * 100_000)},{nested(200)}]")
    assert dumps(loads(text)) == text.encode()


SIZE = 1_300_000


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(nested(SIZE // 2, "", LISTS), id="one value"),
        pytest.param(nested(300, "[]," * (SIZE // 3) + "1", LISTS), id="many lists in a deep one"),
        pytest.param(nested(13, "[[]]," * (SIZE // 5) + nested(300), LISTS), id="many lists before a deep one"),
        pytest.param(f"[{nested(300)}{',[]' * (SIZE // 3)}]", id="many lists after a deep one"),
        pytest.param(f"[{(nested(260, '', LISTS) + ',') * (SIZE // 521)}1]", id="many deep ones"),
        pytest.param(nested(300, '"[",' * (SIZE // 4) + "1", LISTS), id="brackets in strings"),
    ],
)
def test_brackets_take_a_few_times_as_long_as_without_depth(text: str) -> None:
    """ATTACK-13: one match of a regular expression for each bracket takes ten to twenty times as long."""
    flat = f"[{'[],' * (SIZE // 3)}1]"
    assert least_ratio(lambda: loads(text), lambda: orjson.loads(flat), below=8) < 8
    assert dumps(loads(text)) == text.encode()


def test_raw_json_can_be_compared_and_copied() -> None:
    value = loads(nested(300))
    assert deepcopy(value) == value == loads(nested(300))
    assert value != loads(nested(301))


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("{", id="not closed"),
        pytest.param("[" * 2000, id="many lists not closed"),
        pytest.param(nested(300)[:-1], id="a missing bracket"),
        pytest.param(nested(2000) + "}", id="one bracket too many"),
        pytest.param(b"\xff", id="not UTF-8"),
        pytest.param(nested(300, "NaN") + "NaN", id="trailing text"),
    ],
)
def test_text_that_is_not_json_is_a_value_error(text: bytes | str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        loads(text)


def test_dumping_an_unsupported_type_is_a_type_error() -> None:
    with pytest.raises(TypeError):
        dumps({"a": object()})


values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
)


@given(values, st.integers(1, 2000), st.booleans())
def test_values_beside_a_deep_one_are_parsed_as_usual(around: Any, levels: int, first: bool) -> None:
    text = nested(levels, kind=LISTS)
    beside = json.dumps(around, ensure_ascii=False, separators=(",", ":"))
    whole = f"[{text},{beside}]" if first else f"[{beside},{text}]"
    value = loads(whole)
    assert value[1 if first else 0] == around
    assert dumps(value) == whole.encode()


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        pytest.param('{"a":[1]},{}', 0, 9, id="an object"),
        pytest.param('{"a":[1]},{}', 10, 12, id="the next"),
        pytest.param('{"a":"}"', 0, None, id="not closed"),
        pytest.param(nested(5000) + ",", 0, len(nested(5000)), id="a deep one"),
    ],
)
def test_the_end_of_a_container_is_found(text: str, start: int, end: int | None) -> None:
    assert find_container_end(text, start) == end


@pytest.mark.parametrize(
    ("text", "deep"),
    [(nested(128), False), (nested(129), True), ("[]" * 129, True), ('"{"' * 10, False), (b"[" * 129, True)],
)
def test_a_value_may_be_deep_only_with_many_opening_brackets(text: bytes | str, deep: bool) -> None:
    assert may_be_deep(text) is deep


def test_raw_json_is_dumped_verbatim() -> None:
    assert dumps([RawJson('{"a":1}'), "x"]) == b'[{"a":1},"x"]'
