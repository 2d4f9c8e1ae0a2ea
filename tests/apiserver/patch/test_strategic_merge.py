"""Strategic merge patches by themselves. tests/e2e/kubectl/test_built_in_kinds.py sends them to a server."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from apiserver.meta.errors import BadRequest
from apiserver.meta.resource import Schema
from apiserver.patch.strategic_merge import strategic_merge_patch

MERGED = {"type": "array", "x-kubernetes-patch-strategy": "merge"}
PORT: Schema = {
    "type": "object",
    "properties": {"port": {"type": "integer"}, "tags": {**MERGED, "items": {"type": "string"}}},
}
SCHEMA: Schema = {
    "type": "object",
    "properties": {
        "words": {**MERGED, "items": {"type": "string"}},
        "ports": {**MERGED, "x-kubernetes-patch-merge-key": "port", "items": PORT},
        "keyless": {**MERGED, "items": PORT},
        "rules": {"type": "array", "items": PORT},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "whole": {"type": "object", "x-kubernetes-patch-strategy": "replace"},
        "strategy": {"type": "object", "x-kubernetes-patch-strategy": "retainKeys"},
        "groups": {"type": "object", "additionalProperties": {"properties": {"words": {**MERGED}}}},
    },
}


def ports(*numbers: int, **more: Any) -> list[dict[str, Any]]:
    return [{"port": number, **more} for number in numbers]


@pytest.mark.parametrize(
    ("current", "patch", "expected"),
    [
        pytest.param({"a": 1}, {"b": 2}, {"a": 1, "b": 2}, id="a new field"),
        pytest.param({"a": 1, "b": 2}, {"a": None, "c": None}, {"b": 2}, id="a null removes"),
        pytest.param({}, {"a": {"b": None, "c": [{"d": None}]}}, {"a": {"c": [{}]}}, id="nulls are not stored"),
        pytest.param(
            {"labels": {"x": "1", "y": "2"}}, {"labels": {"x": "3"}}, {"labels": {"x": "3", "y": "2"}}, id="maps merge"
        ),
        pytest.param({"a": {"b": 1}}, {"a": "text"}, {"a": "text"}, id="another type replaces"),
        pytest.param({"rules": ports(1, 2)}, {"rules": ports(3)}, {"rules": ports(3)}, id="lists replace"),
        pytest.param({"x": {"y": [1]}}, {"x": {"y": [2]}}, {"x": {"y": [2]}}, id="unknown lists replace"),
        pytest.param(
            {"whole": {"a": 1}},
            {"whole": {"b": 2}},
            {"whole": {"b": 2}},
            id="objects with the replace strategy are replaced",
        ),
        pytest.param(
            {"words": ["a", "b"]}, {"words": ["c", "b"]}, {"words": ["c", "a", "b"]}, id="values are added once"
        ),
        pytest.param(
            {"groups": {"g": {"words": ["a"]}}},
            {"groups": {"g": {"words": ["b"]}}},
            {"groups": {"g": {"words": ["b", "a"]}}},
            id="hints apply in values of a map",
        ),
        pytest.param(
            {"ports": ports(80, name="http")},
            {"ports": ports(80, target=8080)},
            {"ports": ports(80, name="http", target=8080)},
            id="elements merge by key",
        ),
        pytest.param(
            {"ports": ports(80)},
            {"ports": ports(443, tags=["t"])},
            {"ports": [*ports(443, tags=["t"]), *ports(80)]},
            id="a new element comes before the elements that the patch does not name",
        ),
        pytest.param(
            {"ports": ports(80, tags=["a"])},
            {"ports": ports(80, tags=["b"])},
            {"ports": ports(80, tags=["b", "a"])},
            id="lists in elements merge",
        ),
        pytest.param({}, {"ports": ports(80)}, {"ports": ports(80)}, id="a new list"),
        pytest.param(
            {"ports": ports(80, 443)},
            {"ports": [{"port": 80, "$patch": "delete"}]},
            {"ports": ports(443)},
            id="delete an element",
        ),
        pytest.param(
            {"ports": ports(80, 443)},
            {"ports": [{"$patch": "replace"}, *ports(1)]},
            {"ports": ports(1)},
            id="replace a list",
        ),
        pytest.param(
            {"labels": {"x": "1"}},
            {"labels": {"$patch": "replace", "y": "2"}},
            {"labels": {"y": "2"}},
            id="replace an object",
        ),
        pytest.param({"a": {"x": 1}, "b": 1}, {"a": {"$patch": "delete"}}, {"b": 1}, id="delete an object"),
        pytest.param(
            {"words": ["a", "b", "c"]},
            {"$deleteFromPrimitiveList/words": ["b", "z"]},
            {"words": ["a", "c"]},
            id="delete values",
        ),
        pytest.param({}, {"$deleteFromPrimitiveList/words": ["b"]}, {}, id="delete values of a missing list"),
        pytest.param(
            {"words": ["a", "b", "c"]},
            {"$deleteFromPrimitiveList/words": ["b"], "$setElementOrder/words": ["c", "a", "d"], "words": ["d"]},
            {"words": ["c", "a", "d"]},
            id="delete, add and order values",
        ),
        pytest.param(
            {"strategy": {"type": "a", "a": {"x": 1}, "kept": 1}},
            {"strategy": {"$retainKeys": ["type", "b", "kept"], "type": "b", "b": {"y": 1}}},
            {"strategy": {"type": "b", "b": {"y": 1}, "kept": 1}},
            id="retain keys",
        ),
        pytest.param(
            {"ports": ports(1, 2, 3)},
            {"$setElementOrder/ports": ports(3, 1, 2)},
            {"ports": ports(3, 1, 2)},
            id="only an order",
        ),
        pytest.param(
            {"ports": ports(1, 9, 2)},
            {"$setElementOrder/ports": ports(2, 1), "ports": ports(1, name="a")},
            {"ports": [{"port": 9}, {"port": 2}, {"port": 1, "name": "a"}]},
            id="an element that the order does not name stays before its successor",
        ),
        pytest.param(
            {"ports": ports(9, 1, 2)},
            {"$setElementOrder/ports": ports(1, 2), "ports": [{"port": 1, "name": "a"}]},
            {"ports": [{"port": 9}, {"port": 1, "name": "a"}, {"port": 2}]},
            id="an element before all others stays there",
        ),
        pytest.param(
            {}, {"$setElementOrder/ports": ports(2, 1), "ports": ports(1, 2)}, {"ports": ports(2, 1)}, id="a new order"
        ),
        pytest.param({}, {"$setElementOrder/ports": ports(1)}, {}, id="an order of a missing list"),
        pytest.param({"a": 1}, {"$patch": "replace", "b": None, "c": 1}, {"c": 1}, id="replace everything"),
        pytest.param({}, {"a": {"$retainKeys": ["b"], "b": 1}}, {"a": {"b": 1}}, id="directives are not stored"),
    ],
)
def test_a_strategic_merge_patch_is_merged(
    current: dict[str, Any], patch: dict[str, Any], expected: dict[str, Any]
) -> None:
    before = copy.deepcopy((current, patch))
    assert strategic_merge_patch(current, patch, SCHEMA) == expected
    assert (current, patch) == before


@pytest.mark.parametrize(
    ("current", "patch", "message"),
    [
        pytest.param({"ports": []}, {"ports": [{"name": "x"}]}, "does not contain its merge key: port", id="no key"),
        pytest.param({"ports": ports(1)}, {"ports": ["x"]}, "all be objects, or none of them", id="mixed elements"),
        pytest.param({"keyless": []}, {"keyless": ports(1)}, "cannot merge lists without merge key", id="no merge key"),
        pytest.param({}, {"a": 1, "$patch": "fold"}, "unknown patch type found: fold", id="an unknown directive"),
        pytest.param(
            {"ports": []},
            {"ports": [{"$patch": "fold"}]},
            "unknown patch type found: fold",
            id="an unknown directive in an element",
        ),
        pytest.param({"ports": []}, {"ports": [{"$patch": "merge"}]}, "cannot yet be specified", id="merge in a list"),
        pytest.param(
            {}, {"$setElementOrder/ports": 1}, "$setElementOrder/ports must be a list", id="an order that is not a list"
        ),
        pytest.param(
            {"ports": ports(1)},
            {"$setElementOrder/ports": [{}]},
            "does not contain its merge key",
            id="an order without the merge key",
        ),
        pytest.param(
            {"words": ["a"]},
            {"$deleteFromPrimitiveList/words": "a"},
            "must be a list",
            id="values to delete that are not a list",
        ),
        pytest.param(
            {},
            {"a": 1, "$retainKeys": ["b"]},
            "has every key of the patch",
            id="retained keys that omit a key of the patch",
        ),
        pytest.param(
            {}, {"a": 1, "$retainKeys": "a"}, "has every key of the patch", id="retained keys that are not a list"
        ),
    ],
)
def test_an_invalid_strategic_merge_patch_is_a_bad_request(
    current: dict[str, Any], patch: dict[str, Any], message: str
) -> None:
    with pytest.raises(BadRequest) as raised:
        strategic_merge_patch(current, patch, SCHEMA)
    assert message in raised.value.message


def test_a_deeply_nested_strategic_merge_patch_is_a_bad_request() -> None:
    patch: dict[str, Any] = {}
    for _ in range(200):
        patch = {"a": patch}
    with pytest.raises(BadRequest, match="nested too deeply"):
        strategic_merge_patch({}, patch, SCHEMA)


def test_long_lists_are_merged_in_linear_time() -> None:
    """ATTACK-13: searching every element among all others would take minutes."""
    current = {"words": [f"w{number}" for number in range(20_000)], "ports": ports(*range(20_000))}
    patch = {"words": [f"w{number}" for number in range(10_000, 30_000)], "ports": ports(*range(10_000, 30_000))}
    merged = strategic_merge_patch(current, patch, SCHEMA)
    assert sorted(each["port"] for each in merged["ports"]) == list(range(30_000))
    assert len(set(merged["words"])) == len(merged["words"]) == 30_000


def test_many_values_are_deleted_in_linear_time() -> None:
    current = {"words": [f"w{number}" for number in range(20_000)], "ports": ports(*range(20_000))}
    patch = {
        "$deleteFromPrimitiveList/words": [f"w{number}" for number in range(1, 20_000)],
        "ports": [{"port": number, "$patch": "delete"} for number in range(1, 20_000)],
    }
    assert strategic_merge_patch(current, patch, SCHEMA) == {"words": ["w0"], "ports": ports(0)}
