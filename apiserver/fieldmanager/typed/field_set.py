"""Converts values to field sets, and removes fields from values (WIRE-G7, WIRE-G25)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from apiserver.fieldmanager.field_set import FieldSet
from apiserver.fieldmanager.typed.types import Atom, ListType, MapType
from apiserver.meta import field_path as fieldpath
from apiserver.meta.field_path import Path


def to_field_set(atom: Atom, value: Any) -> FieldSet:
    """Returns the fields that an applied `value` owns: leaves, list items, and keys that the schema does not name."""
    return FieldSet.of(_owned_paths(atom, value, ()))


def _owned_paths(atom: Atom, value: Any, path: Path) -> Iterator[Path]:
    form = atom.deduce_atom(value)
    if form.map_type is not None:
        yield from _owned_paths_in_map(form.map_type, value, path)
    elif form.list_type is not None and form.scalar is None:
        yield from _owned_paths_in_list(form.list_type, value, path)
    else:
        yield path


def _owned_paths_in_map(map_type: MapType, value: Any, path: Path) -> Iterator[Path]:
    if map_type.atomic:
        yield path
        return
    for name, each in (value if isinstance(value, dict) else {}).items():
        child = map_type.value_atom(name)
        child_path = (*path, fieldpath.field_element(name))
        if child is not None:
            yield from _owned_paths(child, each, child_path)
        if each is None or each == {} or name not in map_type.fields:
            yield child_path


def _owned_paths_in_list(list_type: ListType, value: Any, path: Path) -> Iterator[Path]:
    if not list_type.associative:
        yield path
        return
    items = list_type.with_path_elements(value if isinstance(value, list) else [])
    counts = Counter(element for element, _ in items)
    for element, item in items:
        # several items with one identity (duplicates) are one leaf
        if counts[element] == 1:
            yield from _owned_paths(list_type.item_atom, item, (*path, element))
        yield (*path, element)


def ensure_named_fields_are_members(atom: Atom | None, fields: FieldSet) -> FieldSet:
    """Adds to `fields` the fields above its paths, if the schema names them. The schema does not name keys of maps."""
    map_type = atom.map_type if atom else None
    list_type = atom.list_type if atom else None
    members = set(fields.members)
    children = {}
    for element, below in fields.children.items():
        child: Atom | None = None
        if element.startswith("f:") and map_type is not None:
            if element[2:] in map_type.fields:
                members.add(element)
            child = map_type.value_atom(element[2:])
        elif element.startswith("k:") and list_type is not None:
            child = list_type.item_atom
        children[element] = ensure_named_fields_are_members(child, below)
    return FieldSet(members, children)


def remove_items(atom: Atom, value: Any, fields: FieldSet) -> Any:
    """Returns `value` without `fields`, sharing unchanged parts. Objects and lists may become empty."""
    form = atom.deduce_atom(value)
    if form.map_type is not None and isinstance(value, dict) and not form.map_type.atomic:
        return _remove_from_map(form.map_type, value, fields)
    if form.list_type is not None and isinstance(value, list) and form.list_type.associative:
        return _remove_from_list(form.list_type, value, fields)
    return value


def _remove_from_map(map_type: MapType, value: dict[str, Any], fields: FieldSet) -> dict[str, Any]:
    remaining = {}
    for name, each in value.items():
        element, child = fieldpath.field_element(name), map_type.value_atom(name)
        if element in fields.members:
            continue
        below = fields.with_prefix(element)
        remaining[name] = remove_items(child, each, below) if below and child is not None else each
    return remaining


def _remove_from_list(list_type: ListType, value: list[Any], fields: FieldSet) -> list[Any]:
    remaining = []
    for element, item in list_type.with_path_elements(value):
        if element in fields.members:
            continue
        below = fields.with_prefix(element)
        remaining.append(remove_items(list_type.item_atom, item, below) if below else item)
    return remaining


def reconcile_with_schema(atom: Atom, fields: FieldSet) -> FieldSet:
    """Adapts recorded `fields` to the current schema: a field that became atomic is owned as a whole."""
    atomic = FieldSet.of(_atomic_paths(atom, fields, ()))
    return fields.recursive_difference(atomic) | atomic if atomic else fields


def _atomic_paths(atom: Atom | None, fields: FieldSet, path: Path) -> Iterator[Path]:
    if atom is None or not fields:
        return
    map_type, list_type = atom.map_type, atom.list_type
    if map_type is not None:
        if not map_type.fields and map_type.preserves_unknown_fields:
            return
        if map_type.atomic:
            yield path
            return
        for element, below in fields.children.items():
            if element.startswith("f:"):
                yield from _atomic_paths(map_type.value_atom(element[2:]), below, (*path, element))
    elif list_type is not None and atom.scalar is None:
        if not list_type.associative:
            yield path
            return
        for element, below in fields.children.items():
            yield from _atomic_paths(list_type.item_atom, below, (*path, element))
