from __future__ import annotations

import contextlib
import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apiserver.meta.errors import BadRequest, RequestEntityTooLarge, StatusError
from apiserver.patch.json_and_merge import PatchFailed, json_patch, merge_patch

DOCUMENT = {"metadata": {"name": "x", "labels": {"a/b": "1", "c~d": "2"}}, "spec": {"on": False, "list": [1, 2, 3]}}


def patched(*operations: Any) -> Any:
    before = copy.deepcopy(DOCUMENT)
    result = json_patch(DOCUMENT, list(operations))
    assert before == DOCUMENT
    return result


def test_replace_may_add_a_missing_member_on_request() -> None:
    replacing = [{"op": "replace", "path": "/a~1b", "value": 1}]
    assert json_patch({"x": 1}, replacing, replace_adds=True) == {"x": 1, "a/b": 1}
    with pytest.raises(PatchFailed) as caught:
        json_patch({"x": [1]}, [{"op": "replace", "path": "/x/1", "value": 1}], replace_adds=True)
    assert (caught.value.code, caught.value.operation) == (422, {"op": "replace", "path": "/x/1", "value": 1})
    with pytest.raises(PatchFailed):
        json_patch({"x": 1}, replacing)


@pytest.mark.parametrize(
    ("operation", "path", "value"),
    [
        pytest.param({"op": "add", "path": "/spec/host", "value": "h"}, ("spec", "host"), "h", id="add a field"),
        pytest.param({"op": "add", "path": "/spec/on", "value": None}, ("spec", "on"), None, id="add over a field"),
        pytest.param({"op": "add", "path": "/spec/list/1", "value": 9}, ("spec", "list"), [1, 9, 2, 3], id="insert"),
        pytest.param(
            {"op": "add", "path": "/spec/list/3", "value": 9}, ("spec", "list"), [1, 2, 3, 9], id="insert at the end"
        ),
        pytest.param({"op": "add", "path": "/spec/list/-", "value": 9}, ("spec", "list"), [1, 2, 3, 9], id="append"),
        pytest.param({"op": "remove", "path": "/spec/list/0"}, ("spec", "list"), [2, 3], id="remove an item"),
        pytest.param(
            {"op": "remove", "path": "/metadata/labels/a~1b"},
            ("metadata", "labels"),
            {"c~d": "2"},
            id="an escaped slash",
        ),
        pytest.param(
            {"op": "replace", "path": "/metadata/labels/c~0d", "value": "3"},
            ("metadata", "labels", "c~d"),
            "3",
            id="an escaped tilde",
        ),
        pytest.param(
            {"op": "move", "from": "/spec/list/0", "path": "/spec/list/2"}, ("spec", "list"), [2, 3, 1], id="move"
        ),
        pytest.param(
            {"op": "copy", "from": "/spec/list", "path": "/spec/again"}, ("spec", "again"), [1, 2, 3], id="copy"
        ),
        pytest.param(
            {"op": "test", "path": "/spec/list/0", "value": 1.0}, ("spec", "on"), False, id="a test that holds"
        ),
    ],
)
def test_an_operation_follows_rfc_6902(operation: Any, path: tuple[str, ...], value: Any) -> None:
    found: Any = patched(operation)
    for step in path:
        found = found[step]
    assert found == value


