"""Merges an applied configuration into the live object (WIRE-G19)."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

from apiserver.fieldmanager.typed.types import ABSENT, Atom, ListType, MapType


def merge(atom: Atom, live: Any, config: Any) -> Any:
    """Merges `config` into `live` by type: objects field by field, associative lists item by item.

    The result shares unchanged parts with both. Live duplicates of an applied list item are dropped.
    """
    form = atom.deduce_atom(live if config is ABSENT else config)
    if form.map_type is not None:
        return _merge_maps(form.map_type, live, config)
    if form.list_type is not None and form.scalar is None:
        return _merge_lists(form.list_type, live, config)
    return _replace(live, config)


def _replace(live: Any, config: Any) -> Any:
    return live if config is ABSENT else config


def _merge_maps(map_type: MapType, live: Any, config: Any) -> Any:
    old = live if isinstance(live, dict) else {}
    new = config if isinstance(config, dict) else {}
    if map_type.atomic or not (old or new):
        return _replace(live, config)
    merged = {}
    for name in old | new:
        child = map_type.value_atom(name)
        if child is not None:
            value = merge(child, old.get(name, ABSENT), new.get(name, ABSENT))
            if value is not ABSENT:
                merged[name] = value
    return merged or ABSENT


def _merge_lists(list_type: ListType, live: Any, config: Any) -> Any:
    old = live if isinstance(live, list) else []
    new = config if isinstance(config, list) else []
    if not list_type.associative or not (old or new):
        return _replace(live, config)
    return _merge_items(list_type, old, new) or ABSENT


def _merge_items(list_type: ListType, live: Sequence[Any], config: Sequence[Any]) -> list[Any]:
    """Merges the items of both lists. Items of the configuration keep its order; items of the live list alone keep
    their place, as early as that order allows."""
    current: dict[str, Any] = {}
    for element, item in list_type.with_path_elements(live):
        # live items with one identity (duplicates) cannot be merged; the applied item replaces them
        current[element] = None if element in current else item
    applied = dict(list_type.with_path_elements(config))
    pending = deque(applied)
    in_both = deque(element for element in applied if element in current)
    merged: list[Any] = []

    def apply_next() -> str:
        element = pending.popleft()
        value = merge(list_type.item_atom, current.get(element, ABSENT), applied[element])
        if value is not ABSENT:
            merged.append(value)
        return element

    for element, item in list_type.with_path_elements(live):
        if element not in applied:
            merged.append(item)
        elif in_both and in_both[0] == element:
            in_both.popleft()
            while apply_next() != element:
                continue
        elif not in_both and pending:
            apply_next()
    while pending:
        apply_next()
    return merged
