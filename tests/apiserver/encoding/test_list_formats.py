"""Lists are the same whether they are converted as a whole or item by item."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.encoding.list_formats import ListFormat, indented, indented_list, to_yaml, yaml_list
from apiserver.serializer.yaml import decode_yaml

_HEAD = b'{"kind":"ThingList","apiVersion":"g/v1","metadata":{"resourceVersion":"7"},"items":['
_TABLE = (
    b'{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{},'
    b'"columnDefinitions":[{"name":"A"},{"name":"B"}],"rows":['
)
_LONG = "word " * 40
_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**31), 2**31)
    | st.text(max_size=20)
    | st.sampled_from([_LONG, "a\nb", ""]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(min_size=1, max_size=5), inner, max_size=3),
    max_leaves=8,
)


def converted(form: ListFormat, items: list[bytes], run: int) -> bytes:
    runs = [form.items(items[start : start + run]) for start in range(0, len(items), run)]
    return form.head + form.separator.join(runs) + form.tail


@pytest.mark.parametrize("head", [pytest.param(_HEAD, id="objects"), pytest.param(_TABLE, id="a table")])
@pytest.mark.parametrize(
    ("form", "whole"),
    [pytest.param(yaml_list, to_yaml, id="YAML"), pytest.param(indented_list, indented, id="indented JSON")],
)
@given(values=st.lists(st.dictionaries(st.text(min_size=1, max_size=5), _JSON, min_size=1), min_size=1, max_size=5))
def test_a_list_is_the_same_in_runs_of_any_length(
    head: bytes, form: Callable[[bytes], ListFormat], whole: Callable[[bytes], bytes], values: list[dict[str, Any]]
) -> None:
    items = [json.dumps(value).encode("utf-8", "replace") for value in values]
    expected = whole(head + b",".join(items) + b"]}")
    for run in (1, 2, 5):
        assert converted(form(head), items, run) == expected


def _depth(value: Any) -> int:
    depth = 0
    while isinstance(value, dict):
        value, depth = value["a"], depth + 1
    return depth if value == [1] else -1


@pytest.mark.parametrize("levels", [100, 250, 300, 1000, 9000])
def test_values_of_any_depth_are_yaml(levels: int) -> None:
    """Kubernetes has objects of ten thousand levels, and its YAML has them, too."""
    deep = b'{"a":' * levels + b"[1]" + b"}" * levels
    item = b'{"kind":"Thing","spec":' + deep + b',"z":"a: b"}'
    whole, listed = to_yaml(_HEAD + item + b"]}"), converted(yaml_list(_HEAD), [b'{"b":1}', item], 1)
    for found, position in ((whole, 0), (listed, 1)):
        thing = decode_yaml(found.decode(), max_nesting=10_000)[0]["items"][position]
        assert (thing["kind"], _depth(thing["spec"]), thing["z"]) == ("Thing", levels, "a: b")
    alone = decode_yaml(to_yaml(item).decode(), max_nesting=10_000)[0]
    assert (alone["kind"], _depth(alone["spec"])) == ("Thing", levels)


@pytest.mark.parametrize("levels", [250, 300, 9000])
def test_values_of_any_depth_are_indented_as_far_as_they_can_be(levels: int) -> None:
    item = b'{"spec":' + b"[" * levels + b"1" + b"]" * levels + b"}"
    assert b"".join(indented(item).split()) == item
    listed = converted(indented_list(_HEAD), [b"{}", item], 1)
    assert b"".join(listed.split()) == _HEAD + b"{}," + item + b"]}"
