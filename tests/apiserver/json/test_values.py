from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.json.values import contains_more_than, deep_copy, equal, nests_deeper_than, path_text_exceeds

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
)


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        pytest.param(1, 1.0, True, id="numbers by value"),
        pytest.param(1, True, False, id="true is not 1"),
        pytest.param(False, 0, False, id="false is not 0"),
        pytest.param(True, True, True, id="booleans"),
        pytest.param([1, {"a": True}], [1.0, {"a": True}], True, id="nested and equal"),
        pytest.param([1, {"a": True}], [1, {"a": 1}], False, id="nested and different"),
        pytest.param({"a": 1, "b": 2}, {"b": 2, "a": 1}, True, id="keys in another order"),
        pytest.param({"a": None}, {}, False, id="null is not absent"),
        pytest.param([], {}, False, id="a list is not an object"),
        pytest.param("1", 1, False, id="text is not a number"),
        pytest.param([1], [1, 2], False, id="lists of different lengths"),
    ],
)
def test_values_are_compared_as_json(left: Any, right: Any, same: bool) -> None:
    assert equal(left, right) is same
    assert equal(right, left) is same


@given(json_values)
def test_a_copy_is_equal_and_shares_no_container(value: Any) -> None:
    copied = deep_copy(value)
    assert json.dumps(copied) == json.dumps(value)
    pairs = [(value, copied)]
    while pairs:
        one, other = pairs.pop()
        if isinstance(one, (dict, list)):
            assert one is not other
            pairs += zip(*(each.values() if isinstance(each, dict) else each for each in (one, other)), strict=True)


@given(json_values)
def test_a_value_equals_its_copy(value: Any) -> None:
    assert equal(value, copy.deepcopy(value))


def test_depth_counts_containers() -> None:
    assert not nests_deeper_than(1, 0)
    assert nests_deeper_than([], 0)
    assert not nests_deeper_than([1], 1)
    assert nests_deeper_than({"a": [1]}, 1)
    assert not nests_deeper_than({"a": [1]}, 2)


def test_any_depth_can_be_measured() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    assert nests_deeper_than(deep, 50_000)
    assert not nests_deeper_than(deep, 100_001)
    while deep:
        deep = deep.pop()


@pytest.mark.parametrize(
    ("value", "count"),
    [
        pytest.param(1, 0, id="a scalar"),
        pytest.param([], 0, id="an empty list"),
        pytest.param([1, 2], 2, id="a list"),
        pytest.param({"a": {"b": [1, {}]}}, 4, id="at any depth"),
    ],
)
def test_values_are_counted_at_any_depth(value: Any, count: int) -> None:
    assert not contains_more_than(value, count)
    assert count == 0 or contains_more_than(value, count - 1)


@pytest.mark.parametrize(
    ("value", "characters"),
    [
        pytest.param(1, 0, id="a scalar"),
        pytest.param({}, 0, id="an empty object"),
        pytest.param({"ab": 1, "c": 2}, 3, id="ab, c"),
        pytest.param({"ab": {"c": 1}}, 6, id="ab, ab.c"),
        pytest.param({"ab": {"c": {"d": 1, "e": 2}}}, 18, id="ab, ab.c, ab.c.d, ab.c.e"),
        pytest.param({"ab": [1, {"c": 1}]}, 13, id="indexes do not count"),
    ],
)
def test_the_paths_of_all_values_count(value: Any, characters: int) -> None:
    assert not path_text_exceeds(value, characters)
    assert characters == 0 or path_text_exceeds(value, characters - 1)
