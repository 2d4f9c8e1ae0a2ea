"""Path elements of field sets, in their fieldsV1 form: `f:name`, `k:{"type":"Ready"}`, `v:"x"`, `i:0` (WIRE-G4).

The form is canonical, so that equal elements are equal strings.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from apiserver.json.values import MAX_OBJECT_NESTING, nests_deeper_than

Path = tuple[str, ...]

_HTML = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"})
# reused, because json.dumps creates an encoder for each call with options
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode
_encode_readable = json.JSONEncoder(ensure_ascii=False).encode
_MAX_INT64 = 2**63
_RANKS = {"f": 0, "k": 1, "v": 2, "i": 3}


def field_element(name: str) -> str:
    return f"f:{name}"


def key_element(fields: Mapping[str, Any]) -> str:
    """Returns the element of an item in an associative list with the key `fields`."""
    return f"k:{_canonical_json(dict(sorted(fields.items())))}"


def value_element(item: Any) -> str:
    """Returns the element of an item in a set."""
    return f"v:{_canonical_json(item)}"


def make_path(*names: str) -> Path:
    return tuple(field_element(name) for name in names)


def parse_element(text: str) -> str | None:
    """Parses a path element of fieldsV1 into its canonical form; None for an unknown kind. Raises ValueError."""
    kind, colon, content = text.partition(":")
    if len(kind) != 1 or not colon:
        raise ValueError(f"not a path element: {text}")
    match kind:
        case "f":
            return text
        case "v":
            return value_element(_loads(content))
        case "k":
            keys = _loads(content)
            if not isinstance(keys, dict):
                raise ValueError(f"not an object of keys: {content}")
            return key_element(keys)
        case "i":
            return f"i:{int(content)}"
        case _:
            return None


def _loads(content: str) -> Any:
    try:
        value = json.loads(content)
    except RecursionError as error:
        raise ValueError("the value of a path element is nested too deeply") from error
    if nests_deeper_than(value, MAX_OBJECT_NESTING):
        raise ValueError("the value of a path element is nested too deeply")
    return value


def sort_key(element: str) -> tuple[Any, ...]:
    """Returns the sort key of an element: fields, keys, values, indexes; then by content (WIRE-G4)."""
    kind, content = element[0], element[2:]
    match kind:
        case "f":
            return (_RANKS[kind], content)
        case "k":
            return (_RANKS[kind], tuple((name, _value_order(item)) for name, item in json.loads(content).items()))
        case "v":
            return (_RANKS[kind], _value_order(json.loads(content)))
        case _:
            return (_RANKS[kind], int(content))


def format_path(path: Path) -> str:
    """Formats a path for conflicts and errors: `.status.conditions[type="Ready"].status` (WIRE-G22)."""
    return "".join(format_element(element) for element in path)


def format_element(element: str) -> str:
    kind, content = element[0], element[2:]
    match kind:
        case "f":
            return f".{content}"
        case "k":
            keys = json.loads(content)
            return f"[{','.join(f'{name}={_format_value(item)}' for name, item in keys.items())}]"
        case "v":
            return f"[={_format_value(json.loads(content))}]"
        case _:
            return f"[{content}]"


def _canonical_json(item: Any) -> str:
    return _encode(_normalize_numbers(item)).translate(_HTML)


def _normalize_numbers(item: Any) -> Any:
    """Converts floats without a fraction to integers, because 1.0 and 1 identify the same item. Those beyond 64 bits
    remain floats, as in Go: 1e308 would have 309 digits."""
    if isinstance(item, float) and item.is_integer() and abs(item) < _MAX_INT64:
        return int(item)
    if isinstance(item, dict):
        return {name: _normalize_numbers(each) for name, each in item.items()}
    return [_normalize_numbers(each) for each in item] if isinstance(item, list) else item


def _value_order(item: Any) -> tuple[Any, ...]:
    """Returns a sort key that is a total order over JSON values of all types."""
    if isinstance(item, bool):
        return (2, item)
    if isinstance(item, (int, float)):
        return (0, item)
    if isinstance(item, str):
        return (1, item)
    if isinstance(item, list):
        return (3, tuple(_value_order(each) for each in item))
    if isinstance(item, dict):
        return (4, tuple(sorted((name, _value_order(each)) for name, each in item.items())))
    return (5,)


def _format_value(item: Any) -> str:
    if isinstance(item, list):
        return f"[{','.join(_format_value(each) for each in item)}]"
    if isinstance(item, dict):
        return "".join(f"{name}={_format_value(each)}" for name, each in item.items())
    return _encode_readable(item)
