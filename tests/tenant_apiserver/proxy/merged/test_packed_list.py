"""Lists that are in memory as the JSON of their items."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import pytest

from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Object
from registry.cluster.interface import UnexpectedAnswer
from tenant_apiserver.proxy.merged.list_response import list_response
from tenant_apiserver.proxy.merged.packed_list import PackedList, added_frames, pack, unpack_answer
from tests.apiserver.endpoints.request_contexts import make_context

_MIB = 1024 * 1024
POD = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "x", "namespace": "a", "uid": "1"}}
PODS: Object = {
    "kind": "PodList",
    "apiVersion": "v1",
    "metadata": {"resourceVersion": "7"},
    "items": [{"metadata": {"name": name, "namespace": "a", "uid": name}, "spec": {"n": 2**70}} for name in "xyz"],
}
TABLE: Object = {
    "kind": "Table",
    "apiVersion": "meta.k8s.io/v1",
    "metadata": {"resourceVersion": "7"},
    "columnDefinitions": [{"name": "Name"}],
    "rows": [{"cells": ["x"], "object": POD}, {"cells": ["y"], "object": None}],
}
DEEP: Object = {**PODS, "items": [{"metadata": {"name": "x"}, "a": "DEEP"}, {"metadata": {"name": "y"}}]}


def _unpack(document: object, code: int = 200) -> PackedList:
    return unpack_answer(code, "OK", json.dumps(document, separators=(",", ":")).encode())


async def _sent(packed: PackedList, media_type: str, query: str = "") -> str:
    response = list_response(make_context(target=f"/api/v1/pods{query}"), packed, media_type)
    body: Any = response.body
    if not isinstance(body, bytes):
        body = b"".join([piece async for piece in body._value])
    return str(body.decode())


@pytest.mark.parametrize("copies", [0, 1, 3000], ids=["empty", "short", "long"])
@pytest.mark.parametrize("document", [PODS, TABLE], ids=["list", "table"])
@pytest.mark.parametrize("query", ["", "?pretty=true"])
async def test_a_list_is_sent_as_it_was(document: Object, copies: int, query: str) -> None:
    name = "rows" if "rows" in document else "items"
    document = {**document, name: document[name] * copies}
    sent = await _sent(_unpack(document), "application/json", query)
    assert json.loads(sent, parse_int=float) == json.loads(json.dumps(document), parse_int=float)
    assert ("\n  " in sent) == bool(query)


def test_items_know_who_they_are() -> None:
    assert [(each.key, each.uid) for each in _unpack(PODS).items] == [("a/x", "x"), ("a/y", "y"), ("a/z", "z")]
    assert [(each.key, each.uid) for each in _unpack(TABLE).items] == [("a/x", "1"), ("/", "")]
    assert _unpack({**PODS, "items": None}).items == []


async def test_a_deep_object_hides_no_other() -> None:
    deep = "[" * 5000 + "]" * 5000
    packed = unpack_answer(200, "OK", json.dumps(DEEP).replace('"DEEP"', deep).encode())
    assert [each.key for each in packed.items] == ["/x", "/y"]
    assert deep in await _sent(packed, "application/json")
    assert deep in await _sent(packed, "application/yaml")


@pytest.mark.parametrize(
    ("error", "code", "document"),
    [
        pytest.param(
            StatusError, 403, {"kind": "Status", "code": 403, "reason": "Forbidden", "message": "no"}, id="403"
        ),
        pytest.param(UnexpectedAnswer, 200, [], id="no object"),
        pytest.param(UnexpectedAnswer, 200, "x", id="a text"),
    ],
)
def test_other_answers_are_errors(error: type[StatusError], code: int, document: object) -> None:
    with pytest.raises(error):
        _unpack(document, code)


@pytest.mark.parametrize("items", ["kind", "no kind"])
def test_the_objects_of_a_list_are_added_one_by_one(items: str) -> None:
    """The items of lists have no kind, those of CustomResources and of events do."""
    item: Object = {"metadata": {"name": "x", "namespace": "a"}}
    listed = {"kind": "Pod", "apiVersion": "v1", **item} if items == "kind" else item
    for each, expected in ((listed, item), ({}, {})):
        [frame] = added_frames(pack({"kind": "PodList", "apiVersion": "v1", "items": [each]}))
        assert json.loads(frame) == {"type": "ADDED", "object": {"kind": "Pod", "apiVersion": "v1", **expected}}


def test_the_rows_of_a_table_are_added_one_by_one() -> None:
    frames = [json.loads(each)["object"] for each in added_frames(pack(TABLE))]
    assert [each["rows"] for each in frames] == [[row] for row in TABLE["rows"]]
    assert [each["columnDefinitions"] for each in frames] == [TABLE["columnDefinitions"]] * 2


def test_a_list_takes_hardly_more_memory_than_its_json() -> None:
    """Decoded, this one takes twenty times as much: fields that somebody has applied, each with an empty object."""
    fields: Object = {f"f:{number}": {} for number in range(2000)}
    item = {"metadata": {"name": "x", "managedFields": [{"fieldsV1": fields}]}, "many": [{}] * 2000}
    body = json.dumps({**PODS, "items": [item] * 100}, separators=(",", ":")).encode()
    assert len(body) > 2 * _MIB
    tracemalloc.start()
    try:
        packed = unpack_answer(200, "OK", body)
        now, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert now < 1.2 * len(body)
    assert now <= 1.1 * packed.size
    assert peak < len(body) * 1.2 + 2 * _MIB