@pytest.mark.parametrize(
    "operation",
    [
        pytest.param({"op": "test", "path": "/spec/on", "value": 0}, id="false is not 0"),
        pytest.param({"op": "test", "path": "/spec/list", "value": [1, 2]}, id="a test that does not hold"),
        pytest.param({"op": "test", "path": "/spec/nope", "value": None}, id="a test of a missing field"),
        pytest.param({"op": "test", "path": "/spec/list/-", "value": None}, id="a test after the end"),
        pytest.param({"op": "remove", "path": "/nope"}, id="remove a missing field"),
        pytest.param({"op": "remove", "path": ""}, id="remove everything"),
        pytest.param({"op": "remove", "path": "/spec/list/-"}, id="remove after the end"),
        pytest.param({"op": "replace", "path": "/spec/nope", "value": 1}, id="replace a missing field"),
        pytest.param({"op": "replace", "path": "", "value": 1}, id="replace the object by a number"),
        pytest.param({"op": "add", "path": "/nope/x", "value": 1}, id="add to a missing object"),
        pytest.param({"op": "add", "path": "/metadata/name/0", "value": "y"}, id="add to text"),
        pytest.param({"op": "add", "path": "/spec/list/9", "value": 1}, id="insert far after the end"),
        pytest.param({"op": "add", "path": "/spec/list/-1", "value": 1}, id="a negative index"),
        pytest.param({"op": "add", "path": "/spec/list/01", "value": 1}, id="a leading zero"),
        pytest.param({"op": "add", "path": "/spec/list/x", "value": 1}, id="not an index"),
        pytest.param({"op": "add", "path": "spec", "value": 1}, id="not a JSON pointer"),
        pytest.param({"op": "add", "path": "/spec/~2", "value": 1}, id="an invalid escape"),
        pytest.param({"op": "move", "from": "/spec", "path": "/spec/list"}, id="move into itself"),
        pytest.param({"op": "copy", "from": "/spec/nope", "path": "/x"}, id="copy a missing field"),
        pytest.param({"op": "copy", "from": "/metadata/name/0", "path": "/x"}, id="copy a letter"),
        pytest.param({"op": "add", "path": "/x"}, id="no value"),
        pytest.param({"op": "add", "value": 1}, id="no path"),
        pytest.param({"op": "move", "path": "/x"}, id="no from"),
        pytest.param({"op": "merge", "path": "/x", "value": 1}, id="an unknown operation"),
        pytest.param({}, id="an empty operation"),
    ],
)
def test_an_operation_that_cannot_be_applied_is_unprocessable(operation: Any) -> None:
    with pytest.raises(StatusError) as raised:
        patched(operation)
    assert (raised.value.code, raised.value.reason) == (422, "Invalid")
    assert raised.value.message == "the server rejected our request due to an error in our request"
    assert raised.value.details == {}


@pytest.mark.parametrize(
    "patch",
    [
        pytest.param({"op": "add"}, id="an object"),
        pytest.param("x", id="text"),
        pytest.param(None, id="null"),
        pytest.param([1], id="a list of numbers"),
        pytest.param([{"op": 1, "path": "/x"}], id="an op that is not a string"),
        pytest.param([{"op": "remove", "path": ["x"]}], id="a path that is not a string"),
        pytest.param([{"op": "copy", "path": "/x", "from": None}], id="a from that is not a string"),
    ],
)
def test_an_invalid_json_patch_is_a_bad_request(patch: Any) -> None:
    with pytest.raises(BadRequest, match="error decoding patch: "):
        json_patch(DOCUMENT, patch)


def test_too_many_operations_are_too_large() -> None:
    test = {"op": "test", "path": "/spec/on", "value": False}
    assert json_patch(DOCUMENT, [test] * 10_000) == DOCUMENT
    with pytest.raises(RequestEntityTooLarge) as raised:
        json_patch(DOCUMENT, [test] * 10_001)
    assert raised.value.message == (
        "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001"
    )


@pytest.mark.parametrize(("values", "copies", "fits"), [(9_000, 2, True), (9_000, 3, False), (20_001, 1, False)])
def test_copy_operations_are_limited_by_the_values_they_create(values: int, copies: int, fits: bool) -> None:
    operations = [{"op": "copy", "from": "/a", "path": f"/b{number}"} for number in range(copies)]
    with contextlib.nullcontext() if fits else pytest.raises(PatchFailed):
        assert len(json_patch({"a": ["x"] * values}, operations)) == 1 + copies


def test_copies_of_copies_are_bounded() -> None:
    double = [{"op": "copy", "from": "/a", "path": "/a/-"}, {"op": "copy", "from": "/a", "path": "/a/-"}]
    with pytest.raises(StatusError) as raised:
        json_patch({"a": ["x"]}, double * 40)
    assert raised.value.code == 422


