"""Duplicates in lists that are sets or maps (apiextensions-apiserver/pkg/apiserver/schema/listtype). Pure."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

from apiserver.json.values import comparable
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


class ItemsByKeys:
    """The items of a list that is a map, found by their keys. They are indexed when the first is looked for: comparing
    each with each takes seconds for a list of three thousand."""

    def __init__(self, schema: Schema, items: Any) -> None:
        is_map = schema.get("x-kubernetes-list-type") == "map" and isinstance(items, list)
        self._items: Sequence[Any] = items if is_map else ()
        self._keys: Sequence[str] = schema.get("x-kubernetes-list-map-keys") or ()
        self._index: dict[Hashable, Any] | None = None

    def like(self, item: Any) -> Any:
        """The first with the keys of `item`, None if there is none or the list is no map."""
        if not self._items or not isinstance(item, dict):
            return None
        if self._index is None:
            objects = (each for each in reversed(self._items) if isinstance(each, dict))
            self._index = {self._identity(each): each for each in objects}
        return self._index.get(self._identity(item))

    def _identity(self, item: Mapping[str, Any]) -> Hashable:
        return tuple(comparable(item.get(name)) for name in self._keys)
