from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.json.deep import dumps
from registry.cluster.list_decoder import ListDecoder
from registry.cluster.watch_decoder import MalformedStream

ITEMS = [{"metadata": {"name": 'ä\n"]}'}}, {"spec": {"items": [{"a": [1, 2.5, None]}]}}, {"x": "y" * 3000}]
ALIKE = [
    {"metadata": {"name": "a"}, "templates": [{"metadata": {"name": "x"}}, {"metadata": {"name": "y"}}]},
    {"metadata": {"name": "b"}, "text": '},{"metadata":{'},
    {"metadata": {"name": "ä"}, "empty": {}},
    {"kind": "other", "metadata": {"name": "c"}},
    {"spec": {}},
    {"metadata": {"name": "d"}},
]
METADATA = {"resourceVersion": "7", "continue": "c"}


def read(document: bytes, sizes: Sequence[int] = ()) -> tuple[list[Any], Any]:
    parser, found, at = ListDecoder(), list[Any](), 0
    for size in sizes:
        found += parser.feed(document[at : at + size])
        at += size
    found += parser.feed(document[at:])
    return found, parser.metadata()


def document(**fields: Any) -> bytes:
    return json.dumps(fields, ensure_ascii=False).encode()


@given(st.lists(st.integers(1, 200)), st.permutations(["apiVersion", "metadata", "items", "kind"]))
def test_items_arrive_whole_wherever_the_stream_is_cut_and_in_whatever_order_fields_come(
    sizes: list[int], order: list[str]
) -> None:
    fields = {"apiVersion": "v1", "kind": "List", "metadata": METADATA, "items": ITEMS}
    assert read(document(**{name: fields[name] for name in order}), sizes) == (ITEMS, METADATA)


@given(st.lists(st.integers(1, 200)), st.permutations(ALIKE), st.sampled_from([(",", ":"), (", ", ": ")]))
def test_items_that_begin_alike_are_not_taken_for_one_another(
    sizes: list[int], items: list[Any], separators: tuple[str, str]
) -> None:
    body = json.dumps({"items": items, "metadata": METADATA}, ensure_ascii=False, separators=separators).encode()
    assert read(body, sizes) == (items, METADATA)


def test_a_number_beyond_64_bits_is_one_with_a_fraction() -> None:
    """As a kube-apiserver holds it, which writes 1e20 with all its digits (encoding/json)."""
    body = b'{"metadata":{"resourceVersion":"7"},"items":[{"a":100000000000000000000},{"a":1}]}'
    items, _ = read(body)
    assert items == [{"a": 1e20}, {"a": 1}]
    assert [type(each["a"]) for each in items] == [float, int]


@pytest.mark.parametrize("levels", [200, 300, 1000, 1100, 9000])
@pytest.mark.parametrize("size", [100, 4000, 1_000_000])
def test_an_item_that_nests_deeply_is_one_of_them(levels: int, size: int) -> None:
    deep = f'{{"metadata":{{"name":"b"}},"deep":{"[" * levels}{"]" * levels}}}'
    others = [f'{{"metadata":{{"name":"{name}"}}}}' for name in "ac"]
    body = f'{{"items":[{others[0]},{deep},{others[1]}],"metadata":{{"resourceVersion":"7"}}}}'
    items, metadata = read(body.encode(), [size] * (len(body) // size))
    assert [each["metadata"]["name"] for each in items] == ["a", "b", "c"]
    assert dumps(items[1]).lstrip() == deep.encode()
    assert metadata == {"resourceVersion": "7"}


@pytest.mark.parametrize(
    ("body", "items"),
    [
        pytest.param(document(metadata=METADATA, items=[]), [], id="no items"),
        pytest.param(document(metadata=METADATA, items=None), [], id="null, as Go writes an empty list"),
        pytest.param(document(metadata=METADATA), [], id="items are absent"),
        pytest.param(json.dumps({"metadata": METADATA, "items": ITEMS}, indent=2).encode(), ITEMS, id="indented"),
    ],
)
def test_a_list_may_be_written_in_many_ways(body: bytes, items: list[Any]) -> None:
    assert read(body) == (items, METADATA)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(document(metadata=METADATA, items=ITEMS)[:-1], id="cut at the end"),
        pytest.param(b'{"items":[{"a":1}],"metadata":{}'[:-3], id="cut in the metadata"),
        pytest.param(document(items=ITEMS), id="no metadata"),
        pytest.param(document(items=ITEMS, metadata={}), id="no version"),
        pytest.param(document(metadata=METADATA, items=[1]), id="an item that is no object"),
        pytest.param(b'["a"]', id="an array"),
        pytest.param(b'{"items":[{"a":1} {"b":2}', id="no end"),
        pytest.param(b'{"metadata":\xff}', id="not UTF-8"),
        pytest.param(b'{"metadata" {}}', id="no colon"),
        pytest.param(b'{"metadata":{"resourceVersion":"7"},"items":[{"a":NaN}]}', id="what only Python takes for JSON"),
    ],
)
def test_what_is_no_whole_list_is_refused(body: bytes) -> None:
    with pytest.raises(MalformedStream):
        read(body)


def test_an_item_without_end_does_not_fill_the_memory() -> None:
    parser = ListDecoder(limit=1000)
    assert list(parser.feed(b'{"items":[{"a":"' + b"x" * 900)) == []
    with pytest.raises(MalformedStream, match="more than 1000"):
        list(parser.feed(b"x" * 200))


def test_what_was_given_is_not_kept() -> None:
    parser = ListDecoder(limit=100)
    list(parser.feed(b'{"metadata":{"resourceVersion":"7"},"items":['))
    for _ in range(100):
        assert list(parser.feed(b'{"a":"' + b"x" * 50 + b'"},')) == [{"a": "x" * 50}]
    assert list(parser.feed(b"]}")) == []
    assert parser.metadata() == {"resourceVersion": "7"}
