"""Lists are the same whether they are converted as a whole or item by item."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.encoding.list_formats import ListFormat, indented, indented_list, to_yaml, yaml_list

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
