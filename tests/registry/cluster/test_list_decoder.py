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
    decoder, found, at = ListDecoder(), list[Any](), 0
    for size in sizes:
        found += decoder.feed(document[at : at + size])
        at += size
    found += decoder.feed(document[at:])
    return found, decoder.metadata()


def document(**fields: Any) -> bytes:
    return json.dumps(fields, ensure_ascii=False).encode()


@given(st.lists(st.integers(1, 200)), st.permutations(["apiVersion", "metadata", "items", "kind"]))
def test_items_are_complete_for_any_chunks_and_any_order_of_fields(sizes: list[int], order: list[str]) -> None:
    fields = {"apiVersion": "v1", "kind": "List", "metadata": METADATA, "items": ITEMS}
    assert read(document(**{name: fields[name] for name in order}), sizes) == (ITEMS, METADATA)


@given(st.lists(st.integers(1, 200)), st.permutations(ALIKE), st.sampled_from([(",", ":"), (", ", ": ")]))
def test_items_with_the_same_beginning_are_separated(
    sizes: list[int], items: list[Any], separators: tuple[str, str]
) -> None:
    body = json.dumps({"items": items, "metadata": METADATA}, ensure_ascii=False, separators=separators).encode()
    assert read(body, sizes) == (items, METADATA)


def test_an_integer_beyond_64_bits_becomes_a_float() -> None:
    """As in kube-apiserver, which writes 1e20 with all its digits (encoding/json)."""
    body = b'{"metadata":{"resourceVersion":"7"},"items":[{"a":100000000000000000000},{"a":1}]}'
    items, _ = read(body)
    assert items == [{"a": 1e20}, {"a": 1}]
    assert [type(each["a"]) for each in items] == [float, int]


@pytest.mark.parametrize("levels", [200, 300, 1000, 1100, 9000])
@pytest.mark.parametrize("size", [100, 4000, 1_000_000])
def test_a_deeply_nested_item_is_decoded(levels: int, size: int) -> None:
    deep = f'{{"metadata":{{"name":"b"}},"deep":{"[" * levels}{"]" * levels}}}'
    others = [f'{{"metadata":{{"name":"{name}"}}}}' for name in "ac"]
    body = f'{{"items":[{others[0]},{deep},{others[1]}],"metadata":{{"resourceVersion":"7"}}}}'
    items, metadata = read(body.encode(), [size] * (len(body) // size))
    assert [each["metadata"]["name"] for each in items] == ["a", "b", "c"]
    assert dumps(items[1]) == deep.encode()
    assert metadata == {"resourceVersion": "7"}


@pytest.mark.parametrize(
    ("body", "items"),
    [
        pytest.param(document(metadata=METADATA, items=[]), [], id="no items"),
        pytest.param(document(metadata=METADATA, items=None), [], id="null, Go's encoding of an empty list"),
        pytest.param(document(metadata=METADATA), [], id="items are absent"),
        pytest.param(json.dumps({"metadata": METADATA, "items": ITEMS}, indent=2).encode(), ITEMS, id="indented"),
    ],
)
def test_equivalent_encodings_of_a_list_are_decoded(body: bytes, items: list[Any]) -> None:
    assert read(body) == (items, METADATA)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(document(metadata=METADATA, items=ITEMS)[:-1], id="truncated at the end"),
        pytest.param(b'{"items":[{"a":1}],"metadata":{}'[:-3], id="truncated in the metadata"),
        pytest.param(document(items=ITEMS), id="no metadata"),
        pytest.param(document(items=ITEMS, metadata={}), id="no version"),
        pytest.param(document(metadata=METADATA, items=[1]), id="an item that is not an object"),
        pytest.param(b'["a"]', id="an array"),
        pytest.param(b'{"items":[{"a":1} {"b":2}', id="no end"),
        pytest.param(b'{"metadata":\xff}', id="not UTF-8"),
        pytest.param(b'{"metadata" {}}', id="no colon"),
        pytest.param(b'{"metadata":{"resourceVersion":"7"},"items":[{"a":NaN}]}', id="JSON for Python only"),
    ],
)
def test_an_incomplete_or_invalid_list_is_rejected(body: bytes) -> None:
    with pytest.raises(MalformedStream):
        read(body)


def test_an_item_beyond_the_limit_is_rejected() -> None:
    decoder = ListDecoder(limit=1000)
    assert list(decoder.feed(b'{"items":[{"a":"' + b"x" * 900)) == []
    with pytest.raises(MalformedStream, match="more than 1000"):
        list(decoder.feed(b"x" * 200))


def test_yielded_items_do_not_count_towards_the_limit() -> None:
    decoder = ListDecoder(limit=100)
    list(decoder.feed(b'{"metadata":{"resourceVersion":"7"},"items":['))
    for _ in range(100):
        assert list(decoder.feed(b'{"a":"' + b"x" * 50 + b'"},')) == [{"a": "x" * 50}]
    assert list(decoder.feed(b"]}")) == []
    assert decoder.metadata() == {"resourceVersion": "7"}
