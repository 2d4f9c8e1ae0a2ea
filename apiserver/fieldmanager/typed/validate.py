"""Validates values against their types, with the error texts of structured-merge-diff (WIRE-G24)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from apiserver.fieldmanager.typed.types import Atom, ListType, MapType, Scalar
from apiserver.meta import field_path as fieldpath
from apiserver.meta.errors import first_texts
from apiserver.meta.field_path import Path

_GO_TYPES = {str: "string", bool: "bool", int: "int64", float: "float64", list: "[]interface {}"}


def validate(atom: Atom, value: Any, *, allow_duplicates: bool = False) -> str:
    """Returns an error message, empty if `value` matches. Stored objects may contain duplicates, applied ones may
    not. A path has the key of a list's item, which may be long, so that only the first errors are told (ATTACK-19)."""
    found = list(first_texts(_validate(atom, value, (), allow_duplicates)))
    if len(found) <= 1:
        return "".join(found)
    return "\n".join(["errors:", *(f"  {each}" for each in found)])


def _validate(atom: Atom, value: Any, path: Path, allow_duplicates: bool) -> Iterator[str]:
    form = atom.deduce_atom(value)
    if value is None:
        return
    if form.map_type is not None:
        yield from _validate_map(form.map_type, value, path, allow_duplicates)
    elif form.scalar is not None:
        if problem := _scalar_error(form.scalar, value):
            yield _with_path(path, problem)
    elif form.list_type is not None:
        yield from _validate_list(form.list_type, value, path, allow_duplicates)


def _validate_map(map_type: MapType, value: Any, path: Path, allow_duplicates: bool) -> Iterator[str]:
    if not isinstance(value, dict):
        yield _with_path(path, f"expected map, got &{{{_go_text(value)}}}")
        return
    for name, each in value.items():
        child, below = map_type.value_atom(name), (*path, fieldpath.field_element(name))
        if child is None:
            yield _with_path(below, "field not declared in schema")
        else:
            yield from _validate(child, each, below, allow_duplicates)


def _validate_list(list_type: ListType, value: Any, path: Path, allow_duplicates: bool) -> Iterator[str]:
    if not isinstance(value, list):
        yield _with_path(path, f"expected list, got &{{{_go_text(value)}}}")
        return
    seen: set[str] = set()
    for index, item in enumerate(value):
        element = f"i:{index}"
        if list_type.associative:
            try:
                element = list_type.path_element(item)
            except ValueError as error:
                yield _with_path(path, f"element {index}: {error}")
                return
            if element in seen and not allow_duplicates:
                yield _with_path(path, f"duplicate entries for key {fieldpath.format_element(element)}")
            seen.add(element)
        yield from _validate(list_type.item_atom, item, (*path, element), allow_duplicates)


def _scalar_error(scalar: Scalar, value: Any) -> str:
    match scalar:
        case "numeric":
            fits = isinstance(value, (int, float)) and not isinstance(value, bool)
            return "" if fits else f"expected numeric (int or float), got {_go_type(value)}"
        case "string":
            return (
                ""
                if isinstance(value, str)
                else f"expected string, got &value.valueUnstructured{{Value:{_go_syntax(value)}}}"
            )
        case "boolean":
            return "" if isinstance(value, bool) else f"expected boolean, got &{{{_go_text(value)}}}"
        case "untyped":
            return f"expected any scalar, got &{{{_go_text(value)}}}" if isinstance(value, (dict, list)) else ""


def _with_path(path: Path, problem: str) -> str:
    """Prefixes an error with its path. The error quotes the invalid item, not its list, which may be very long
    (ATTACK-13)."""
    return f"{fieldpath.format_path(path)}: {problem}" if path else problem


def _go_type(value: Any) -> str:
    return _GO_TYPES.get(type(value), "map[string]interface {}")


def _go_text(value: Any) -> str:
    """Formats a value like %v in Go."""
    if value is None:
        return "<nil>"
    if isinstance(value, dict):
        return f"map[{' '.join(f'{name}:{_go_text(each)}' for name, each in sorted(value.items()))}]"
    if isinstance(value, list):
        return f"[{' '.join(_go_text(each) for each in value)}]"
    return value if isinstance(value, str) else json.dumps(value)


def _go_syntax(value: Any) -> str:
    """Formats a value like %#v in Go."""
    if value is None:
        return "interface {}(nil)"
    if isinstance(value, dict):
        inside = ", ".join(f"{json.dumps(name)}:{_go_syntax(each)}" for name, each in sorted(value.items()))
        return f"map[string]interface {{}}{{{inside}}}"
    if isinstance(value, list):
        return f"[]interface {{}}{{{', '.join(_go_syntax(each) for each in value)}}}"
    return json.dumps(value, ensure_ascii=False)
