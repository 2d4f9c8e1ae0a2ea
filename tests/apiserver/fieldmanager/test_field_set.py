from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.fieldmanager.field_set import EMPTY, FieldSet
from apiserver.meta import field_path as fieldpath

elements = st.one_of(
    st.sampled_from("abc").map(fieldpath.field_element),
    st.sampled_from(["x", 1, 2.5, True, None]).map(fieldpath.value_element),
    st.sampled_from([1, 2]).map(lambda port: fieldpath.key_element({"port": port})),
    st.integers(0, 2).map(lambda index: f"i:{index}"),
)
paths = st.lists(elements, min_size=1, max_size=3).map(tuple)
field_sets = st.lists(paths, max_size=8).map(FieldSet.of)


@given(field_sets)
def test_a_set_survives_a_round_trip_through_fields_v1(fields: FieldSet) -> None:
    assert FieldSet.from_fields_v1(json.loads(json.dumps(fields.to_fields_v1()))) == fields


@given(st.lists(paths, max_size=8))
def test_a_set_contains_exactly_its_paths(given_paths: list[tuple[str, ...]]) -> None:
    fields = FieldSet.of(given_paths)
    assert set(fields) == set(given_paths)
    assert all(path in fields for path in given_paths)
    assert ("f:other",) not in fields


@given(field_sets, field_sets)
def test_set_operations_work_on_paths(left: FieldSet, right: FieldSet) -> None:
    a, b = set(left), set(right)
    assert set(left | right) == a | b
    assert set(left & right) == a & b
    assert set(left - right) == a - b
    assert set(left.recursive_difference(right)) == {
        path for path in a if not any(path[: len(each)] == each for each in b)
    }


@given(field_sets, field_sets)
def test_equal_sets_have_the_same_fields_v1(left: FieldSet, right: FieldSet) -> None:
    assert json.dumps((left | right).to_fields_v1()) == json.dumps((right | left).to_fields_v1())
    assert bool(left - left) is False
    assert (left - right) | (left & right) == left


@pytest.mark.parametrize(
    ("given_paths", "text"),
    [
        pytest.param([("f:host",)], '{"f:host":{}}', id="a leaf"),
        pytest.param(
            [("f:q",), ("f:q", "f:cpu")], '{"f:q":{".":{},"f:cpu":{}}}', id="a container that is itself a member"
        ),
        pytest.param([("f:q", "f:cpu")], '{"f:q":{"f:cpu":{}}}', id="a container that is not a member"),
        pytest.param([], "{}", id="nothing"),
        pytest.param(
            [("i:3",), ("v:10",), ("v:9",), ('v:"a"',), ('k:{"p":2}',), ('k:{"p":10}',), ("f:b",), ("f:a",)],
            r'{"f:a":{},"f:b":{},"k:{\"p\":2}":{},"k:{\"p\":10}":{},"v:9":{},"v:10":{},"v:\"a\"":{},"i:3":{}}',
            id="fields, keys, values, indexes",
        ),
    ],
)
def test_fields_v1_is_written_in_canonical_order(given_paths: Any, text: str) -> None:
    assert json.dumps(FieldSet.of(given_paths).to_fields_v1(), separators=(",", ":")) == text


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        pytest.param({"f:a": {"x:future": {}}}, [("f:a",)], id="an element of a later kind is dropped"),
        pytest.param({'k:{"b":1,"a":2}': {}}, [('k:{"a":2,"b":1}',)], id="keys are sorted"),
        pytest.param({"v:1.0": {}}, [("v:1",)], id="a whole number is an integer"),
        pytest.param({"f:a": {"f:b": {}, ".": {}}}, [("f:a",), ("f:a", "f:b")], id="the dot may come last"),
        pytest.param({'v:"<&>"': {}}, [('v:"\\u003c\\u0026\\u003e"',)], id="HTML is escaped as Go does"),
    ],
)
def test_fields_v1_is_read_into_canonical_paths(document: Any, expected: Any) -> None:
    assert list(FieldSet.from_fields_v1(document)) == expected


@pytest.mark.parametrize(
    "document",
    [
        pytest.param([], id="a list"),
        pytest.param({"f:a": 1}, id="a number for a node"),
        pytest.param({"host": {}}, id="an element without its kind"),
        pytest.param({"v:{": {}}, id="a value that is not JSON"),
        pytest.param({"k:[1]": {}}, id="keys that are not an object"),
        pytest.param({"i:x": {}}, id="an index that is not a number"),
    ],
)
def test_an_invalid_field_set_is_a_value_error(document: Any) -> None:
    with pytest.raises(ValueError, match=r".+"):
        FieldSet.from_fields_v1(document)


def test_a_deeply_nested_field_set_is_a_value_error() -> None:
    document: dict[str, Any] = {}
    for _ in range(900):
        document = {"f:a": document}
    with pytest.raises(ValueError, match="nested too deeply"):
        FieldSet.from_fields_v1(document)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        pytest.param(fieldpath.make_path("metadata", "labels", "foo/bar"), ".metadata.labels.foo/bar", id="fields"),
        pytest.param(
            ("f:conditions", fieldpath.key_element({"type": "Ready"}), "f:status"),
            '.conditions[type="Ready"].status',
            id="an item by its key",
        ),
        pytest.param(
            ("f:ports", fieldpath.key_element({"protocol": "TCP", "port": 1})),
            '.ports[port=1,protocol="TCP"]',
            id="two keys",
        ),
        pytest.param(("f:set", fieldpath.value_element("v")), '.set[="v"]', id="an item by its value"),
        pytest.param(("f:list", "i:0"), ".list[0]", id="an item by its index"),
    ],
)
def test_paths_are_formatted_like_in_kubernetes(path: tuple[str, ...], text: str) -> None:
    assert fieldpath.format_path(path) == text


def test_an_unknown_element_has_no_paths_below_it() -> None:
    assert FieldSet.of([("f:a", "f:b")]).with_prefix("f:x") == EMPTY