@pytest.mark.parametrize("value", ["x" * 100_000, {"x" * 100_000: 1}])
def test_copies_of_long_text_are_bounded(value: Any) -> None:
    """ATTACK-19: of keys, too."""
    long = [{"op": "copy", "from": "/a/0", "path": f"/b/k{number}"} for number in range(40)]
    document = {"a": [value], "b": {}}
    assert len(json_patch(document, long[:30])["b"]) == 30
    with pytest.raises(StatusError) as raised:
        json_patch(document, long)
    assert raised.value.code == 422


def test_operations_cannot_nest_an_object_too_deeply() -> None:
    deeper = [{"op": "copy", "from": "/a", "path": "/b"}, {"op": "add", "path": "/a", "value": {}}]
    step = [*deeper, {"op": "move", "from": "/b", "path": "/a/x"}]
    with pytest.raises(StatusError) as raised:
        json_patch({"a": {}}, step * 200)
    assert raised.value.code == 422


def test_a_patch_is_not_modified_and_can_be_applied_again() -> None:
    operations = [
        {"op": "add", "path": "/spec/map", "value": {}},
        {"op": "add", "path": "/spec/map/a", "value": 1},
    ]
    before = copy.deepcopy(operations)
    assert json_patch(DOCUMENT, operations) == json_patch(DOCUMENT, operations)
    assert operations == before


@pytest.mark.parametrize(
    ("obj", "patch", "merged"),
    [
        pytest.param({"a": 1}, {"b": 2}, {"a": 1, "b": 2}, id="a new field"),
        pytest.param({"a": 1}, {"a": None}, {}, id="a null removes"),
        pytest.param({"a": {"b": 1, "c": 2}}, {"a": {"b": None}}, {"a": {"c": 2}}, id="nested fields"),
        pytest.param({"a": [1]}, {"a": [2, None]}, {"a": [2, None]}, id="lists are replaced"),
        pytest.param({"a": 1}, {"a": {"b": None, "c": {"d": None}}}, {"a": {"c": {}}}, id="nulls are never stored"),
        pytest.param({"a": 1}, "x", "x", id="a scalar replaces"),
        pytest.param("x", {"a": 1}, {"a": 1}, id="an object replaces a scalar"),
    ],
)
def test_a_merge_patch_follows_rfc_7396(obj: Any, patch: Any, merged: Any) -> None:
    before = copy.deepcopy((obj, patch))
    assert merge_patch(obj, patch) == merged
    assert (obj, patch) == before


def test_a_deeply_nested_merge_patch_is_a_bad_request() -> None:
    patch: Any = {}
    for _ in range(900):
        patch = {"a": patch}
    with pytest.raises(BadRequest, match="nested too deeply"):
        merge_patch({}, patch)


scalars = st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(["", "a", "~", "0"])
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
)
pointers = st.lists(st.sampled_from(["a", "b", "0", "-", "~0", "~", "", "01"]), max_size=3).map(
    lambda parts: "".join(f"/{part}" for part in parts)
)
operations = st.fixed_dictionaries(
    {},
    optional={
        "op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test", "x"]) | scalars,
        "path": pointers | scalars,
        "from": pointers | scalars,
        "value": values,
    },
)


@settings(max_examples=200)
@given(obj=st.dictionaries(st.sampled_from("abc"), values, max_size=3), patch=st.lists(operations, max_size=4) | values)
def test_a_json_patch_raises_nothing_but_status_errors(obj: Any, patch: Any) -> None:
    before = copy.deepcopy((obj, patch))
    with contextlib.suppress(StatusError):
        assert isinstance(json_patch(obj, patch), dict)
    assert (obj, patch) == before


@given(obj=values, patch=values)
def test_merging_a_patch_twice_is_merging_it_once(obj: Any, patch: Any) -> None:
    once = merge_patch(obj, patch)
    assert merge_patch(once, patch) == once
