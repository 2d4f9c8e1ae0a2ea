"""Duplicates in lists that are sets or maps (apiextensions-apiserver/pkg/apiserver/schema/listtype). Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from apiserver.json.values import equal
from apiserver.meta import errors
from apiserver.meta import field_path as fieldpath
from apiserver.meta.errors import FieldError
from apiserver.meta.resource import Schema
from apiserver.schema.nested_values import nested_values


def list_type_errors(schema: Schema, value: Any, path: str) -> list[FieldError]:
    """An error for each value that occurs again in a set, or whose keys do in a map."""
    return [
        error
        for each, items, where in nested_values(schema, value, path)
        if isinstance(items, list)
        for error in _duplicates(each, items, where)
    ]


def _duplicates(schema: Schema, value: Sequence[Any], path: str) -> Iterator[FieldError]:
    kind = schema.get("x-kubernetes-list-type")
    if kind not in ("set", "map"):
        return
    keys = schema.get("x-kubernetes-list-map-keys") or ()
    if kind == "map":
        wrong = next((index for index, each in enumerate(value) if not isinstance(each, (dict, type(None)))), None)
        if wrong is not None:
            why = "must be an object for an array of list-type map"
            yield errors.invalid(f"{path}[{wrong}]", value[wrong], why)
            return
    seen: dict[str, int] = {}
    for index, each in enumerate(value):
        identity = each if kind == "set" else {name: each[name] for name in keys if name in each} if each else {}
        # equal values have equal texts, which can be looked up
        text = fieldpath.value_element(identity)
        seen[text] = seen.get(text, 0) + 1
        if seen[text] == 2:
            yield FieldError("FieldValueDuplicate", f"{path}[{index}]", identity)


def item_with_same_keys(schema: Schema, items: Any, item: Any) -> Any:
    """The item of `items` with the keys of `item`, None if there is none or the list is no map."""
    if schema.get("x-kubernetes-list-type") != "map" or not isinstance(items, list) or not isinstance(item, dict):
        return None
    keys = {name: item.get(name) for name in schema.get("x-kubernetes-list-map-keys") or ()}
    same = (
        each
        for each in items
        if isinstance(each, dict) and all(equal(each.get(name), value) for name, value in keys.items())
    )
    return next(same, None)
