"""Path elements of field sets, in the text form of fieldsV1: `f:name`, `k:{"type":"Ready"}`, `v:"x"`, `i:0` (WIRE-G4).

The text is canonical, so that equal elements are equal strings.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

Path = tuple[str, ...]

_HTML = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"})
# made once: json.dumps makes an encoder for each call that asks for more than the usual
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode
_show = json.JSONEncoder(ensure_ascii=False).encode
_RANKS = {"f": 0, "k": 1, "v": 2, "i": 3}


def field_element(name: str) -> str:
    return f"f:{name}"


def key_element(fields: Mapping[str, Any]) -> str:
    """The element of a list's item that is identified by `fields`."""
    return f"k:{_compact(dict(sorted(fields.items())))}"


def value_element(item: Any) -> str:
    """The element of a set's item."""
    return f"v:{_compact(item)}"


def make_path(*names: str) -> Path:
    return tuple(field_element(name) for name in names)


def parse_element(text: str) -> str | None:
    """A path element read from fieldsV1, canonical; None for a kind of later versions. Raises ValueError."""
    kind, colon, content = text.partition(":")
    if len(kind) != 1 or not colon:
        raise ValueError(f"not a path element: {text}")
    match kind:
        case "f":
            return text
        case "v":
            return value_element(json.loads(content))
        case "k":
            keys = json.loads(content)
            if not isinstance(keys, dict):
                raise ValueError(f"not an object of keys: {content}")
            return key_element(keys)
        case "i":
            return f"i:{int(content)}"
        case _:
            return None


def sort_key(element: str) -> tuple[Any, ...]:
    """The sort key of elements: fields, keys, values, indexes; then by what they hold (WIRE-G4)."""
    kind, content = element[0], element[2:]
    match kind:
        case "f":
            return (_RANKS[kind], content)
        case "k":
            return (_RANKS[kind], tuple((name, _rank(item)) for name, item in json.loads(content).items()))
        case "v":
            return (_RANKS[kind], _rank(json.loads(content)))
        case _:
            return (_RANKS[kind], int(content))


def format_path(path: Path) -> str:
    """A path as conflicts and errors name it: `.status.conditions[type="Ready"].status` (WIRE-G22)."""
    return "".join(format_element(element) for element in path)


def format_element(element: str) -> str:
    kind, content = element[0], element[2:]
    match kind:
        case "f":
            return f".{content}"
        case "k":
            keys = json.loads(content)
            return f"[{','.join(f'{name}={_show_value(item)}' for name, item in keys.items())}]"
        case "v":
            return f"[={_show_value(json.loads(content))}]"
        case _:
            return f"[{content}]"


def _compact(item: Any) -> str:
    return _encode(_whole(item)).translate(_HTML)


def _whole(item: Any) -> Any:
    """Numbers without a fraction as integers: 1.0 and 1 name the same item."""
    if isinstance(item, float) and item.is_integer():
        return int(item)
    if isinstance(item, dict):
        return {name: _whole(each) for name, each in item.items()}
    return [_whole(each) for each in item] if isinstance(item, list) else item


def _rank(item: Any) -> tuple[Any, ...]:
    """A total order over JSON values of all types."""
    if isinstance(item, bool):
        return (2, item)
    if isinstance(item, (int, float)):
        return (0, item)
    if isinstance(item, str):
        return (1, item)
    if isinstance(item, list):
        return (3, tuple(_rank(each) for each in item))
    if isinstance(item, dict):
        return (4, tuple(sorted((name, _rank(each)) for name, each in item.items())))
    return (5,)


def _show_value(item: Any) -> str:
    if isinstance(item, list):
        return f"[{','.join(_show_value(each) for each in item)}]"
    if isinstance(item, dict):
        return "".join(f"{name}={_show_value(each)}" for name, each in item.items())
    return _show(item)
